"""Conversions in the source that retargeting cannot leave out."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import relax

import htvm
from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import MulShift, Requant, Shift, TfliteRequant
from htvm.quantization import retarget
from patterns.ops.convert import Convert
from patterns.ops.dense import Dense
from tests.reference.interpreter import interpret

RNG = np.random.default_rng(8)
TIMES_ONE = MulShift((256,), (8,), (128,))


def model(requant: Requant, clip: tuple[int, int], offset: int) -> htvm.Model:
    """A conversion and a fully connected layer."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 2), "int8"))
    weight = RNG.integers(-99, 99, (6, 2)).astype(np.int8)
    with bb.function("main", [x]):
        with bb.dataflow():
            value = Convert(requant, clip, offset=offset).write(bb, [x], "convert_0")
            scaled = MulShift((9,), (10,), (512,))
            value = Dense(weight, np.zeros(6, np.int32), scaled).write(bb, [value], "dense_0")
            result = bb.emit_output(value)
        bb.emit_func_output(result)
    return htvm.load(bb.get())


@pytest.mark.parametrize(
    ("requant", "clip", "offset", "words"),
    [
        (TIMES_ONE, (-128, 127), 60, "zero to zero"),
        (Shift(1), (-128, 127), -100, "zero to zero"),
        (TfliteRequant((2**30,), (1,), 3), (-128, 127), 5, "zero to zero"),
        (MulShift((256, 128), (8,), (0,)), (-128, 127), 0, "each channel"),
        (TfliteRequant((2**30, 2**29), (0, 0), 0), (-128, 127), 0, "each channel"),
    ],
)
def test_more_than_a_change_of_scale_is_refused(
    requant: Requant, clip: tuple[int, int], offset: int, words: str
) -> None:
    with pytest.raises(UnsupportedError) as caught:
        retarget(model(requant, clip, offset))
    assert words in str(caught.value) and "convert_0" in str(caught.value)


@pytest.mark.parametrize(
    ("requant", "clip", "offset"),
    [
        (TIMES_ONE, (-128, 127), 0),
        (TIMES_ONE, (0, 127), 0),
        (TIMES_ONE, (-5, 127), 0),
        (TIMES_ONE, (0, 40), 0),
        (Shift(1), (-128, 127), 1),
        (Shift(2), (-128, 127), 2),
        (TfliteRequant((2**30,), (0,), 0), (0, 127), 0),
    ],
)
def test_a_change_of_scale_keeps_what_the_network_computes(
    requant: Requant, clip: tuple[int, int], offset: int
) -> None:
    source = model(requant, clip, offset)
    result = retarget(source).model
    for _ in range(20):
        x = RNG.integers(-128, 128, (1, 2)).astype(np.int8)
        wanted = interpret(source.module, [x]).outputs[0].astype(int)
        assert np.abs(interpret(result.module, [x]).outputs[0] - wanted).max() <= 4
