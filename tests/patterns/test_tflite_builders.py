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
from patterns.ops import movement
from patterns.ops.float32 import borders as floats
from patterns.ops.table_map import table_map, tabulate
from patterns.ops.tflite import arithmetic
from patterns.reading.read import Node, read_graph
from tests.interpreter import Array, interpret
from tests.patterns.build import module_of, run_tvm

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
    return read_graph(module)[-1]


def concat(rng: Rng) -> Written:
    shape, axis = sizes(rng, 3), int(rng.integers(3))
    shapes = [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes(rng, 3)]
    return shapes, lambda bb, *parts: movement.concat(bb, parts, axis, name="concat_0")


def slices(rng: Rng) -> Written:
    shape = sizes(rng, 4, 6)
    places = [sorted(int(at) for at in rng.integers(0, size, 2)) for size in shape]
    strides = [1 if rng.integers(2) else -1 for _ in shape]
    begin = [pair[stride < 0] for pair, stride in zip(places, strides, strict=True)]
    counts = [pair[1] - pair[0] + 1 for pair in places]
    return [shape], lambda bb, x: movement.slice_axes(bb, x, begin, counts, strides, name="slice_0")


def transpose(rng: Rng) -> Written:
    axes = [int(axis) for axis in rng.permutation(4)]
    return [sizes(rng, 4)], lambda bb, x: movement.transpose(bb, x, axes, name="transpose_0")


def nearest(rng: Rng) -> Written:
    layout = "NCHW" if rng.integers(2) else "NHWC"
    shape = sizes(rng, 4, 5)
    at = layout.index("H")
    rows, columns = (rng.integers(0, shape[at + axis], 6).tolist() for axis in (0, 1))
    return [shape], lambda bb, x: movement.nearest(
        bb, x, rows, columns, layout=layout, name="nearest_0"
    )


def interleave(rng: Rng) -> Written:
    layout = "NCHW" if rng.integers(2) else "NHWC"
    size, strides = sizes(rng, 2, 9), sizes(rng, 2, 3)
    start = tuple(int(n) for n in rng.integers(-3, 4, 2))
    return [sizes(rng, 4)], lambda bb, x: movement.interleave(
        bb,
        x,
        size,
        start,
        strides,
        7,
        layout=layout,
        name="interleave_0",  # type: ignore[arg-type]
    )


def pad_axes(rng: Rng) -> Written:
    widths = [tuple(pair) for pair in rng.integers(0, 3, (3, 2)).tolist()]
    return [sizes(rng, 3)], lambda bb, x: movement.pad_axes(bb, x, widths, -9, name="pad_axes_0")


def table(rng: Rng) -> Written:
    shape, axis = sizes(rng, 4), int(rng.integers(-4, 4))
    values = integers(rng, *((shape[axis], 256) if rng.integers(2) else (256,)))
    return [shape], lambda bb, x: table_map(bb, x, values, axis=axis, name="table_0")


def binary(rng: Rng) -> Written:
    function = ("add", "subtract", "multiply")[int(rng.integers(3))]
    scales = tuple(float(scale) for scale in np.exp(rng.uniform(-4, 0, 3)))
    zeros = tuple(int(zero) for zero in rng.integers(-128, 128, 3))
    parameters: Any = arithmetic.TfliteAdd.from_scales(scales, zeros)  # type: ignore[arg-type]
    if function == "multiply":
        parameters = arithmetic.TfliteMultiply.from_scales(scales, zeros)  # type: ignore[arg-type]
    shape = sizes(rng, 3)
    other = tuple(size if rng.integers(2) else 1 for size in shape)[int(rng.integers(3)) :]
    fixed = integers(rng, *other) if rng.integers(2) else None

    swapped = bool(rng.integers(2))

    def write(bb: Any, x: Any, y: Any = None) -> Any:
        pair = (x, y if fixed is None else fixed)
        pair = pair[::-1] if swapped else pair
        return arithmetic.binary(bb, function, pair, parameters, (-100, 110), name="binary_0")  # type: ignore[arg-type]

    return [shape, other] if fixed is None else [shape], write


def mean(rng: Rng) -> Written:
    count = int(rng.integers(1, 4))
    axes = sorted(int(axis) for axis in rng.choice(4, count, replace=False))
    shape = sizes(rng, 4, 6)
    scales = (float(np.exp(rng.uniform(-3, 0))), float(np.exp(rng.uniform(-3, 0))))
    factor = arithmetic.mean_factor(scales, math.prod(shape[axis] for axis in axes))
    zeros = tuple(int(zero) for zero in rng.integers(-128, 128, 2))
    keep = bool(rng.integers(2))
    return [shape], lambda bb, x: arithmetic.mean(
        bb,
        x,
        axes,
        factor,
        zeros,
        keep_dims=keep,
        name="mean_0",  # type: ignore[arg-type]
    )


BUILDERS = (concat, slices, transpose, nearest, interleave, pad_axes, table, binary, mean)


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
        [(1, 300)], lambda bb, x: table_map(bb, x, values, zero_point=5, name="table_0"), rng
    )
    assert (node.kind, node.attrs["zero_point"]) == ("table", 5)
    assert node.attrs["table"] == tuple(min(x * x, 127) for x in range(-128, 128))


def test_a_constant_operand_is_read_back() -> None:
    rng = np.random.default_rng(0)
    parameters = arithmetic.TfliteMultiply.from_scales((0.1, 0.2, 0.3), (1, 2, 3))
    fixed = integers(rng, 2, 3)
    node = agree(
        [(1, 2, 3)],
        lambda bb, x: arithmetic.binary(bb, "multiply", (fixed, x), parameters, name="binary_0"),
        rng,
    )
    assert node.attrs["a"] == tuple(fixed.reshape(-1).tolist())
    assert (node.attrs["a_shape"], "b" in node.attrs) == ((2, 3), False)


def test_floats_that_no_byte_can_hold_saturate() -> None:
    odd = np.asarray([[np.inf, -np.inf, np.nan, 1e30, -1e30, 0.05, -0.05, 0.15]], np.float32)
    module = module_of(
        [(1, 8)], lambda bb, x: floats.quantize(bb, x, 0.1, 3, name="quantize_0"), "float32"
    )
    made = run_tvm(module, odd)
    np.testing.assert_array_equal(made, [[127, -128, 127, 127, -128, 4, 2, 5]])
    np.testing.assert_array_equal(interpret(module, [odd]).outputs[0], made)


@pytest.mark.parametrize(
    "write",
    [
        lambda bb, x: movement.slice_axes(bb, x, [0, 3], [1, 3], name="slice_0"),
        lambda bb, x: movement.slice_axes(bb, x, [0, 0], [1, 3], [1, 0], name="slice_0"),
        lambda bb, x: table_map(bb, x, np.zeros(7, np.int8), name="table_0"),
        lambda bb, x: arithmetic.binary(
            bb, "add", (x, np.zeros((1, 9), np.int8)),
            arithmetic.TfliteAdd.from_scales((1, 1, 1), (0, 0, 0)), name="binary_0",
        ),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(write: Callable[..., Any]) -> None:
    with pytest.raises(IntegerFormError):
        module_of([(1, 4)], write)


def test_scales_far_apart_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="finer"):
        arithmetic.TfliteMultiply.from_scales((1.0, 1.0, 1e-6), (0, 0, 0))
