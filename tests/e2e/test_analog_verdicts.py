"""Layers written for the analog core that it refuses: a verdict with the value, and the CPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tvm import relax

import htvm
from byoc_dory.layers import AnalogRequant, Shift
from patterns.ops.analog.products import AnalogConv2d, AnalogDense
from patterns.ops.convert import Convert
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.dense import Dense

RNG = np.random.default_rng(4)
TERNARY = RNG.integers(-1, 2, (6, 8, 3, 3)).astype(np.int8)
REQUANT = AnalogRequant(4, (7, 9, 11, 13, 15, 17), (40,) * 6, 4, 1152)


def model(
    *,
    weight: np.ndarray = TERNARY,
    requant: AnalogRequant = REQUANT,
    inputs: tuple[int, int] = (-64, 63),
    clip: tuple[int, int] = (0, 63),
) -> htvm.Model:
    """A clip, a layer of the analog core, and one of the digital core."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 6, 5, 8), "int8"))
    with bb.function("main", [x]):
        with bb.dataflow():
            small = Convert(Shift(0), inputs).write(bb, [x], "convert_0")
            y = AnalogConv2d(weight, requant, clip, window=Window(padding=(1, 1, 1, 1))).write(
                bb, [small], "conv2d_0"
            )
            last = RNG.integers(-9, 9, (4, 6, 1, 1)).astype(np.int8)
            y = conv2d_of(last, np.zeros(4, np.int32), Window(), Shift(3)).write(
                bb, [y], "conv2d_1"
            )
            out = bb.emit_output(y)
        bb.emit_func_output(out)
    return htvm.load(bb.get(), name="ternary")


def built(source: htvm.Model, target: str = "diana") -> htvm.Module:
    module = htvm.build(source, target, "host")
    x = RNG.integers(-128, 128, (1, 6, 5, 8)).astype(np.int8)
    np.testing.assert_array_equal(module.run(x).outputs[0], module.reference(x)[0])
    return module


def test_what_the_core_knows_runs_there() -> None:
    assert built(model()).placement["conv2d_0"] == "analog"


@pytest.mark.rotating(2)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"weight": np.where(TERNARY == 1, 3, TERNARY).astype(np.int8)}, "a weight is 3"),
        ({"inputs": (-128, 127)}, "the input lies in [-128, 127]"),
        ({"inputs": (-64, 64)}, "the input lies in [-64, 64]"),
        ({"requant": replace(REQUANT, adc=(-64, 63))}, "a pass is clipped to [-64, 63]"),
        ({"clip": (0, 31)}, "the clip range is [0, 31]"),
    ],
)
def test_what_it_does_not_is_said_and_runs_on_the_cpu(
    change: dict[str, object], words: str
) -> None:
    source = model(**change)  # type: ignore[arg-type]
    module = built(source)
    assert module.placement["conv2d_0"] == "cpu"
    assert module.placement["conv2d_1"] == "digital"
    (row,) = [row for row in module.explain().rows if row.layer == "conv2d_0"]
    offers = {offer.accelerator: offer for offer in row.offers}
    assert not offers["analog"].accepted and words in offers["analog"].reason
    assert not offers["digital"].accepted
    with pytest.raises(htvm.errors.PolicyError) as caught:
        htvm.build(source, "diana", "host", policy={"conv2d_0": "analog"})
    assert words in str(caught.value) and "conv2d_0" in str(caught.value)


def test_an_eight_bit_layer_may_be_small_enough_by_its_weights() -> None:
    """What the analog core reads must fit 7 bits; the digital core only clips to 8."""
    for peak, home in ((3, "analog"), (120, "cpu")):
        bb = relax.BlockBuilder()
        x = relax.Var("x", relax.TensorType((1, 4), "int8"))
        with bb.function("main", [x]):
            with bb.dataflow():
                first = np.full((8, 4, 1, 1), peak, np.int8)
                y = Dense(first, np.zeros(8, np.int32), Shift(5), (0, 127)).write(
                    bb, [x], "dense_0"
                )
                weight = RNG.integers(-1, 2, (6, 8)).astype(np.int8)
                y = AnalogDense(weight, REQUANT).write(bb, [y], "dense_1")
                out = bb.emit_output(y)
            bb.emit_func_output(out)
        module = htvm.build(htvm.load(bb.get(), name="bounded"), "diana", "host")
        assert module.placement == {"dense_0": "digital", "dense_1": home}
        sample = np.full((1, 4), 127, np.int8)
        np.testing.assert_array_equal(module.run(sample).outputs[0], module.reference(sample)[0])
