"""Generated regions on the simulated host: same results, predicted cycles, cheap conversions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from byoc_dory import codegen
from byoc_dory.layers import Shift, Tensor, add_layer
from byoc_dory.options import ScheduleKind, TilingOptions
from byoc_dory.region import Kernel, Region
from byoc_dory.soc.diana.description import DIANA
from htvm.firmware import host, rv32
from htvm.firmware.paths import runtime_c
from htvm.firmware.socs import machine_of
from htvm.firmware.toolchain import Compiler
from htvm.sim.rv32 import run_rv32
from tests.byoc_dory.layers import mobilenet, resnet8
from tests.byoc_dory.program import Case, make_case, sources


def firmware_main(case: Case) -> str:
    """A main that marks begin and end of each kernel."""
    noinit = '__attribute__((section(".noinit"), aligned(16))) int8_t'
    place, lines = {}, ['#include "htvm_hal.h"\n', sources([case.code])]
    for number, (tensor, values) in enumerate(zip(case.code.inputs, case.inputs, strict=True)):
        place[tensor.name] = f"in_{number}"
        lines.append(f"{noinit} in_{number}[{values.size}];\n")
    for number, (tensor, values) in enumerate(zip(case.code.outputs, case.outputs, strict=True)):
        place[tensor.name] = f"out_{number}"
        lines.append(f"{noinit} out_{number}[{values.size}];\n")
    for number, buffer in enumerate(case.code.buffers):
        place[buffer.name] = f"buffer_{number}"
        lines.append(f"{noinit} buffer_{number}[{buffer.bytes}];\n")
    lines.append("int main(void)\n{\n    int32_t code = 0;\n")
    for number, kernel in enumerate(case.code.kernels):
        names = ", ".join(place[name] for name in (*kernel.inputs, *kernel.outputs))
        lines.append(f"    htvm_hal_trace({2 * number});\n")
        lines.append(f"    code = code != 0 ? code : {kernel.symbol}({names});\n")
        lines.append(f"    htvm_hal_trace({2 * number + 1});\n")
    return "".join(lines) + "    return code;\n}\n"


def measure(case: Case, folder: Path) -> list[tuple[Kernel, int]]:
    """Run a case, check its outputs, return the cycles of each kernel."""
    folder.mkdir(exist_ok=True)
    source = folder / "main.c"
    source.write_text(firmware_main(case))
    compiler = Compiler.zig()
    firmware = rv32.build_firmware(
        [source, *host.driver_sources(DIANA)],
        [runtime_c() / "soc" / DIANA.driver],
        machine_of(DIANA),
        folder / "out",
        compiler,
        stack_bytes=DIANA.host.stack,
    )
    result = run_rv32(
        firmware,
        {f"in_{number}": values.tobytes() for number, values in enumerate(case.inputs)},
        {f"out_{number}": values.size for number, values in enumerate(case.outputs)},
        compiler=compiler,
    )
    for number, values in enumerate(case.outputs):
        got = np.frombuffer(result.outputs[f"out_{number}"], np.int8).reshape(values.shape)
        np.testing.assert_array_equal(got, values)
    at = {event: cycle for cycle, event in result.marks}
    return [
        (kernel, at[2 * number + 1] - at[2 * number])
        for number, kernel in enumerate(case.code.kernels)
    ]


def whole_network(layers, name: str) -> Region:
    """All layers but the head as one region."""
    body = tuple(layers[:-1])
    first, last = body[0].inputs[0], body[-1].output
    return Region(
        name,
        body,
        (Tensor(first.name, first.shape, layout="NHWC"),),
        (Tensor(last.name, last.shape, layout="NHWC"),),
    )


@pytest.mark.rotating(2)
@pytest.mark.parametrize("kind", ["published", "overlapped"])
@pytest.mark.parametrize("budget", [None, 16_000])
def test_resnet8_cycles_are_as_predicted(
    budget: int | None, kind: ScheduleKind, tmp_path: Path
) -> None:
    region = whole_network(resnet8(), "resnet8")
    options = TilingOptions(budget, schedule=kind)
    measured = measure(make_case(region, options, "resnet8", 1), tmp_path)
    for kernel, cycles in measured:
        if kernel.kind == "layer":
            ratio = cycles / kernel.predicted_cycles
            # Thousands of equal row commands all meet the poll loop in the same phase.
            low = 0.93 if kernel.layer is not None and kernel.layer.op == "add" else 0.98
            assert low < ratio < 1.06, (kernel.symbol, cycles, kernel.predicted_cycles)
    if budget is None:
        # Everything but the dense head, softmax and pooling of a network published at 309 400.
        limit = 260_000 if kind == "published" else 205_000
        assert sum(cycles for _, cycles in measured) < limit


def test_mobilenet_start_with_a_small_l1(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Depthwise, strides and x tiles on the simulated host, with the whole input first."""
    monkeypatch.setattr(codegen, "first_layers_by_rows", lambda *_: None)
    region = whole_network(mobilenet()[:6], "mobilenet")
    measured = measure(make_case(region, TilingOptions(12_000), "mobilenet", 2), tmp_path)
    assert sum(k.program.tiles > 1 for k, _ in measured if k.program is not None) >= 4
    for kernel, cycles in measured:
        if kernel.kind == "layer":
            assert 0.97 < cycles / kernel.predicted_cycles < 1.06, (kernel.symbol, cycles)


@pytest.mark.parametrize(
    ("shape", "layout"),
    [
        ((3, 96, 96), "NHWC"),
        ((3, 32, 32), "NHWC"),
        ((1, 49, 10), "NHWC"),
        ((64, 25, 5), "NHWC"),
        ((64, 8, 8), "NCHW"),
        ((640,), "C"),
    ],
)
def test_conversions_are_cheap(shape, layout, tmp_path: Path) -> None:
    """Host cycles: about a load and a store per byte, a loop per row, and what is predicted."""
    x = Tensor("x", shape)
    layer = add_layer("add", x, x, "y", requant=Shift(0))
    border = (Tensor("x", shape, layout=layout),), (Tensor("y", shape, layout=layout),)
    measured = measure(make_case(Region("r", (layer,), *border), TilingOptions(), "p", 3), tmp_path)
    elements = int(np.prod(shape))
    for kernel, cycles in measured:
        if kernel.kind != "layer":
            rows = elements // shape[-1]
            assert cycles <= 2.35 * elements + 10 * rows, (kernel.kind, cycles / elements)
            assert 0.9 < cycles / kernel.predicted_cycles < 1.1, (kernel.kind, cycles)
