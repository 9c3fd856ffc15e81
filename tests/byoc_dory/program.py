"""Helper: generated regions as one C program: what the later stages do, in small."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from byoc_dory.codegen import generate
from byoc_dory.cost import Cost
from byoc_dory.errors import TilingError
from byoc_dory.layers import Layer, Tensor
from byoc_dory.options import ScheduleKind, TilingOptions
from byoc_dory.region import Constant, Region, RegionCode
from byoc_dory.soc.diana.description import DIANA
from tests.byoc_dory.layers import OPS, int8, random_layer
from tests.byoc_dory.plans import all_plans
from tests.reference.diana_layers import run_layer

CORE = DIANA.accelerator("digital")
HEADERS = ("diana_driver.h",)


@dataclass(frozen=True, eq=False)
class Case:
    """A region, its code, inputs as the outside has them, and the outputs it must give."""

    code: RegionCode
    inputs: tuple[np.ndarray, ...]
    outputs: tuple[np.ndarray, ...]


def to_source_layout(values: np.ndarray, layout: str) -> np.ndarray:
    return values.transpose(1, 2, 0).copy() if layout == "NHWC" else values


def region_of(layer: Layer, name: str, layout: str) -> Region:
    """One layer with borders in a source layout."""

    def border(tensor: Tensor) -> Tensor:
        return Tensor(tensor.name, tensor.shape, layout="C" if len(tensor.shape) == 1 else layout)

    return Region(name, (layer,), tuple(map(border, layer.inputs)), (border(layer.output),))


def make_case(
    region: Region,
    options: TilingOptions,
    prefix: str,
    seed: int,
    accelerator: str | None = None,
) -> Case:
    """Generate the code, draw inputs, compute the expected outputs."""
    code = generate(region, Cost(DIANA, options), prefix, accelerator)
    rng = np.random.default_rng(seed)
    values = {tensor.name: int8(rng, *tensor.shape) for tensor in region.inputs}
    for layer in region.layers:
        for tensor in layer.inputs:
            if tensor.name in values and layer.input_range == (-64, 63):
                values[tensor.name] = values[tensor.name] >> 1
    inputs = tuple(to_source_layout(values[t.name], t.layout) for t in region.inputs)
    for layer in region.layers:
        values[layer.output.name] = run_layer(layer, [values[t.name] for t in layer.inputs])
    outputs = tuple(to_source_layout(values[t.name], t.layout) for t in region.outputs)
    return Case(code, inputs, outputs)


def random_cases(count: int, start: int = 100, largest: int = 24) -> list[Case]:
    """Single-layer regions of all operators under small budgets."""
    cases = []
    for seed in range(start, start + count):
        rng = np.random.default_rng(seed)
        op = OPS[seed % len(OPS)]
        layer = random_layer(rng, op, f"layer{seed}", largest)
        region = region_of(layer, f"r{seed}", ("NHWC", "NCHW")[seed // 4 % 2])
        order = ("yxk", "kyx")[seed // 8 % 2]
        kind: ScheduleKind = ("published", "overlapped")[seed // 16 % 2]
        for budget in (1_500, 5_000, 256_000):
            # Dense tiles are small; everything else at least needs a row.
            chosen = 150 if op == "dense" and budget == 1_500 else budget
            objective = ("array", "none")[seed % 3 == 0]
            options = TilingOptions(chosen, objective, loop_order=order, schedule=kind)
            try:
                cases.append(make_case(region, options, f"p{seed}", seed))
                break
            except TilingError:
                continue
    return cases


def planned_cases(count: int, start: int, largest: int = 20) -> list[Case]:
    """Random layers by themselves in every plan: buffers, and tensors that stay in L1.

    The case has one kernel and no conversions, and is not for running as it is.
    """
    cases = []
    for seed in range(start, start + count):
        op = OPS[seed % len(OPS)]
        layer = random_layer(np.random.default_rng(seed), op, f"layer{seed}", largest)
        region = region_of(layer, f"r{seed}", "NHWC")
        order = ("yxk", "kyx")[seed // 4 % 2]
        for budget in (900, 2_500, 9_000):
            options = TilingOptions(budget, "none", loop_order=order, schedule="overlapped")
            try:
                solution = Cost(DIANA, options).best_tile(CORE, layer)
            except TilingError:
                continue
            for number, plan in enumerate(all_plans(layer, solution)):
                symbol = f"s{seed}_{budget}_{number}"
                kernel = CORE.emitter(DIANA).layer(layer, plan, options, symbol)
                code = RegionCode(symbol, (kernel,), (), region.inputs, region.outputs, HEADERS)
                cases.append(Case(code, (), ()))
    return cases


def _array(data: np.ndarray) -> str:
    return ", ".join(map(str, data.reshape(-1).tolist()))


def _define(constant: Constant) -> str:
    place = f"HTVM_HAL_MEMORY({constant.memory}) " if constant.memory else ""
    return (
        f"/* {constant.comment} */\n{place}_Alignas({constant.align}) const uint8_t "
        f"{constant.name}[{constant.data.size}] = {{{_array(constant.data)}}};\n"
    )


def sources(codes: list[RegionCode]) -> str:
    """Constants and kernels of all regions in one file."""
    lines = [f'#include "{header}"\n' for header in sorted({h for c in codes for h in c.headers})]
    for code in codes:
        # First, because a layer may load the next one's.
        lines += [_define(constant) for kernel in code.kernels for constant in kernel.constants]
        for kernel in code.kernels:
            lines += [kernel.prototype, "\n", kernel.source, "\n"]
    return "".join(lines)


def main_program(cases: list[Case]) -> str:
    """A main that reads one file with all inputs and writes one with all outputs."""
    total_in = sum(values.size for case in cases for values in case.inputs)
    total_out = sum(values.size for case in cases for values in case.outputs)
    body: list[str] = []
    declarations: list[str] = [f"static int8_t all_in[{total_in}], all_out[{total_out}];\n"]
    at_in = at_out = 0
    for number, case in enumerate(cases):
        place = {}
        for buffer in case.code.buffers:
            symbol = f"b{number}_{len(place)}"
            declarations.append(f"static _Alignas(16) int8_t {symbol}[{buffer.bytes}];\n")
            place[buffer.name] = symbol
        for tensor, values in zip(case.code.inputs, case.inputs, strict=True):
            place[tensor.name] = f"all_in + {at_in}"
            at_in += values.size
        for tensor, values in zip(case.code.outputs, case.outputs, strict=True):
            place[tensor.name] = f"all_out + {at_out}"
            at_out += values.size
        for kernel in case.code.kernels:
            names = ", ".join(place[name] for name in (*kernel.inputs, *kernel.outputs))
            body.append(f"    code = code != 0 ? code : {kernel.symbol}({names});\n")
    return (
        '#include "htvm_host.h"\n'
        + sources([case.code for case in cases])
        + "".join(declarations)
        + "int main(void)\n{\n    int32_t code = htvm_host_read(0, all_in, sizeof all_in);\n"
        + "".join(body)
        + "    return code != 0 ? code : htvm_host_write(0, all_out, sizeof all_out);\n}\n"
    )


def packed(cases: list[Case], outputs: bool) -> bytes:
    """All inputs (or outputs) of all cases, one after another."""
    chosen = [case.outputs if outputs else case.inputs for case in cases]
    return b"".join(values.tobytes() for arrays in chosen for values in arrays)
