"""Builders: what they write means the same to TVM and to the interpreter, and is read back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import MulShift, Requant, Shift, TfliteRequant
from patterns.ops.add import Add
from patterns.ops.convert import Convert
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.dense import Dense
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.pad import Pad
from patterns.ops.moves.reshape import Reshape
from patterns.ops.tflite.averages import AveragePool
from patterns.ops.tflite.binary import AddFactors, TfliteAdd
from patterns.reading.node import Node
from patterns.reading.read import graph_of
from tests.patterns.build import Writer, module_of, run_tvm
from tests.reference.interpreter import Array, interpret

RNG = np.random.default_rng(7)


def int8(*sizes: int) -> Array:
    return RNG.integers(-128, 128, sizes).astype(np.int8)


def agree(shapes: list[tuple[int, ...]], write: Writer) -> Node:
    """Check that TVM and the interpreter agree; return the last operator as read."""
    module = module_of(shapes, write)
    inputs = [int8(*sizes) for sizes in shapes]
    made = run_tvm(module, *inputs)
    assert made.dtype == np.int8
    assert made.size < 8 or len(np.unique(made)) > 2, "the test data say nothing"
    np.testing.assert_array_equal(interpret(module, inputs).outputs[0], made)
    return graph_of(module).in_order[-1]


def tflite(channels: int) -> TfliteRequant:
    multipliers = RNG.integers(2**30, 2**31, channels).tolist()
    shifts = RNG.integers(-9, -7, channels).tolist()
    return TfliteRequant(tuple(multipliers), tuple(shifts), -11)


@pytest.mark.rotating(4)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize(
    ("k", "c", "groups", "kernel", "stride", "pads", "dilation"),
    [
        (8, 5, 1, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
        (6, 6, 6, (3, 5), (2, 2), (0, 1, 1, 2), (1, 1)),
        (12, 6, 6, (3, 3), (1, 2), (0, 0, 0, 0), (1, 1)),
        (6, 4, 2, (1, 1), (2, 1), (0, 0, 0, 0), (1, 1)),
        (3, 4, 1, (3, 3), (1, 1), (2, 2, 2, 2), (2, 2)),
    ],
    ids=["plain", "depthwise", "multiplier-2", "grouped", "dilated"],
)
def test_conv2d(
    layout: str,
    k: int,
    c: int,
    groups: int,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    pads: tuple[int, int, int, int],
    dilation: tuple[int, int],
) -> None:
    weight, bias = int8(k, c // groups, *kernel), RNG.integers(-5000, 5000, k).astype(np.int32)
    requant = tflite(k)

    def write(bb: Any, x: Any) -> Any:
        window = Window(stride, pads, dilation, groups, layout)
        return conv2d_of(weight, bias, window, requant, (-100, 120)).write(bb, [x], "conv2d_0")

    sizes = (1, 9, 7, c) if layout == "NHWC" else (1, c, 9, 7)
    node = agree([sizes], write)
    layer = node.layer
    assert layer is not None
    assert (node.name, node.inputs) == ("conv2d_0", ("input_0",))
    assert layer.op == ("depthwise" if groups == c == k else "conv2d")
    np.testing.assert_array_equal(layer.weight, weight)
    np.testing.assert_array_equal(layer.bias, bias)
    assert (layer.K, layer.C, layer.iy, layer.ix) == (k, c, 9, 7)
    assert (layer.stride, layer.pad, layer.dilation) == (stride, pads, dilation)
    assert (layer.requant, layer.clip, layer.groups) == (requant, (-100, 120), groups)
    assert layer.inputs[0].shape == (c, 9, 7)
    assert layer.inputs[0].layout == layout


@pytest.mark.parametrize(
    "requant", [Shift(9), MulShift((3,), (10,), (512,)), tflite(5)], ids=["shift", "mul", "tflite"]
)
def test_dense(requant: Requant) -> None:
    weight, bias = int8(5, 33), RNG.integers(-5000, 5000, 5).astype(np.int32)
    node = agree([(1, 33)], lambda bb, x: Dense(weight, bias, requant).write(bb, [x], "dense_0"))
    assert node.layer is not None
    assert node.kind == node.layer.op == "dense"
    np.testing.assert_array_equal(node.layer.weight, weight[:, :, None, None])
    np.testing.assert_array_equal(node.layer.bias, bias)
    assert node.layer.requant == requant
    assert node.layer.inputs[0].layout == "C"


def test_add_by_shift() -> None:
    node = agree(
        [(1, 4, 5, 3)] * 2,
        lambda bb, a, b: Add(Shift(1), (0, 127)).write(bb, [a, b], "add_0"),
    )
    assert node.layer is not None
    assert node.inputs == ("input_0", "input_1")
    assert (node.layer.requant, node.layer.clip) == (Shift(1), (0, 127))


def test_add_of_a_tensor_to_itself() -> None:
    node = agree([(1, 40)], lambda bb, a: Add(Shift(1)).write(bb, [a, a], "add_0"))
    assert node.inputs == ("input_0", "input_0")


@pytest.mark.parametrize("seed", range(3))
def test_tflite_add_for_all_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scales = tuple(float(value) for value in np.exp(rng.uniform(-5, 1, 3)))
    zeros = tuple(int(value) for value in rng.integers(-128, 128, 3))
    parameters = AddFactors.from_scales(scales, zeros)  # type: ignore[arg-type]
    a, b = (item.reshape(1, -1) for item in np.meshgrid(*[np.arange(-128, 128)] * 2))
    inputs = [a.astype(np.int8), b.astype(np.int8)]
    module = module_of(
        [(1, 65536)] * 2,
        lambda bb, x, y: TfliteAdd(parameters, (-120, 127)).write(bb, [x, y], "add_0"),
    )
    made = run_tvm(module, *inputs)
    np.testing.assert_array_equal(interpret(module, inputs).outputs[0], made)
    real = scales[0] * (a - zeros[0]) + scales[1] * (b - zeros[1])
    exact = np.clip(real / scales[2] + zeros[2], -120, 127)
    assert np.abs(made - exact).max() <= 0.51
    node = graph_of(module).in_order[0]
    assert node.op == TfliteAdd(parameters, (-120, 127))
    assert node.layer is not None
    assert isinstance(node.layer.requant, TfliteRequant)
    assert node.layer.requant.input_zero_points == zeros[:2]


def test_an_absurd_add_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="finer"):
        AddFactors.from_scales((1.0, 1.0, 1e-7), (0, 0, 0))


@pytest.mark.parametrize(
    "requant",
    [Shift(2), MulShift((77,), (6,), (32,)), TfliteRequant((1234567890,), (-1,), 5)],
    ids=str,
)
def test_convert(requant: Requant) -> None:
    op = Convert(requant, (-90, 90), offset=17)  # type: ignore[arg-type]
    node = agree([(1, 300)], lambda bb, x: op.write(bb, [x], "convert_0"))
    assert node.op == op


@pytest.mark.rotating(3)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize(
    ("kernel", "strides", "pads"),
    [
        ((3, 3), (2, 2), (1, 1, 1, 1)),
        ((8, 6), (8, 6), (0, 0, 0, 0)),
        ((2, 3), (1, 2), (0, 0, 1, 2)),
    ],
)
def test_pools(
    layout: str,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, int, int, int],
) -> None:
    sizes = (1, 8, 6, 5) if layout == "NHWC" else (1, 5, 8, 6)
    average = AveragePool(kernel, strides, pads, layout=layout)
    node = agree([sizes], lambda bb, x: average.write(bb, [x], "average_pool_0"))
    assert node.op == average
    largest = MaxPool(kernel, strides, pads, layout)
    node = agree([sizes], lambda bb, x: largest.write(bb, [x], "max_pool_0"))
    assert node.op == largest


def test_an_average_over_nothing_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="no elements"):
        module_of(
            [(1, 4, 4, 2)],
            lambda bb, x: AveragePool((2, 2), (1, 1), (2, 0, 0, 0)).write(bb, [x], "pool_0"),
        )


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_pad_and_reshape(layout: str) -> None:
    padding = (1, 2, 3, 4)
    pad = Pad(-9, padding, layout)
    assert agree([(1, 4, 5, 6)], lambda bb, x: pad.write(bb, [x], "pad_0")).op == pad
    reshape = Reshape((1, 120))
    node = agree([(1, 4, 5, 6)], lambda bb, x: reshape.write(bb, [x], "reshape_0"))
    assert (node.op, node.output_shape) == (reshape, (1, 120))
