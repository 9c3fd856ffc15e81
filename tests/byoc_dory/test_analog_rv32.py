"""The analog core on the simulated host: same results, predicted cycles, by cause."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.layers import Tensor, dense_layer
from byoc_dory.options import TilingOptions
from byoc_dory.region import Region
from byoc_dory.soc.diana.cores import AnalogCore
from byoc_dory.soc.diana.description import DIANA
from tests.byoc_dory.analog import analog_conv, known_to_have_seven_bits, requant, ternary
from tests.byoc_dory.program import make_case
from tests.byoc_dory.test_emit_rv32 import measure

CORE = DIANA.accelerator("analog")
assert isinstance(CORE, AnalogCore)

# Layers of ResNet-8: C, K, input, kernel, stride, padding, cycles of a trigger in the fit.
PUBLISHED = {
    "c2": (16, 16, 32, 3, 1, (1, 1, 1, 1), 23_266),
    "c4": (16, 32, 32, 3, 2, (0, 0, 1, 1), 7_138),
    "c7": (32, 64, 16, 3, 2, (0, 0, 1, 1), 4_402),
    "c8": (64, 64, 8, 3, 1, (1, 1, 1, 1), 6_994),
    "c9": (32, 64, 16, 1, 2, (0, 0, 0, 0), 2_098),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_cycles_of_published_layers(name: str) -> None:
    c, _, size, kernel, stride, _, cycles = PUBLISHED[name]
    out = size // stride
    assert CORE.pass_cycles(c * kernel * kernel, out, out, 1) == cycles


def chain() -> Region:
    """Convolutions that hand tensors on, one of them with three passes."""
    rng = np.random.default_rng(5)
    c, k, size, kernel, stride, pad, _ = PUBLISHED["c2"]
    first = analog_conv(rng, "c2", Tensor("x", (c, size, size)), k, (kernel, kernel), stride, pad)
    down = analog_conv(rng, "down", first.output, 70, (3, 3), 2, (0, 0, 1, 1))
    wide = analog_conv(rng, "wide", down.output, 300, (1, 1))
    narrow = analog_conv(rng, "narrow", wide.output, 20, (3, 3), 1, (1, 1, 1, 1), (0, 127))
    return Region(
        "chain",
        (first, down, wide, narrow),
        (Tensor("x", (c, size, size), layout="NHWC"),),
        (Tensor(narrow.output.name, narrow.output.shape, layout="NHWC"),),
    )


@pytest.mark.rotating(1)
@pytest.mark.parametrize(
    ("budget", "schedule"), [(None, "published"), (30_000, "published"), (None, "overlapped")]
)
def test_cycles_are_as_predicted(budget: int | None, schedule: str, tmp_path: Path) -> None:
    options = TilingOptions(budget, schedule=schedule)  # type: ignore[arg-type]
    measured = measure(make_case(chain(), options, "chain", 1, "analog"), tmp_path)
    passes = []
    for kernel, cycles in measured:
        if kernel.kind == "layer":
            call = kernel.program.call(next(kernel.program.order()))
            passes.append(-(-call.c // call.c_pass))
            ratio = cycles / kernel.predicted_cycles
            # Of many short DMA commands the driver needs less than the constants say.
            assert 0.94 < ratio < 1.04, (kernel.symbol, cycles, kernel.predicted_cycles)
    assert max(passes) == 3


def test_dense_and_unrolling(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    weight = ternary(rng, 600, 640)
    head = known_to_have_seven_bits(
        dense_layer("d", Tensor("v", (640,)), "w", weight, None, requant=requant(rng, 600, 640))
    )
    source = Tensor("x", (16, 16, 16))
    conv = analog_conv(rng, "c", source, 16, (3, 3), 1, (1, 1, 1, 1))
    region = Region(
        "both",
        (head, conv),
        (Tensor("v", (640,), layout="C"), replace(source, layout="NHWC")),
        (Tensor("w", (600,), layout="C"), replace(conv.output, layout="NHWC")),
    )
    cycles = {}
    for unroll in (1, 8):
        options = TilingOptions(schedule="overlapped", unroll=unroll)
        case = make_case(region, options, f"u{unroll}", 2, "analog")
        for kernel, spent in measure(case, tmp_path / str(unroll)):
            if kernel.kind == "layer":
                assert 0.97 < spent / kernel.predicted_cycles < 1.04, kernel.symbol
                cycles[kernel.layer_name, unroll] = spent
    assert cycles["d", 1] == pytest.approx(cycles["d", 8], rel=0.01)
    # Rows for 64 channels hold four columns: 256 positions become 64, a window is 6 wide.
    saved = 192 * CORE.position_cycles - 16 * 3 * 3 * CORE.row_cycles
    assert cycles["c", 1] - cycles["c", 8] == pytest.approx(saved, rel=0.02)
