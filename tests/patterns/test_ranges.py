"""Ranges: what a layer's inputs are known to lie in, against what really occurs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tvm import relax

from byoc_dory.layers import Shift
from patterns.ops.add import Add
from patterns.ops.convert import Convert, TableLookup
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.concat import Concat
from patterns.ops.moves.pad import Pad, PadAxes
from patterns.ops.moves.reshape import Slice, Transpose
from patterns.ops.tflite.averages import AveragePool
from patterns.reading.read import graph_of


@given(
    weight=st.lists(st.integers(-9, 9), min_size=3, max_size=3),
    bias=st.integers(-300, 300),
    shift=st.integers(0, 5),
    ends=st.tuples(st.integers(-6, 4), st.integers(0, 6)),
    relu=st.booleans(),
    pad=st.sampled_from([0, 1]),
)
def test_a_sum_is_bounded_by_its_weights(
    weight: list[int], bias: int, shift: int, ends: tuple[int, int], relu: bool, pad: int
) -> None:
    low, high = ends[0], ends[0] + ends[1]
    filters, clip = np.array(weight, np.int8).reshape(1, 1, 1, 3), (0, 127) if relu else (-128, 127)
    window = Window(padding=(0, pad, 0, pad))
    op = conv2d_of(filters, np.array([bias], np.int32), window, Shift(shift), clip)
    found = set()
    for x in product((low, high), repeat=3):
        padded = [0] * pad + list(x) + [0] * pad
        for at in range(len(padded) - 2):
            acc = bias + sum(w * v for w, v in zip(weight, padded[at : at + 3], strict=True))
            found.add(min(max(acc >> shift, clip[0]), clip[1]))
    least, most = op.range([(low, high)])
    assert least <= min(found) and most >= max(found)
    if not pad:
        assert (least, most) == (min(found), max(found)), "the bound is reached"


def test_a_sum_of_two_knows_both_operands() -> None:
    op = Add(Shift(1), (0, 127))
    assert op.range([(0, 63), (-64, 63)]) == (0, 63)
    assert op.range([(-128, 127), (-128, 127)]) == (0, 127)


def _read_after(write: object) -> tuple[int, int]:
    """Input range of a convolution behind an operator that reads a tensor of [-10, 20]."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 4, 4, 2), "int8"))
    with bb.function("main", [x]):
        with bb.dataflow():
            small = Convert(Shift(0), (-10, 20)).write(bb, [x], "small")
            made = write(bb, small)  # type: ignore[operator]
            weight = np.ones((1, int(made.ty.shape[3].value), 1, 1), np.int8)
            y = conv2d_of(weight, np.zeros(1, np.int32), Window(), Shift(3)).write(
                bb, [made], "last"
            )
            out = bb.emit_output(y)
        bb.emit_func_output(out)
    layer = graph_of(bb.get()).in_order[-1].layer
    assert layer is not None
    return layer.input_range


@pytest.mark.parametrize(
    ("write", "wanted"),
    [
        (lambda bb, x: x, (-10, 20)),
        (lambda bb, x: Concat(3).write(bb, [x, x], "c"), (-10, 20)),
        (lambda bb, x: Transpose((0, 2, 1, 3)).write(bb, [x], "c"), (-10, 20)),
        (lambda bb, x: Slice.every((0, 1, 0, 0), (1, 2, 4, 2)).write(bb, [x], "c"), (-10, 20)),
        (lambda bb, x: PadAxes(-50, ((0, 0), (0, 0), (1, 0), (0, 0))).write(bb, [x], "c"),
         (-50, 20)),
        (lambda bb, x: Pad(33, (1, 0, 0, 1)).write(bb, [x], "c"), (-10, 33)),
        (lambda bb, x: MaxPool(kernel=(2, 2), strides=(2, 2)).write(bb, [x], "c"), (-10, 20)),
        (lambda bb, x: AveragePool((2, 2), (2, 2), clip=(0, 127)).write(bb, [x], "c"), (0, 20)),
        (lambda bb, x: TableLookup(np.arange(-64, 64).repeat(2).astype("int8")).write(bb, [x], "c"),
         (-64, 63)),
        (lambda bb, x: Add(Shift(1), (0, 127)).write(bb, [x, x], "c"), (0, 20)),
    ],
)  # fmt: skip
def test_ranges_pass_through_operators(write: object, wanted: tuple[int, int]) -> None:
    assert _read_after(write) == wanted
