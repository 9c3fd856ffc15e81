"""Operators of the integer research flows: C, TVM's LLVM and the interpreter compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import htvm
from byoc_dory.errors import IntegerFormError, UnsupportedError
from byoc_dory.layers.rowwise import ItaGelu, ItaSoftmax
from patterns.op import TensorType
from patterns.ops.convolution import Conv2dSums, Window
from patterns.ops.dense import LinearSums
from patterns.ops.float32.combine import RealCombine, RealMatmul
from patterns.ops.float32.elementary import RealRound
from patterns.ops.integer.combine import Combine, IntegerMatmul
from patterns.ops.integer.reduction import IntegerMean, Total
from patterns.ops.integer.rescale import Cast, Rescale
from patterns.ops.pulp.elementwise import (
    Accumulate,
    ElementWise,
    PulpDivide,
    PulpGelu,
    PulpHardSwish,
    PulpQuotient,
)
from patterns.ops.pulp.ita import ItaActivation, ItaMax
from patterns.ops.pulp.norm import PulpAffineNorm, PulpLayerNorm, PulpRmsNorm, PulpSoftmax
from patterns.primitive import PrimitiveOp
from patterns.reading.read import graph_of
from tests.patterns.test_types import BIAS, FILTER, MATRIX, RNG, agree, module_of
from tests.reference.interpreter import interpret

ROWS = ((1, 6, 32), "int8")


@pytest.mark.rotating(1)
@pytest.mark.parametrize(("dtype", "wide"), [("int8", False), ("int16", False), ("int32", True)])
def test_rescale(dtype: str, wide: bool) -> None:
    mul = RNG.integers(-40000, 40000, (6, 1))
    add = RNG.integers(-(2**20), 2**20, (1, 6, 1))
    built = agree(
        [((1, 6, 32), dtype)],
        lambda bb, x: Rescale(mul, add, 14, (0, 255), dtype="uint8").write(bb, [x], "rescale_0"),
    )
    (node,) = graph_of(built.model.module).in_order
    assert (node.kind, vars(node.op)["shift"], node.output_dtype) == ("rescale", 14, "uint8")
    assert ("int64_t" in built.compiled.program.cpu_source) == wide


@pytest.mark.rotating(3)
@pytest.mark.parametrize("function", ["add", "subtract", "multiply"])
@pytest.mark.parametrize("dtypes", [("int8", "uint8"), ("int32", "int8"), ("int32", "int32")])
def test_combine(function: Any, dtypes: tuple[str, str]) -> None:
    agree(
        [((1, 6, 5), dtypes[0]), ((6, 1), dtypes[1])],
        lambda bb, a, b: Combine(function).write(bb, [a, b], "combine_0"),
    )


@pytest.mark.rotating(1)
@pytest.mark.parametrize("dtypes", [("uint8", "int8"), ("int32", "int32")])
def test_matmul(dtypes: tuple[str, str]) -> None:
    agree(
        [((2, 3, 4, 7), dtypes[0]), ((3, 7, 5), dtypes[1])],
        lambda bb, a, b: IntegerMatmul().write(bb, [a, b], "matmul_0"),
    )
    agree(
        [((2, 3, 4, 7), dtypes[0]), ((3, 5, 7), dtypes[1])],
        lambda bb, a, b: IntegerMatmul(transpose_b=True).write(bb, [a, b], "matmul_0"),
    )
    with pytest.raises(IntegerFormError, match=r"\(4, 7\) and \(7, 5\) transposed"):
        module_of(
            [((4, 7), "int8"), ((7, 5), "int8")],
            lambda bb, a, b: IntegerMatmul(transpose_b=True).write(bb, [a, b], "matmul_0"),
        )


@pytest.mark.rotating(1)
@pytest.mark.parametrize("dtypes", [("int32", "uint8"), ("int8", "int8"), ("int16", "int32")])
def test_quotients(dtypes: tuple[str, str]) -> None:
    """Divisors of int8 are of both signs, and zero."""
    agree(
        [((2, 6, 5), dtypes[0]), ((6, 1), dtypes[1])],
        lambda bb, a, b: PulpQuotient(255 * 3, 3, -9).write(bb, [a, b], "quotient_0"),
    )
    with pytest.raises(UnsupportedError, match="62 bits"):
        PulpQuotient(2**31, 1, 1).result_of([TensorType((1,), "int32"), TensorType((1,), "int8")])
    with pytest.raises(IntegerFormError, match=r"\(6, 5\) and \(4,\)"):
        PulpQuotient(1, 1, 1).result_of([TensorType((6, 5)), TensorType((4,))])


@pytest.mark.rotating(1)
@pytest.mark.parametrize("keepdims", [True, False])
def test_sums_and_means(keepdims: bool) -> None:
    def write(bb: Any, x: Any) -> Any:
        return [
            IntegerMean((1,), keepdims=keepdims).write(bb, [x], "mean_0"),
            IntegerMean((-1, 1), keepdims=keepdims).write(bb, [x], "mean_1"),
            Total((2,), keepdims=keepdims).write(bb, [x], "total_0"),
        ]

    agree([((1, 8, 3, 4), "int8")], write)
    with pytest.raises(UnsupportedError, match="a mean of 3 integers"):
        module_of(
            [((1, 8, 3, 4), "int8")], lambda bb, x: IntegerMean((2,)).write(bb, [x], "mean_0")
        )


def test_sums_without_requantization_are_operators() -> None:
    def write(bb: Any, x: Any) -> Any:
        sums = Conv2dSums(FILTER, BIAS, Window(layout="NCHW")).write(bb, [x], "conv2d_sums_0")
        return Rescale(np.asarray(77), np.asarray(500), 12, (-128, 127)).write(
            bb, [sums], "rescale_0"
        )

    built = agree([((1, 3, 8, 8), "uint8")], write)
    assert [node.kind for node in graph_of(built.model.module).in_order] == [
        "conv2d_sums",
        "rescale",
    ]
    built = agree(
        [((7, 24), "uint8")],
        lambda bb, x: LinearSums(MATRIX, BIAS[:5]).write(bb, [x], "linear_sums_0"),
    )
    assert [info.dtype for info in built.model.outputs] == ["int32"]


@pytest.mark.rotating(1)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_softmaxes(dtype: str) -> None:
    def write(bb: Any, x: Any) -> Any:
        return [
            PulpSoftmax((1, 345, 62395), 255, 256).write(bb, [x], "integer_softmax_0"),
            PulpSoftmax((1, 86, 3888), 64, 256).write(bb, [x], "softmax_1"),
        ]

    agree([((1, 6, 32), dtype)], write)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_norms(dtype: str) -> None:
    weight = RNG.integers(-300000, 300000, 32)
    bias = RNG.integers(-9000, 9000, 32)

    def write(bb: Any, x: Any) -> Any:
        return [
            PulpLayerNorm.of(weight, bias, 2**14).write(bb, [x], "layer_norm_0"),
            PulpRmsNorm.of(weight * 10, 2**16).write(bb, [x], "rms_norm_0"),
            PulpAffineNorm.of(weight // 100, bias, 37, 2**13).write(bb, [x], "affine_0"),
        ]

    agree([((1, 6, 32), dtype)], write)


def test_products_of_reals_are_rounded_before_they_are_added() -> None:
    """Compilers may fuse both, with one rounding, which simulated cores and onnxruntime do not."""
    factor, summand = (RNG.normal(0, 1, (64, 1)).astype(np.float32) for _ in range(2))

    def write(bb: Any, x: Any) -> Any:
        product = RealCombine("multiply", b=factor).write(bb, [x], "combine_0")
        return RealCombine("add", b=summand).write(bb, [product], "combine_1")

    module = module_of([((1, 64, 64), "float32")], write)
    data = RNG.normal(0, 1, (1, 64, 64)).astype(np.float32)
    built = htvm.build(htvm.load(module), "generic.cpu", "host")
    for made in (interpret(module, [data]).outputs, built.run([data]).outputs):
        np.testing.assert_array_equal(made[0], data * factor + summand)


def test_a_norm_of_equal_values_divides_by_one() -> None:
    module = module_of(
        [ROWS],
        lambda bb, x: PulpLayerNorm.of(np.full(32, 1000), np.full(32, 64), 64).write(
            bb, [x], "layer_norm_0"
        ),
    )
    result = interpret(module, [np.full((1, 6, 32), -77, np.int8)]).outputs[0]
    np.testing.assert_array_equal(result, np.ones((1, 6, 32)))


def test_activations() -> None:
    def write(bb: Any, x: Any) -> Any:
        return [
            PulpGelu(-42, 1929).write(bb, [x], "gelu_0"),
            PulpHardSwish(122, 244, 42).write(bb, [x], "hard_swish_0"),
            PulpDivide(16384 * 200000, 400001).write(bb, [x], "divide_0"),
            PulpDivide(-30, 7).write(bb, [x], "divide_1"),
        ]

    agree([ROWS], write)
    agree(
        [((1, 64), "int16")],
        lambda bb, x: PulpDivide(16384 * 200000, 400001).write(bb, [x], "divide_0"),
    )
    with pytest.raises(UnsupportedError, match="may reach"):
        module_of(
            [((1, 64), "int16")],
            lambda bb, x: PulpHardSwish(765, 1530, 99).write(bb, [x], "swish_0"),
        )


def test_reals() -> None:
    import htvm

    # Integers, so that sums are exact in any order.
    matrix = RNG.integers(-8, 8, (16, 5)).astype(np.float32)
    high = np.asarray([7.0], "float32")

    def write(bb: Any, x: Any) -> Any:
        step = np.asarray([0.0357003], "float32")
        low = np.asarray([-8.0], "float32")
        y = RealCombine("divide", b=step).write(bb, [x], "real_0")
        y = RealRound().write(bb, [y], "real_round_0")
        z = RealCombine("maximum", b=low).write(bb, [y], "real_1")
        z = RealCombine("minimum", b=high).write(bb, [z], "real_2")
        return [y, z, RealMatmul(b=matrix).write(bb, [z], "real_matmul_0")]

    module = module_of([((1, 4, 16), "float32")], write)
    built = htvm.build(htvm.load(module), target="generic.cpu", platform="host")
    data = (RNG.standard_normal((1, 4, 16)) * 3).astype(np.float32)
    data[0, 0, :8] = [0.5, 1.5, -0.5, -2.5, 1e30, -3e9, 0.0, 2**22]
    data[0, 0, :4] *= np.float32(0.0357003)
    wanted = interpret(module, [data]).outputs
    for made in (built.run([data]).outputs, built.reference([data])):
        for array, expected in zip(made, wanted, strict=True):
            np.testing.assert_array_equal(array, expected)


WIDE: tuple[tuple[int, ...], str] = ((1, 6, 8), "int32")
NARROW: tuple[tuple[int, ...], str] = ((1, 6, 8), "int8")
ENTRIES = RNG.integers(-3000, 3000, 8)
APPLIED: list[tuple[PrimitiveOp, list[tuple[tuple[int, ...], str]]]] = [
    (Rescale(ENTRIES, np.asarray([[5]]), 9, (-128, 127), bound=4000), [WIDE]),
    (Rescale(np.asarray(3), np.asarray(-1), 0, (0, 255), "uint8"), [NARROW]),
    (Cast("int32"), [NARROW]),
    (Combine("subtract"), [WIDE, NARROW]),
    (Combine("multiply", ENTRIES), [WIDE]),
    (IntegerMatmul(transpose_b=True), [NARROW, NARROW]),
    (IntegerMean((-1,), keepdims=False), [NARROW]),
    (Total((1, 2)), [NARROW]),
    (PulpGelu(-42, 1929), [NARROW]),
    (PulpHardSwish(122, 244, 42), [NARROW]),
    (PulpDivide(-30, 7), [NARROW]),
    (PulpSoftmax((1, 345, 62395), 255, 256), [NARROW]),
    (PulpLayerNorm.of(ENTRIES, -ENTRIES, 64), [NARROW]),
    (PulpRmsNorm.of(ENTRIES, 64), [NARROW]),
    (PulpAffineNorm.of(ENTRIES, -ENTRIES, 37, 64), [NARROW]),
    (ItaMax(ItaSoftmax(4, 5, 127 * 256), "int8"), [NARROW]),
    (ItaActivation(ItaGelu(-80, -7091, 148, 21, 0)), [NARROW]),
    (Accumulate(11, 4, 5, (0, 100)), [NARROW, NARROW]),
]


@pytest.mark.parametrize(("op", "types"), APPLIED, ids=lambda item: getattr(item, "kind", ""))
def test_operators_come_back_equal(op: PrimitiveOp, types: Any) -> None:
    """What is read is what was written, of the type that the operator said."""
    (node,) = graph_of(module_of(types, lambda bb, *x: op.write(bb, x, "operator"))).in_order
    assert node.op == op and node.kind == op.kind
    said = op.result_of([TensorType(*kind) for kind in types])
    assert said == TensorType(node.output_shape, node.output_dtype)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("op", [PulpGelu(-42, 1929), PulpHardSwish(122, 244, 42)])
def test_tables_are_the_functions(op: ElementWise, dtype: str) -> None:
    module = module_of([((256,), dtype)], lambda bb, x: op.write(bb, [x], "operator"))
    values = np.arange(256, dtype="uint8").view(dtype)
    np.testing.assert_array_equal(op.tabulated(dtype), interpret(module, [values]).outputs[0])
