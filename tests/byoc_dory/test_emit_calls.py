"""The emitted loops make exactly the calls of the tile program, in order."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.region import Kernel
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.soc.diana.program import AddTrigger, ConvTrigger, DenseTrigger
from byoc_dory.soc.header import render
from byoc_dory.tileloop.pipeline import Trigger
from htvm.firmware import host
from htvm.firmware.toolchain import Compiler
from tests.byoc_dory.driver_calls import (
    Finish,
    Load,
    Prepare,
    Queue,
    Start,
    Step,
    Store,
    Wait,
    steps_of,
)
from tests.byoc_dory.program import Case, planned_cases, random_cases, sources

RECORD = 20
CAPACITY = 20_000
ORDERS = (Queue, Prepare, Start)

Library = ctypes.CDLL


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [*random_cases(48, start=500), *planned_cases(16, start=700)]


@pytest.fixture(scope="module")
def library(cases: list[Case], tmp_path_factory: pytest.TempPathFactory) -> Library:
    folder = tmp_path_factory.mktemp("calls")
    kernels = folder / "kernels.c"
    kernels.write_text(sources([case.code for case in cases]))
    (folder / "htvm_soc.h").write_text(render(DIANA))
    out = Compiler.zig().compile_host(
        [kernels, Path(__file__).with_name("recorder.c")],
        folder / "calls.so",
        [folder, *host.include_folders(DIANA)],
        shared=True,
    )
    return ctypes.CDLL(str(out))


def call(library: Library, kernel: Kernel) -> tuple[int, np.ndarray, list[int], int]:
    """(result, records, input addresses, output address) of one call with dummy buffers.

    Tensors that stay in L1 are no arguments; their addresses are 0.
    """
    ctypes.c_uint32.in_dll(library, "record_count").value = 0
    assert kernel.program is not None
    in_l1 = [o.resident for o in (*kernel.program.operands, kernel.program.result)]
    buffers = [None if resident else np.zeros(1 << 20, np.int8) for resident in in_l1]
    addresses = [0 if buffer is None else buffer.ctypes.data for buffer in buffers]
    given = [address for address in addresses if address != 0]
    assert len(given) == len(kernel.inputs) + len(kernel.outputs)
    result = library[kernel.symbol](*(ctypes.c_void_p(address) for address in given))
    count = ctypes.c_uint32.in_dll(library, "record_count").value
    table = (ctypes.c_int64 * (RECORD * CAPACITY)).in_dll(library, "records")
    records = np.ctypeslib.as_array(table).reshape(CAPACITY, RECORD)[:count].copy()
    return result, records, addresses[:-1], addresses[-1]


def transfer(step: Load | Store, inputs: list[int], output: int) -> list[int]:
    block = step.block
    kind, base = (1, inputs[step.operand]) if isinstance(step, Load) else (2, output)
    if isinstance(step, Load) and step.block.by_rows:
        kind = 7
    fields = [
        step.l1_offset, block.channels, block.rows, block.bytes, block.l2_channel_stride,
        block.l2_row_stride, block.l1_channel_stride, block.l1_row_stride,
    ]  # fmt: skip
    return [kind, base + step.l2_offset, *fields]


def trigger(step: Trigger, weights: int) -> list[int]:
    if isinstance(step, ConvTrigger):
        fields = [
            step.k, step.c, step.iy, step.ix, step.oy, step.ox, step.fy, step.fx, step.stride,
            step.pad_top, step.pad_left, step.shift, int(step.relu), step.l1_in, step.l1_out,
        ]  # fmt: skip
        kind = 3 if not step.depthwise else 4 if step.channels == 1 else 8
        return [kind, weights + step.weight_offset, *fields]
    if isinstance(step, DenseTrigger):
        fields = [step.k, step.c, step.shift, int(step.relu), step.l1_in, step.l1_out]
        return [5, weights + step.weight_offset, *fields]
    assert isinstance(step, AddTrigger)
    relu = int(step.relu)
    return [6, 0, step.elements, step.shift, relu, step.l1_a, step.l1_b, step.l1_out]


def expected(step: Step, inputs: list[int], output: int, weights: int) -> list[int]:
    """The record of a step: kind, pointer, fields."""
    if isinstance(step, Load | Store):
        return transfer(step, inputs, output)
    if isinstance(step, Queue):
        kind, *rest = transfer(step.transfer, inputs, output)
        return [10 + kind, *rest]
    if isinstance(step, Wait):
        return [10]
    if isinstance(step, Prepare | Start | Finish):
        kind, *rest = trigger(step.trigger, weights)
        if isinstance(step, Start):
            return [30 + kind]
        if isinstance(step, Finish) and kind in (3, 6):
            return [40 + kind]
        return [(20 if isinstance(step, Prepare) else 40) + kind, *rest]
    return trigger(step, weights)


def layer_kernels(cases: list[Case]) -> list[Kernel]:
    return [kernel for case in cases for kernel in case.code.kernels if kernel.kind == "layer"]


def test_calls_are_the_schedules_steps(cases: list[Case], library: Library) -> None:
    tiled = pipelined = resident = 0
    for kernel in layer_kernels(cases):
        result, records, inputs, output = call(library, kernel)
        assert result == 0
        weights = 0
        if kernel.constants:
            symbol = ctypes.c_uint8.in_dll(library, kernel.constants[0].name)
            weights = ctypes.addressof(symbol)
        assert kernel.program is not None
        steps = list(steps_of(kernel.program))
        assert len(records) == len(steps), kernel.source
        for record, step in zip(records, steps, strict=True):
            wanted = expected(step, inputs, output, weights)
            got = record[: len(wanted)].tolist()
            # A one-row, one-channel block needs no strides; the emitter leaves them out for dense.
            of_dense = kernel.layer is not None and kernel.layer.op == "dense"
            if of_dense and wanted[0] in (1, 2, 11, 12):
                got, wanted = got[:6], wanted[:6]
            assert got == wanted, f"{step}\n{kernel.source}"
        tiled += kernel.program.tiles > 1
        pipelined += kernel.program.pipelined
        resident += any(o.resident for o in (*kernel.program.operands, kernel.program.result))
    assert tiled >= 20 and pipelined >= 15 and resident >= 20


def test_first_error_is_returned(cases: list[Case], library: Library) -> None:
    """Whichever call fails, the function stops there and returns its code."""
    failing = ctypes.c_int32.in_dll(library, "fail_at")
    kernels = layer_kernels(cases)
    try:
        for kernel in (*kernels[:12], *kernels[48::7]):
            assert kernel.program is not None
            steps = list(steps_of(kernel.program))
            # Orders are not answered: what is wrong with them shows when they are waited for.
            answers = [at for at, step in enumerate(steps) if not isinstance(step, ORDERS)]
            for at in {answers[0], answers[len(answers) // 2], answers[-1]}:
                failing.value = at
                result, records, _, _ = call(library, kernel)
                assert (result, len(records)) == (42, at + 1)
    finally:
        failing.value = -1
