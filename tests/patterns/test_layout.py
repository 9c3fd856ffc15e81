"""Sums and paddings are read in the layout of what they are connected to."""

from __future__ import annotations

import time

import numpy as np
import pytest
from tvm import relax
from tvm.ir import IRModule

from byoc_dory.layers import Shift
from patterns.ops.add import Add
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.pad import Pad
from patterns.reading.building import with_layouts
from patterns.reading.node import Node
from patterns.reading.read import graph_of

SHAPES = {"NHWC": (1, 5, 7, 3), "NCHW": (1, 3, 5, 7)}


def read(write, shape: tuple[int, ...]) -> dict[str, Node]:  # type: ignore[no-untyped-def]
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, "int8"))
    with bb.function("main", [x]):
        with bb.dataflow():
            result = bb.emit_output(write(bb, x))
        bb.emit_func_output(result)
    module: IRModule = bb.get()
    return {node.name: node for node in graph_of(module).in_order}


def conv(bb: relax.BlockBuilder, x: relax.Var, layout: str) -> relax.Var:
    weight, bias = np.ones((4, 3, 1, 1), np.int8), np.zeros(4, np.int32)
    return conv2d_of(weight, bias, Window(layout=layout), Shift(1)).write(bb, [x], "conv2d_0")


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_a_sum_follows_the_convolution_that_reads_it(layout: str) -> None:
    def write(bb: relax.BlockBuilder, x: relax.Var) -> relax.Var:
        first = Add(Shift(1)).write(bb, [x, x], "add_0")
        return conv(bb, Add(Shift(1)).write(bb, [first, x], "add_1"), layout)

    nodes = read(write, SHAPES[layout])
    for name in ("add_0", "add_1"):
        layer = nodes[name].layer
        assert layer is not None and (layer.C, layer.iy, layer.ix) == (3, 5, 7)
        assert (layer.K, layer.oy, layer.ox) == (3, 5, 7)
        for tensor in (*layer.inputs, layer.output):
            assert (tensor.shape, tensor.layout) == ((3, 5, 7), layout)


def test_a_sum_alone_or_between_both_layouts_is_read_as_nhwc() -> None:
    def write(bb: relax.BlockBuilder, x: relax.Var) -> relax.Var:
        pooled = MaxPool(kernel=(1, 1), strides=(1, 1), layout="NHWC").write(bb, [x], "max_pool_0")
        return conv(bb, Add(Shift(1)).write(bb, [pooled, x], "add_0"), "NCHW")

    alone = read(lambda bb, x: Add(Shift(1)).write(bb, [x, x], "add_0"), (1, 3, 5, 7))["add_0"]
    between = read(write, (1, 3, 5, 7))["add_0"]
    for node in (alone, between):
        assert node.layer is not None and node.layer.output.shape == (7, 3, 5)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("padding", [(2, 0, 1, 0), (0, 2, 0, 1), (1, 2, 3, 4)])
def test_a_padding_of_one_axis_is_read_as_it_was_written(
    padding: tuple[int, int, int, int], layout: str
) -> None:
    def write(bb: relax.BlockBuilder, x: relax.Var) -> relax.Var:
        return conv(bb, Pad(-7, padding, layout=layout).write(bb, [x], "pad_0"), layout)

    attrs = vars(read(write, SHAPES[layout])["pad_0"].op)
    assert (attrs["padding"], attrs["value"], attrs["layout"]) == (padding, -7, layout)


def test_the_work_for_each_operator_of_a_chain_is_bounded() -> None:
    shape, op = ((1, 4),), Add(Shift(1))
    names = [f"add_{number}" for number in range(20_000)]
    nodes = [
        Node(name, op, (before, before), name, shape * 2, shape[0])
        for name, before in zip(names, ["x", *names], strict=False)
    ]
    start = time.process_time()
    with_layouts(nodes)
    assert time.process_time() - start < 2  # without short cuts, 12
