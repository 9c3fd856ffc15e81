"""Layers on an in-memory array: written, run by TVM and the interpreter, found, read back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tvm import relax
from tvm.relax import op as R

from byoc_dory.errors import IntegerFormError, UnsupportedError
from byoc_dory.layers import AnalogRequant, Layer
from byoc_dory.options import TilingOptions
from byoc_dory.soc.base import Target
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.verdict import Accepted
from htvm.frontend.check import check
from patterns.byoc.partition import partition
from patterns.dispatch.dispatching import dispatch
from patterns.names import emit
from patterns.ops.analog.passes import MAX_PASSES
from patterns.ops.analog.products import AnalogConv2d, AnalogDense
from patterns.ops.convolution import Window
from patterns.ops.requantize import int_constant
from patterns.reading.graph import Graph
from patterns.reading.node import Node
from patterns.reading.read import graph_of
from tests.byoc_dory.analog import seven_bits, ternary
from tests.patterns.build import Writer, module_of, run_tvm
from tests.reference.diana_layers import run_analog
from tests.reference.interpreter import Array, interpret

RNG = np.random.default_rng(11)


def factors(k: int, rows: int = 1152, gain: int = 64) -> AnalogRequant:
    mul = RNG.integers(-500, 500, k)
    add = RNG.integers(-2000, 2000, k)
    return AnalogRequant(gain, tuple(mul.tolist()), tuple(add.tolist()), 7, rows)


def agree(shape: tuple[int, ...], write: Writer, compiled: bool = False) -> Layer:
    """The interpreter, the definition and, ``compiled``, TVM agree; returns the layer as read."""
    module = module_of([shape], write)
    check(module)
    x = seven_bits(RNG, *shape)
    made = interpret(module, [x]).outputs[0]
    assert made.dtype == np.int8
    assert len(np.unique(made)) > 10, "the test data say nothing"
    if compiled:
        np.testing.assert_array_equal(run_tvm(module, x), made)
    (node,) = graph_of(module).in_order
    assert node.layer is not None and node.name == "layer"
    assert node.kind == node.layer.op
    plain = x[0].transpose(2, 0, 1) if node.layer.inputs[0].layout == "NHWC" else x[0]
    want = run_analog(node.layer, plain)
    got = made[0].transpose(2, 0, 1) if node.layer.output.layout == "NHWC" else made[0]
    np.testing.assert_array_equal(got, want)
    return node.layer


@pytest.mark.parametrize(
    ("layout", "c", "kernel", "rows", "passes"),
    [
        ("NHWC", 5, (3, 3), 1152, 1),
        ("NCHW", 7, (3, 2), 24, 2),
        ("NHWC", 9, (1, 1), 4, 3),
        ("NCHW", 130, (3, 3), 1152, 2),
    ],
)
def test_conv2d(
    layout: str, c: int, kernel: tuple[int, int], rows: int, passes: int
) -> None:  # fmt: skip
    weight, requant = ternary(RNG, 12, c, *kernel), factors(12, rows, 16 if c < 20 else 128)
    shape = (1, 9, 8, c) if layout == "NHWC" else (1, c, 9, 8)

    def write(bb: relax.BlockBuilder, x: relax.Var) -> relax.Var:
        return AnalogConv2d(
            weight,
            requant,
            (-64, 63),
            window=Window(strides=(2, 2), padding=(1, 0, 0, 1), layout=layout),
        ).write(bb, [x], "layer")

    layer = agree(shape, write, compiled=c == 7)
    np.testing.assert_array_equal(layer.weight, weight)
    each = rows // (kernel[0] * kernel[1])
    read = replace(requant, rows=min(c, each) * kernel[0] * kernel[1])
    assert layer.requant == read
    assert -(-c // each) == passes
    assert (layer.clip, layer.stride, layer.pad) == ((-64, 63), (2, 2), (1, 0, 0, 1))
    assert layer.bias is None
    known = replace(layer, input_range=(-64, 63))
    verdict = DIANA.accelerator("analog").judge(DIANA, known)
    assert (verdict == Accepted()) == (rows == 1152), verdict


@pytest.mark.parametrize(("c", "passes"), [(100, 1), (2500, 3)])
def test_dense(c: int, passes: int) -> None:
    weight, requant = ternary(RNG, 40, c), factors(40, gain=256)
    layer = agree(
        (1, c),
        lambda bb, x: AnalogDense(weight, requant).write(bb, [x], "layer"),
        compiled=passes > 1,
    )
    np.testing.assert_array_equal(layer.weight[:, :, 0, 0], weight)
    assert -(-c // layer.requant.rows) == passes


def test_one_factor_for_all_channels() -> None:
    weight = ternary(RNG, 12, 5, 3, 3)
    requant = AnalogRequant(16, (150,), (-70,), 6, 1152)

    def write(bb: relax.BlockBuilder, x: relax.Var) -> relax.Var:
        return AnalogConv2d(weight, requant, (0, 127), window=Window()).write(bb, [x], "layer")

    assert agree((1, 9, 8, 5), write).requant == replace(requant, rows=45)


def chain(bb: relax.BlockBuilder, x: relax.Var) -> relax.Var:
    """One pass, three passes, a vector."""
    first = AnalogConv2d(
        ternary(RNG, 300, 16, 3, 3), factors(300), (-64, 63), window=Window(padding=(1, 1, 1, 1))
    ).write(bb, [x], "first")
    second = AnalogConv2d(
        ternary(RNG, 20, 300, 3, 3), factors(20, gain=256), (0, 63), window=Window()
    ).write(bb, [first], "second")
    flat = emit(bb, R.reshape(second, (1, 4 * 4 * 20)), "flat", last=True)
    return AnalogDense(ternary(RNG, 10, 320), factors(10), (-128, 127)).write(bb, [flat], "head")


def test_partition_finds_all_passes() -> None:
    module = module_of([(1, 6, 6, 16)], chain)
    analog = DIANA.accelerator("analog")
    graph = graph_of(module)
    nodes = (_with_range(node) if node.name == "first" else node for node in graph.in_order)
    graph = replace(graph, in_order=tuple(nodes))
    placed = dispatch(graph, DIANA, (analog,))
    assert {name: place for name, place in placed.placement.items() if place == "analog"} == {
        "first": "analog", "second": "analog", "head": "analog",
    }  # fmt: skip
    parts = partition(graph, placed, Target("diana", DIANA, (analog,)), TilingOptions())
    layers = [layer.name for region in parts.regions.values() for layer in region.layers]
    assert layers == ["first", "second", "head"]


def _with_range(node: Node) -> Node:
    assert node.layer is not None
    return replace(node, layer=replace(node.layer, input_range=(-64, 63)))


def test_ranges_follow_the_clip() -> None:
    nodes = {node.name: node for node in graph_of(module_of([(1, 6, 6, 16)], chain)).in_order}
    layers = {name: node.layer for name, node in nodes.items() if node.layer is not None}
    assert [layers[name].input_range for name in ("first", "second", "head")] == [
        (-128, 127), (-64, 63), (0, 63),
    ]  # fmt: skip


def test_a_wrong_converter_is_read_and_refused() -> None:
    weight, requant = ternary(RNG, 4, 5, 1, 1), replace(factors(4), adc=(-16, 15))
    module = module_of(
        [(1, 3, 3, 5)],
        lambda bb, x: AnalogConv2d(weight, requant, window=Window()).write(bb, [x], "layer"),
    )
    (node,) = graph_of(module).in_order
    placed = dispatch(Graph((_with_range(node),), ("layer",)), DIANA, DIANA.accelerators)
    assert placed.placement == {"layer": "cpu"}
    reasons = {verdict.accelerator: verdict.reason for verdict in placed.verdicts}
    assert reasons["analog"] == "a pass is clipped to [-16, 15]"
    assert "AnalogRequant" in reasons["digital"]


@pytest.mark.parametrize(
    ("requant", "c", "message"),
    [
        (factors(4, rows=8), 5, "one channel of a 3x3 kernel exceeds 8 rows"),
        (factors(4, rows=9), MAX_PASSES + 1, f"need {MAX_PASSES + 1} passes"),
        (replace(factors(4), gain=6), 5, "a gain of 6"),
    ],
)
def test_what_cannot_be_written(requant: AnalogRequant, c: int, message: str) -> None:
    weight = ternary(RNG, 4, c, 3, 3)
    with pytest.raises(UnsupportedError, match=message):
        module_of(
            [(1, 4, 4, c)],
            lambda bb, x: AnalogConv2d(weight, requant, window=Window()).write(bb, [x], "layer"),
        )


def two_passes(first: tuple[int, int], second: tuple[int, int], gain: int) -> Writer:
    """Two passes over any channels, written by hand."""

    def write(bb: relax.BlockBuilder, x: relax.Var) -> relax.Var:
        total = None
        for (begin, end), shift in ((first, 3), (second, gain)):
            part = emit(bb, R.strided_slice(x, axes=[1], begin=[begin], end=[end]), "layer")
            matrix: Array = ternary(RNG, end - begin, 3)
            sums = emit(bb, R.matmul(part, relax.const(matrix), out_dtype="int32"), "layer")
            shifted = emit(bb, R.right_shift(sums, int_constant(shift)), "layer")
            value = emit(bb, R.clip(shifted, -32, 31), "layer")
            total = value if total is None else emit(bb, R.add(total, value), "layer")
        scaled = emit(bb, R.multiply(total, int_constant(3)), "layer")
        added = emit(bb, R.add(scaled, int_constant(1)), "layer")
        result = emit(bb, R.right_shift(added, int_constant(2)), "layer")
        clipped = emit(bb, R.clip(result, -64, 63), "layer")
        return emit(bb, R.astype(clipped, "int8"), "layer", last=True)

    return write


@pytest.mark.parametrize(
    ("first", "second", "gain", "message"),
    [
        ((0, 4), (3, 7), 3, "of 7 channels"),
        ((0, 3), (3, 7), 3, "of 7 channels"),
        ((0, 4), (4, 6), 3, "of 7 channels"),
        ((0, 4), (4, 7), 2, "passes of different gains"),
    ],
)
def test_passes_that_are_none(
    first: tuple[int, int], second: tuple[int, int], gain: int, message: str
) -> None:
    with pytest.raises(IntegerFormError, match=message):
        graph_of(module_of([(1, 7)], two_passes(first, second, gain)))


def test_passes_written_by_hand_are_read() -> None:
    (node,) = graph_of(module_of([(1, 7)], two_passes((0, 4), (4, 7), 3))).in_order
    assert node.layer is not None
    assert node.layer.requant == AnalogRequant(8, (3,), (1,), 2, 4)
