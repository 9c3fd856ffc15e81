"""Golden C of DIANA's cores: each kind of layer, each schedule, borders of regions.

tests/byoc_dory/test_emit_golden.py has a region of the digital core as a whole, and its layers
untiled, tiled with one buffer and tiled with two.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from byoc_dory.layers import (
    Layer,
    Shift,
    Tensor,
    add_layer,
    conv2d_layer,
    dense_layer,
    depthwise_layer,
)
from byoc_dory.options import TilingOptions
from byoc_dory.region import BorderMap, Region
from byoc_dory.soc.diana.description import DIANA
from tests.byoc_dory.analog import analog_conv, known_to_have_seven_bits, requant, ternary
from tests.byoc_dory.layers import int8, int32
from tests.generated.golden import check_golden
from tests.generated.kernels import chain, code_of, text_of

MAPS = Tensor("x", (20, 10, 9), layout="NHWC")
SAME = (1, 1, 1, 1)


def digital(kind: str) -> Layer:
    """A layer of the digital core whose sizes are no multiples of 16."""
    rng = np.random.default_rng(3)
    end = {"requant": Shift(8), "clip": (0, 127)}
    if kind == "conv2d":
        weight, bias = int8(rng, 37, 20, 3, 3), int32(rng, 37)
        return conv2d_layer("conv", MAPS, "y", weight, bias, pad=SAME, **end)
    if kind == "conv2d_strided":
        weight, bias = int8(rng, 18, 20, 5, 3), int32(rng, 18)
        pad = (2, 1, 1, 0)
        return conv2d_layer("conv", MAPS, "y", weight, bias, pad=pad, stride=(2, 2), **end)
    if kind == "depthwise":
        weight, bias = int8(rng, 20, 1, 3, 3), int32(rng, 20)
        return depthwise_layer("depthwise", MAPS, "y", weight, bias, pad=SAME, **end)
    if kind == "dense":
        source = Tensor("x", (70,), layout="C")
        return dense_layer("dense", source, "y", int8(rng, 37, 70), int32(rng, 37), **end)
    return add_layer("add", MAPS, replace(MAPS, name="z"), "y", requant=Shift(1))


def analog(kind: str) -> Layer:
    """A layer of the analog core; ``conv2d_passes`` has more inputs than the array has rows."""
    rng = np.random.default_rng(4)
    if kind == "dense":
        made = dense_layer(
            "dense", Tensor("x", (70,), layout="C"), "y", ternary(rng, 37, 70), None,
            requant=requant(rng, 37, 70), clip=(-128, 127),
        )  # fmt: skip
        return known_to_have_seven_bits(made)
    source = replace(MAPS, shape=(140 if kind == "conv2d_passes" else 20, 10, 9))
    return analog_conv(rng, "conv", source, 21, (3, 3), pad=SAME, clip=(0, 63))


def both(layer: Layer, home: str, *tight: int) -> str:
    """The layer's function under both schedules, in all of L1 and in so little that it is tiled."""
    parts = []
    for schedule in ("published", "overlapped"):
        for budget in (None, *tight):
            options = TilingOptions(l1_budget=budget, schedule=schedule)  # type: ignore[arg-type]
            code = code_of(chain("region", (layer,)), DIANA, options, home)
            (kernel,) = (kernel for kernel in code.kernels if kernel.layer is not None)
            assert budget is None or "(1 in all)" not in kernel.source, (schedule, budget)
            what = "all of L1" if budget is None else f"{budget} B of L1"
            parts.append(f"/* ==== {schedule}, {what} ==== */\n\n{kernel.source.strip()}\n")
    return "\n".join(parts)


DIGITAL = {
    "conv2d": (3_000,),
    "conv2d_strided": (3_000,),
    "depthwise": (2_000, 8_000),  # one buffer, and two
    "dense": (100,),
    "add": (2_000, 8_000),
}
ANALOG = {"conv2d": (3_000,), "conv2d_passes": (9_000,), "dense": ()}


@pytest.mark.parametrize("kind", DIGITAL)
def test_digital_layers(kind: str, update_golden: bool) -> None:
    text = both(digital(kind), "digital", *DIGITAL[kind])
    check_golden(f"diana/digital_{kind}.c", text, update_golden)


@pytest.mark.parametrize("kind", ANALOG)
def test_analog_layers(kind: str, update_golden: bool) -> None:
    text = both(analog(kind), "analog", *ANALOG[kind])
    check_golden(f"diana/analog_{kind}.c", text, update_golden)


def test_unrolled_columns(update_golden: bool) -> None:
    """The array holds its weights several times, side by side."""
    options = TilingOptions(unroll=4)
    text = text_of(code_of(chain("region", (analog("conv2d"),)), DIANA, options, "analog"))
    check_golden("diana/analog_unrolled.c", text, update_golden)


def test_tensors_that_stay_in_l1(update_golden: bool) -> None:
    """A residual block on both cores: what passes between them never leaves L1."""
    rng = np.random.default_rng(5)
    first = conv2d_layer(
        "first", Tensor("x", (16, 8, 8), layout="NHWC"), "t1", int8(rng, 16, 16, 3, 3),
        int32(rng, 16), pad=SAME, requant=Shift(11),
    )  # fmt: skip
    second = analog_conv(rng, "second", first.output, 16, (3, 3), pad=SAME)
    total = add_layer("sum", first.output, second.output, "t2", requant=Shift(1))
    last = conv2d_layer("last", total.output, "y", int8(rng, 8, 16, 1, 1), None, requant=Shift(8))
    region = chain(
        "block", (first, second, total, last), ("digital", "analog", "digital", "digital")
    )
    code = code_of(region, DIANA, TilingOptions(), None)
    plan = code.plan
    assert plan is not None and set(plan.resident) == {"t1", "second_out", "t2"}
    check_golden("diana/resident.c", text_of(code), update_golden)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_borders_of_a_region(layout: str, update_golden: bool) -> None:
    """Conversions on the way in and out, of a map, of one channel and of a vector."""
    rng = np.random.default_rng(6)
    many = Tensor("x", (5, 3, 23), layout=layout)  # type: ignore[arg-type]
    single = Tensor("z", (1, 3, 8), layout=layout)  # type: ignore[arg-type]
    first = conv2d_layer("first", many, "y", int8(rng, 6, 5, 1, 1), None, requant=Shift(7))
    second = conv2d_layer("second", single, "w", int8(rng, 6, 1, 1, 1), None, requant=Shift(7))
    vector = Tensor("v", (9,), layout="C")
    third = dense_layer("third", vector, "u", int8(rng, 5, 9), None, requant=Shift(7))
    outputs = [
        replace(layer.output, layout=layout if len(layer.output.shape) > 1 else "C")
        for layer in (first, second, third)
    ]
    region = Region("borders", (first, second, third), (many, single, vector), tuple(outputs))
    code = code_of(region, DIANA, TilingOptions(), "digital")
    kernels = tuple(kernel for kernel in code.kernels if kernel.layer is None)
    text = text_of(replace(code, kernels=kernels))
    check_golden(f"diana/borders_{layout}.c", text, update_golden)


def test_a_border_with_a_table(update_golden: bool) -> None:
    """An input that is requantized byte by byte on the way in."""
    rng = np.random.default_rng(7)
    source = Tensor("x", (3, 4, 6), layout="NHWC")
    layer = conv2d_layer(
        "conv", replace(source, name="mapped"), "y", int8(rng, 4, 3, 1, 1), None, requant=Shift(7)
    )
    table = np.roll(np.arange(256, dtype=np.uint8), 3)
    output = replace(layer.output, layout="NHWC")
    maps = (BorderMap("mapped", "x", table),)
    region = Region("mapped", (layer,), (source,), (output,), maps)
    code = code_of(region, DIANA, TilingOptions(), "digital")
    check_golden("diana/border_table.c", text_of(code), update_golden)
