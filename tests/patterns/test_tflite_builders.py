"""Builders of TFLite's operators: TVM and the interpreter agree, and they are read back."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byoc_dory.errors import IntegerFormError, UnsupportedError
from patterns.ops.convert import TableLookup, tabulate
from patterns.ops.float32.quantize import Quantize
from patterns.ops.moves.concat import Concat, Nearest
from patterns.ops.moves.pad import Interleave, PadAxes
from patterns.ops.moves.reshape import Slice, Transpose
from patterns.ops.tflite.averages import TfliteMean, mean_factor
from patterns.ops.tflite.binary import AddFactors, MultiplyFactors, TfliteBinary
from patterns.reading.node import Node
from patterns.reading.read import graph_of
from tests.patterns.build import module_of, run_tvm
from tests.reference.interpreter import Array, interpret

Rng = np.random.Generator
Written = tuple[list[tuple[int, ...]], Callable[..., Any]]


def integers(rng: Rng, *shape: int) -> Array:
    return rng.integers(-128, 128, shape).astype(np.int8)


def sizes(rng: Rng, count: int, high: int = 4) -> tuple[int, ...]:
    return tuple(int(size) for size in rng.integers(1, high + 1, count))


def agree(shapes: Sequence[tuple[int, ...]], write: Callable[..., Any], rng: Rng) -> Node:
    module = module_of(shapes, write)
    inputs = [integers(rng, *shape) for shape in shapes]
    made = run_tvm(module, *inputs)
    np.testing.assert_array_equal(interpret(module, inputs).outputs[0], made)
    return graph_of(module).in_order[-1]


def concat(rng: Rng) -> Written:
    shape, axis = sizes(rng, 3), int(rng.integers(3))
    shapes = [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes(rng, 3)]
    return shapes, lambda bb, *parts: Concat(axis).write(bb, parts, "concat_0")


def slices(rng: Rng) -> Written:
    shape = sizes(rng, 4, 6)
    places = [sorted(int(at) for at in rng.integers(0, size, 2)) for size in shape]
    strides = [1 if rng.integers(2) else -1 for _ in shape]
    begin = [pair[stride < 0] for pair, stride in zip(places, strides, strict=True)]
    counts = [pair[1] - pair[0] + 1 for pair in places]
    part = Slice(tuple(begin), tuple(counts), tuple(strides))
    return [shape], lambda bb, x: part.write(bb, [x], "slice_0")


def transpose(rng: Rng) -> Written:
    axes = [int(axis) for axis in rng.permutation(4)]
    return [sizes(rng, 4)], lambda bb, x: Transpose(tuple(axes)).write(bb, [x], "transpose_0")


def nearest(rng: Rng) -> Written:
    layout = "NCHW" if rng.integers(2) else "NHWC"
    shape = sizes(rng, 4, 5)
    at = layout.index("H")
    rows, columns = (rng.integers(0, shape[at + axis], 6).tolist() for axis in (0, 1))
    made = Nearest(tuple(rows), tuple(columns), layout=layout)
    return [shape], lambda bb, x: made.write(bb, [x], "nearest_0")


def interleave(rng: Rng) -> Written:
    layout = "NCHW" if rng.integers(2) else "NHWC"
    size, strides = sizes(rng, 2, 9), sizes(rng, 2, 3)
    start = tuple(int(n) for n in rng.integers(-3, 4, 2))
    made = Interleave(7, size, start, strides, layout=layout)
    return [sizes(rng, 4)], lambda bb, x: made.write(bb, [x], "interleave_0")


def pad_axes(rng: Rng) -> Written:
    widths = [tuple(pair) for pair in rng.integers(0, 3, (3, 2)).tolist()]
    return [sizes(rng, 3)], lambda bb, x: PadAxes(-9, tuple(widths)).write(bb, [x], "pad_axes_0")


def table(rng: Rng) -> Written:
    shape, axis = sizes(rng, 4), int(rng.integers(-4, 4))
    values = integers(rng, *((shape[axis], 256) if rng.integers(2) else (256,)))
    return [shape], lambda bb, x: TableLookup(values, axis=axis).write(bb, [x], "table_0")


def binary(rng: Rng) -> Written:
    function = ("add", "subtract", "multiply")[int(rng.integers(3))]
    scales = tuple(float(scale) for scale in np.exp(rng.uniform(-4, 0, 3)))
    zeros = tuple(int(zero) for zero in rng.integers(-128, 128, 3))
    parameters: Any = AddFactors.from_scales(scales, zeros)  # type: ignore[arg-type]
    if function == "multiply":
        parameters = MultiplyFactors.from_scales(scales, zeros)  # type: ignore[arg-type]
    shape = sizes(rng, 3)
    other = tuple(size if rng.integers(2) else 1 for size in shape)[int(rng.integers(3)) :]
    fixed = integers(rng, *other) if rng.integers(2) else None

    swapped = bool(rng.integers(2))

    def write(bb: Any, x: Any, y: Any = None) -> Any:
        a, b = (fixed, None) if swapped else (None, fixed)
        made = TfliteBinary(function, parameters, (-100, 110), a, b)  # type: ignore[arg-type]
        given = [x] if y is None else [y, x] if swapped else [x, y]
        return made.write(bb, given, "binary_0")

    return [shape, other] if fixed is None else [shape], write


def mean(rng: Rng) -> Written:
    count = int(rng.integers(1, 4))
    axes = sorted(int(axis) for axis in rng.choice(4, count, replace=False))
    shape = sizes(rng, 4, 6)
    scales = (float(np.exp(rng.uniform(-3, 0))), float(np.exp(rng.uniform(-3, 0))))
    factor = mean_factor(scales, math.prod(shape[axis] for axis in axes))
    zeros = tuple(int(zero) for zero in rng.integers(-128, 128, 2))
    keep = bool(rng.integers(2))
    made = TfliteMean(tuple(axes), *factor, zeros, keep_dims=keep)
    return [shape], lambda bb, x: made.write(bb, [x], "mean_0")


BUILDERS = (concat, slices, transpose, nearest, interleave, pad_axes, table, binary, mean)


@pytest.mark.rotating(3)
@pytest.mark.parametrize("draw", BUILDERS, ids=lambda draw: draw.__name__)
@settings(max_examples=6)
@given(seed=st.integers(0, 2**32 - 1))
def test_tvm_and_the_interpreter_agree(draw: Callable[[Rng], Written], seed: int) -> None:
    rng = np.random.default_rng(seed)
    shapes, write = draw(rng)
    node = agree(shapes, write, rng)
    assert (node.layer, len(node.inputs)) == (None, len(shapes))


def test_a_table_is_read_back() -> None:
    values = tabulate(lambda x: x * x)
    rng = np.random.default_rng(0)
    node = agree(
        [(1, 300)], lambda bb, x: TableLookup(values, zero_point=5).write(bb, [x], "table_0"), rng
    )
    assert node.op == TableLookup(values, zero_point=5)
    assert node.op.table.tolist() == [min(x * x, 127) for x in range(-128, 128)]


def test_a_constant_operand_is_read_back() -> None:
    rng = np.random.default_rng(0)
    parameters = MultiplyFactors.from_scales((0.1, 0.2, 0.3), (1, 2, 3))
    fixed = integers(rng, 2, 3)
    node = agree(
        [(1, 2, 3)],
        lambda bb, x: TfliteBinary("multiply", parameters, a=fixed).write(bb, [x], "binary_0"),
        rng,
    )
    assert node.op == TfliteBinary("multiply", parameters, a=fixed)


def test_floats_that_no_byte_can_hold_saturate() -> None:
    odd = np.asarray([[np.inf, -np.inf, np.nan, 1e30, -1e30, 0.05, -0.05, 0.15]], np.float32)
    module = module_of(
        [(1, 8)], lambda bb, x: Quantize(0.1, 3).write(bb, [x], "quantize_0"), "float32"
    )
    made = run_tvm(module, odd)
    np.testing.assert_array_equal(made, [[127, -128, 127, 127, -128, 4, 2, 5]])
    np.testing.assert_array_equal(interpret(module, [odd]).outputs[0], made)


@pytest.mark.parametrize(
    "write",
    [
        lambda bb, x: Slice.every([0, 3], [1, 3]).write(bb, [x], "slice_0"),
        lambda bb, x: Slice((0, 0), (1, 3), (1, 0)).write(bb, [x], "slice_0"),
        lambda bb, x: TableLookup(np.zeros(7, np.int8)).write(bb, [x], "table_0"),
        lambda bb, x: TfliteBinary(
            "add", AddFactors.from_scales((1, 1, 1), (0, 0, 0)), b=np.zeros((1, 9), np.int8)
        ).write(bb, [x], "binary_0"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(write: Callable[..., Any]) -> None:
    with pytest.raises(IntegerFormError):
        module_of([(1, 4)], write)


def test_scales_far_apart_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="finer"):
        MultiplyFactors.from_scales((1.0, 1.0, 1e-6), (0, 0, 0))


def test_a_product_of_numbers_that_have_one_sign_is_clipped() -> None:
    """TVM would conclude from an unsigned shift of negative numbers that no clip is needed."""
    factors = MultiplyFactors.from_scales((0.5, 0.5, 0.01), (127, -128, 5))
    assert factors.shift > 0
    agree(
        [(1, 300)] * 2,
        lambda bb, *x: TfliteBinary("multiply", factors).write(bb, x, "multiply_0"),
        np.random.default_rng(0),
    )
