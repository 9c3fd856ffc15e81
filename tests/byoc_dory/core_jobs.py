"""Helper: random jobs of Siracusa's cores, as generated C, and what they must give."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from byoc_dory.codegen import generate
from byoc_dory.cost import Cost
from byoc_dory.errors import TilingError
from byoc_dory.layers import (
    Layer,
    MulShift,
    Requant,
    Shift,
    Tensor,
    conv2d_layer,
    dense_layer,
    depthwise_layer,
)
from byoc_dory.options import TilingOptions
from byoc_dory.region import Kernel, Region
from byoc_dory.soc.siracusa.description import CLUSTER_CORES, SIRACUSA
from byoc_dory.verdict import Refused
from htvm.firmware import host, rv32
from htvm.firmware.paths import driver_folders
from htvm.firmware.socs import machine_of
from htvm.firmware.toolchain import Compiler
from htvm.sim.rv32 import run_rv32
from tests.byoc_dory import neureka_cases
from tests.byoc_dory.program import Case, sources
from tests.byoc_dory.snitch_cases import random_cluster_layer
from tests.reference import matrix_layers

SOC = SIRACUSA
Rng = np.random.Generator

_LIMITS = {"int8": (-128, 127), "uint8": (0, 255)}
_BUDGETS = (700, 1_500, 3_000, 6_000, 15_000, 40_000, None)


@dataclass(frozen=True, eq=False)
class Job:
    """A layer and its case; ``words`` says what it is."""

    words: str
    layer: Layer
    case: Case


def _between(rng: Rng, low: int, high: int) -> int:
    return int(rng.integers(low, high + 1))


def _requant(rng: Rng, weight: np.ndarray, terms: int) -> Requant:
    """One that spreads sums over the bytes: a shift, or factors per layer or channel, also wide."""
    count, kind = len(weight), _between(rng, 0, 3)
    typical = max(1, int(np.abs(weight.astype(int)).mean() * 64 * terms**0.5))
    if kind == 0:
        return Shift(max(0, typical.bit_length() - 7))
    bits = 24 if kind == 3 and rng.integers(2) else 7
    number = 1 if kind == 1 else count
    mul = rng.integers(1, 2**bits, number) * (rng.choice([-1, 1], number) if kind == 3 else 1)
    shift = [min(31, max(0, (typical * abs(int(m))).bit_length() - 7)) for m in mul]
    if rng.integers(2):
        shift = [max(shift)]
    add = rng.integers(-(2**12), 2**12, number)
    return MulShift(*(tuple(int(value) for value in part) for part in (mul, shift, add)))


def random_convolution(rng: Rng, name: str) -> Layer:
    """Any filter, stride, padding, type and limits; every other filter is 3 x 3."""
    depthwise, usual = bool(rng.integers(2)), bool(rng.integers(2))
    fy, fx = (3, 3) if usual else (_between(rng, 1, 5), _between(rng, 1, 5))
    step = _between(rng, 1, 2)
    stride = (step, step) if usual else (_between(rng, 1, 3), _between(rng, 1, 3))
    top, bottom = (_between(rng, 0, min(fy - 1, 2)) for _ in range(2))
    left, right = (_between(rng, 0, min(fx - 1, 2)) for _ in range(2))
    if usual and rng.integers(2):
        top, left, bottom, right = 1, 1, 1, 1
    iy, ix = _between(rng, max(fy, 2), 24), _between(rng, max(fx, 2), 24)
    if usual and rng.integers(4) == 0:
        iy = ix = 3
    c = _between(rng, 1, 40) if rng.integers(2) else 4 * _between(rng, 1, 12)
    k = c if depthwise else _between(rng, 1, 40)
    bits = _between(rng, 2, 8)
    shape = (k, 1 if depthwise else c, fy, fx)
    weight = rng.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), shape).astype(np.int8)
    bias = rng.integers(-5000, 5000, k).astype(np.int32) if rng.integers(4) else None
    dtype, result = (("int8", "uint8")[_between(rng, 0, 1)] for _ in range(2))
    clip = _LIMITS[result]
    if rng.integers(3) == 0:
        clip = (0, 127) if rng.integers(2) else (max(clip[0], -90), 101)
    layer = (depthwise_layer if depthwise else conv2d_layer)(
        name, Tensor("x", (c, iy, ix), dtype, "NHWC"), "y", weight, bias,
        pad=(top, left, bottom, right), stride=stride,
        requant=_requant(rng, weight, shape[1] * fy * fx), clip=clip,
    )  # fmt: skip
    return replace(layer, output=Tensor("y", layer.output.shape, result, "NHWC"))  # type: ignore[arg-type]


def random_dense(rng: Rng, name: str) -> Layer:
    """A matrix times a vector."""
    c, k = _between(rng, 1, 300), _between(rng, 1, 70)
    weight = rng.integers(-128, 128, (k, c)).astype(np.int8)
    bias = rng.integers(-5000, 5000, k).astype(np.int32)
    return dense_layer(
        name, Tensor("x", (c,), "int8", "C"), "y", weight[:, :, None, None], bias,
        requant=_requant(rng, weight, c),
    )  # fmt: skip


def random_layer(rng: Rng, name: str) -> Layer:
    """Half of the jobs are convolutions; the others dense layers, products, sums, rows."""
    kind = _between(rng, 0, 9)
    if kind < 5:
        return random_convolution(rng, name)
    return random_dense(rng, name) if kind == 5 else random_cluster_layer(rng, name)


def case_of(layer: Layer, options: TilingOptions, prefix: str) -> Case:
    """The code, random inputs, and what an independent definition makes of them."""
    region = Region(prefix, (layer,), layer.inputs, (layer.output,))
    code = generate(region, Cost(SOC, options), prefix, "cluster")
    rng = np.random.default_rng(len(prefix))
    values = []
    for tensor in layer.inputs:
        limits = np.iinfo(tensor.dtype)
        drawn = rng.integers(limits.min, limits.max + 1, tensor.shape)
        values.append(drawn.astype(tensor.dtype))
    if hasattr(layer, "weight") and layer.op != "gemm":
        result = neureka_cases.evaluate(layer, values[0])
    else:
        result = matrix_layers.evaluate(layer, values)
    stored = tuple(matrix_layers.stored(value) for value in values)
    return Case(code, stored, (matrix_layers.stored(result),))


def random_jobs(count: int, start: int) -> list[Job]:
    """So many jobs, each in the smallest budget of L1 from a random one on in which it fits."""
    found = []
    for seed in range(start, start + count):
        rng = np.random.default_rng([seed, 41])
        layer = random_layer(rng, f"l{seed}")
        verdict = CLUSTER_CORES.judge(SOC, layer)
        assert not isinstance(verdict, Refused), (seed, verdict)
        schedule = ("overlapped", "published")[seed % 4 == 0]
        for budget in _BUDGETS[_between(rng, 0, len(_BUDGETS) - 1) :]:
            options = TilingOptions(l1_budget=budget, schedule=schedule)  # type: ignore[arg-type]
            try:
                case = case_of(layer, options, f"j{seed}")
            except TilingError:
                continue
            found.append(Job(f"{seed} {type(layer).__name__} budget {budget}", layer, case))
            break
        else:
            raise AssertionError(f"{seed}: no tile, even without a budget")
    return found


def _firmware_main(cases: list[Case]) -> str:
    lines = ['#include "htvm_hal.h"\n', sources([case.code for case in cases])]
    place = '__attribute__((section(".noinit"), aligned(16))) int8_t'
    body = []
    for number, case in enumerate(cases):
        names = [f"in_{number}_{n}" for n in range(len(case.inputs))]
        for name, values in zip(names, case.inputs, strict=True):
            lines.append(f"{place} {name}[{values.size}];\n")
        lines.append(f"{place} out_{number}[{case.outputs[0].size}];\n")
        (kernel,) = case.code.kernels
        call = f"{kernel.symbol}({', '.join([*names, f'out_{number}'])})"
        body.append(f"    htvm_hal_trace({2 * number});\n    code |= {call};\n")
        body.append(f"    htvm_hal_trace({2 * number + 1});\n")
    begin = "int main(void)\n{\n    int32_t code = 0;\n"
    return "".join([*lines, begin, *body, "    return code;\n}\n"])


def simulate(jobs: list[Job], folder: Path) -> list[tuple[Kernel, int]]:
    """Run jobs on the simulated cores, check their outputs, return each one's cycles."""
    cases = [job.case for job in jobs]
    source, compiler = folder / "main.c", Compiler.zig()
    source.write_text(_firmware_main(cases))
    firmware = rv32.build_firmware(
        [source, *host.driver_sources(SOC)],
        driver_folders(SOC),
        machine_of(SOC),
        folder / "out",
        compiler,
        stack_bytes=SOC.host.stack,
    )
    inputs = {
        f"in_{number}_{n}": values.tobytes()
        for number, case in enumerate(cases)
        for n, values in enumerate(case.inputs)
    }
    sizes = {f"out_{number}": case.outputs[0].size for number, case in enumerate(cases)}
    result = run_rv32(firmware, inputs, sizes, compiler=compiler)
    for number, (job, case) in enumerate(zip(jobs, cases, strict=True)):
        got = np.frombuffer(result.outputs[f"out_{number}"], np.uint8)
        wrong = int((got != case.outputs[0].view(np.uint8)).sum())
        assert not wrong, f"{job.words}: {wrong} bytes differ; {case.code.kernels[0].source}"
    at = {event: cycle for cycle, event in result.marks}
    return [
        (case.code.kernels[0], at[2 * number + 1] - at[2 * number])
        for number, case in enumerate(cases)
    ]
