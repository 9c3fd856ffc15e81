"""The emitted loops make exactly the calls of the schedule, in order."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.region import Kernel
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.soc.header import render
from byoc_dory.steps import AddTrigger, ConvTrigger, DenseTrigger, Load, Step, Store
from htvm.sim import host
from htvm.sim.toolchain import Compiler
from tests.byoc_dory.program import Case, random_cases, sources

RECORD = 20
CAPACITY = 20_000

Library = ctypes.CDLL


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return random_cases(48, start=500)


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
    """(result, records, input addresses, output address) of one call with dummy buffers."""
    ctypes.c_uint32.in_dll(library, "record_count").value = 0
    buffers = [np.zeros(1 << 20, np.int8) for _ in range(len(kernel.inputs) + 1)]
    addresses = [buffer.ctypes.data for buffer in buffers]
    result = library[kernel.symbol](*(ctypes.c_void_p(address) for address in addresses))
    count = ctypes.c_uint32.in_dll(library, "record_count").value
    table = (ctypes.c_int64 * (RECORD * CAPACITY)).in_dll(library, "records")
    records = np.ctypeslib.as_array(table).reshape(CAPACITY, RECORD)[:count].copy()
    return result, records, addresses[:-1], addresses[-1]


def expected(step: Step, inputs: list[int], output: int, weights: int) -> list[int]:
    if isinstance(step, Load | Store):
        block = step.block
        kind, base = (1, inputs[step.operand]) if isinstance(step, Load) else (2, output)
        fields = [
            step.l1_offset, block.channels, block.rows, block.bytes, block.l2_channel_stride,
            block.l2_row_stride, block.l1_channel_stride, block.l1_row_stride,
        ]  # fmt: skip
        return [kind, base + step.l2_offset, *fields]
    if isinstance(step, ConvTrigger):
        fields = [
            step.k, step.c, step.iy, step.ix, step.oy, step.ox, step.fy, step.fx, step.stride,
            step.pad_top, step.pad_left, step.shift, int(step.relu), step.l1_in, step.l1_out,
        ]  # fmt: skip
        return [4 if step.depthwise else 3, weights + step.weight_offset, *fields]
    if isinstance(step, DenseTrigger):
        fields = [step.k, step.c, step.shift, int(step.relu), step.l1_in, step.l1_out]
        return [5, weights + step.weight_offset, *fields]
    assert isinstance(step, AddTrigger)
    relu = int(step.relu)
    return [6, 0, step.elements, step.shift, relu, step.l1_a, step.l1_b, step.l1_out]


def layer_kernels(cases: list[Case]) -> list[Kernel]:
    return [kernel for case in cases for kernel in case.code.kernels if kernel.kind == "layer"]


def test_calls_are_the_schedules_steps(cases: list[Case], library: Library) -> None:
    tiled = 0
    for kernel in layer_kernels(cases):
        result, records, inputs, output = call(library, kernel)
        assert result == 0
        weights = 0
        if kernel.constants:
            symbol = ctypes.c_uint8.in_dll(library, kernel.constants[0].name)
            weights = ctypes.addressof(symbol)
        assert kernel.schedule is not None
        steps = list(kernel.schedule.steps())
        assert len(records) == len(steps), kernel.source
        for record, step in zip(records, steps, strict=True):
            wanted = expected(step, inputs, output, weights)
            got = record[: len(wanted)].tolist()
            # A one-row, one-channel block needs no strides; the emitter leaves them out for dense.
            if kernel.layer is not None and kernel.layer.op == "dense" and wanted[0] in (1, 2):
                got, wanted = got[:6], wanted[:6]
            assert got == wanted, f"{step}\n{kernel.source}"
        tiled += kernel.schedule.tiles > 1
    assert tiled >= 20


def test_first_error_is_returned(cases: list[Case], library: Library) -> None:
    """Whichever call fails, the function stops there and returns its code."""
    failing = ctypes.c_int32.in_dll(library, "fail_at")
    try:
        for kernel in layer_kernels(cases)[:12]:
            assert kernel.schedule is not None
            count = len(list(kernel.schedule.steps()))
            for at in sorted({0, 1, count // 2, count - 1}):
                failing.value = at
                result, records, _, _ = call(library, kernel)
                assert (result, len(records)) == (42, at + 1)
    finally:
        failing.value = -1
