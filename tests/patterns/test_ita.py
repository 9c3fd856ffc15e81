"""The accelerator's softmax and GELU, and sums of heads: C, LLVM, interpreter compute the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from byoc_dory.errors import IntegerFormError, UnsupportedError
from byoc_dory.layers.rowwise import ItaGelu, ItaSoftmax
from patterns.ops.pulp.elementwise import Accumulate
from patterns.ops.pulp.ita import ItaActivation, ItaMax
from patterns.reading.read import graph_of
from tests.patterns.build import run_tvm
from tests.patterns.test_types import RNG, agree, module_of
from tests.reference.interpreter import interpret

PUBLISHED = ItaSoftmax()
# Of the step 1/32, and so are its results.
GELU = ItaGelu(b=-80, c=-7091, mul=148, shift=21, add=0)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_a_softmax_in_c(dtype: str) -> None:
    def write(bb: Any, x: Any) -> Any:
        return [
            ItaMax(PUBLISHED).write(bb, [x], "published"),
            ItaMax(ItaSoftmax(group=0)).write(bb, [x], "whole_rows"),
            ItaMax(ItaSoftmax(10, 0, 127 * 256), dtype="int8").write(bb, [x], "short_last"),
        ]

    built = agree([((2, 3, 64), dtype)], write)
    node, *_ = graph_of(built.model.module).in_order
    assert node.kind == "ita_softmax" and node.output_dtype == "uint8"
    assert node.op == ItaMax(PUBLISHED)


@pytest.mark.rotating(20)
@pytest.mark.parametrize("group", [0, 1, 3, 16, 64])
@pytest.mark.parametrize("step_bits", [0, 3, 5, 7])
@pytest.mark.parametrize("length", [1, 16, 50])
def test_any_softmax(group: int, step_bits: int, length: int) -> None:
    parameters = ItaSoftmax(group, step_bits, 65280)
    module = module_of(
        [((200, length), "int8")],
        lambda bb, x: ItaMax(parameters).write(bb, [x], "ita_softmax_0"),
    )
    # Rows that grow, fall, are flat, and of every spread: what is shifted when depends on it.
    spread = RNG.integers(1, 129, (200, 1))
    x = RNG.integers(-spread, spread, (200, length))
    x[:40].sort(axis=1)
    x[40:60] = -np.sort(-x[40:60], axis=1)
    x[60:70] = x[60:70, :1]
    x = x.astype("int8")
    np.testing.assert_array_equal(run_tvm(module, x), interpret(module, [x]).outputs[0])


def test_every_distance_of_two_values() -> None:
    """All pairs of int8, in two groups: every shift of the sum, and every probability."""
    module = module_of(
        [((65536, 2), "int8")],
        lambda bb, x: ItaMax(ItaSoftmax(1, 5, 65280)).write(bb, [x], "ita_softmax_0"),
    )
    values = np.arange(-128, 128)
    x = np.stack(np.meshgrid(values, values), axis=-1).reshape(-1, 2).astype("int8")
    np.testing.assert_array_equal(run_tvm(module, x), interpret(module, [x]).outputs[0])


def test_probabilities_sum_to_less_than_one() -> None:
    module = module_of(
        [((1, 64), "int8")], lambda bb, x: ItaMax(PUBLISHED).write(bb, [x], "ita_softmax_0")
    )
    flat = run_tvm(module, np.full((1, 64), 9, "int8"))
    assert set(flat.reshape(-1).tolist()) == {3}  # 65280 // (64 * 256)
    peak = np.full((1, 64), -128, "int8")
    peak[0, 40] = 127
    assert run_tvm(module, peak)[0, 40] == 65280 // (256 + 63)


def test_a_softmax_that_cannot_be() -> None:
    def write(parameters: ItaSoftmax, source: str = "int8", dtype: str = "uint8") -> Any:
        return module_of(
            [((4, 64), source)],
            lambda bb, x: ItaMax(parameters, dtype=dtype).write(bb, [x], "softmax"),
        )

    with pytest.raises(UnsupportedError, match="numerator 65536"):
        write(ItaSoftmax(numerator=65536))
    with pytest.raises(UnsupportedError, match="0 to 32767, so that results fit int8"):
        write(PUBLISHED, dtype="int8")
    with pytest.raises(UnsupportedError, match="groups of -1"):
        write(ItaSoftmax(group=-1))
    with pytest.raises(UnsupportedError, match="softmax of int16"):
        write(PUBLISHED, "int16")


@pytest.mark.parametrize(
    "parameters",
    [GELU, ItaGelu(-35, -1500, 255, 14, -7), ItaGelu(0, 3, 1, 0, 5), ItaGelu(-2000, 900, 3, 22, 1)],
)
def test_a_gelu_of_every_byte(parameters: ItaGelu) -> None:
    module = module_of(
        [((256,), "int8")], lambda bb, x: ItaActivation(parameters).write(bb, [x], "ita_gelu_0")
    )
    (node,) = graph_of(module).in_order
    assert node.kind == "ita_gelu"
    assert node.op == ItaActivation(parameters)
    x = np.arange(-128, 128).astype("int8")
    np.testing.assert_array_equal(run_tvm(module, x), interpret(module, [x]).outputs[0])


def test_a_gelu_is_one() -> None:
    """Within one and a half steps of the real function, whose sign the accelerator turns."""
    module = module_of([((256,), "int8")], lambda bb, x: ItaActivation(GELU).write(bb, [x], "gelu"))
    x = np.arange(-128, 128).astype("int8")
    real = [value / 32 * 0.5 * (1 + math.erf(value / 32 / math.sqrt(2))) for value in x.tolist()]
    found = -run_tvm(module, x).astype("float64") / 32
    np.testing.assert_allclose(found, real, atol=1.5 / 32)


def test_a_gelu_that_cannot_be() -> None:
    with pytest.raises(UnsupportedError, match="mul = 256"):
        module_of(
            [((4,), "int8")],
            lambda bb, x: ItaActivation(ItaGelu(-1, -1, 256, 0, 0)).write(bb, [x], "gelu"),
        )
    with pytest.raises(UnsupportedError, match="GELU of uint8"):
        module_of([((4,), "uint8")], lambda bb, x: ItaActivation(GELU).write(bb, [x], "gelu"))


@pytest.mark.parametrize("heads", [2, 3, 12])
def test_sums_of_heads(heads: int) -> None:
    mul, shift = (171, 9) if heads < 12 else (2**27 + 1, 28)
    built = agree(
        [((5, 16), "int8")] * heads,
        lambda bb, *x: Accumulate(mul, -(3 << shift) // 2, shift).write(bb, x, "accumulate_0"),
    )
    (node,) = graph_of(built.model.module).in_order
    assert (node.kind, len(node.inputs)) == ("accumulate", heads)
    assert node.op == Accumulate(mul, -(3 << shift) // 2, shift)
    assert ("int64_t" in built.compiled.program.cpu_source) == (heads == 12)


def test_sums_that_cannot_be() -> None:
    types = [((5, 16), "int8"), ((5, 1), "int8")]
    with pytest.raises(IntegerFormError, match="different int8 tensors of one shape"):
        module_of(types, lambda bb, a, b: Accumulate(1, 0, 0).write(bb, [a, b], "sum"))
    with pytest.raises(IntegerFormError, match="a sum of 2 tensors"):
        module_of(types, lambda bb, a, _: Accumulate(1, 0, 0).write(bb, [a, a], "sum"))
    with pytest.raises(UnsupportedError, match="shift 32"):
        module_of(types[:1] * 2, lambda bb, *x: Accumulate(1, 0, 32).write(bb, x, "sum"))
