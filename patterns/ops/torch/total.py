"""The float32 sums that torch's means divide, in the order in which its kernel adds.

A mean whose result has its input's scale lies on a tie as soon as a sum is half of the count more
than a multiple of it, and then the errors of float32 decide how torch rounds.  They depend on the
order of the sum, which is that of ``cascade_sum`` (``aten/src/ATen/native/cpu/SumKernel.cpp``) for
vectors of 8 reals, whatever the x86 core, on one thread (several divide large sums): elements that
are neighbours in memory are added lane by lane, others column by column; four sums side by side;
blocks of 16 on four levels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import te, tirx

from byoc_dory.layers import Array
from patterns.op import TensorType, Work, operator
from patterns.primitive import PrimitiveOp, extents, sizes_of

LANES, _SIDE_BY_SIDE, _BLOCK, _LEVELS = 8, 4, 16, 4
_MOST = 1 << 19  # elements of a sum: beyond, blocks are larger

_Load = Callable[[Sequence[Any], Any], Any]
"""Returns an element, given the index of a sum and the element's place in it."""


@operator
@dataclass(frozen=True, eq=False)
class TorchTotal(PrimitiveOp):
    """The sum of ``step * (x - input_zero_point)`` of an 8-bit tensor, float32, in torch's order.

    The axes that are summed over are not in the result.

    Attributes:
        step: scale of the input, rounded to float32.
        input_zero_point: integer of the input that represents 0.0.
        axes: axes to sum over; the one whose elements are nearest in torch's memory first.
        lanes: whether elements of a sum are neighbours there, and added lane by lane.
        along: the other axes along which sums are columns to torch, the nearest first.
        columns: columns, the first ones, whose elements are added one after the other; those of the
            others are added four side by side.
    """

    kind = "torch_total"
    work = Work.REAL
    opaque = True

    step: float
    input_zero_point: int
    axes: tuple[int, ...]
    lanes: bool
    along: tuple[int, ...] = ()
    columns: int = 0

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        shape = inputs[0].shape
        return TensorType(tuple(shape[axis] for axis in self._kept(len(shape))), "float32")

    def _kept(self, rank: int) -> list[int]:
        return [axis for axis in range(rank) if axis not in self.axes]

    def constants(self) -> Mapping[str, Array]:
        """See `PrimitiveOp.constants`: the scale (see `Dequantize.constants`)."""
        return {"scale": np.asarray([self.step], "float32")}

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        source, step = tensors
        shape, out = sizes_of(source), self.extents(tensors)
        kept = self._kept(len(shape))

        def load(index: Sequence[Any], place: Any) -> Any:
            at = dict(zip(kept, index, strict=True))
            *inner, last = self.axes
            for axis in inner:
                at[axis], place = place % shape[axis], place // shape[axis]
            at[last] = place
            element = source(*(at[axis] for axis in range(len(shape))))
            return (
                tirx.Cast("float32", tirx.Cast("int32", element) - self.input_zero_point) * step[0]
            )

        count = math.prod(shape[axis] for axis in self.axes)
        if self.lanes:
            return _lane_by_lane(load, out, count)
        if self.columns == 0:
            return te.compute(out, _side_by_side(load, out, count), name="total")
        one, several = _in_blocks(load, out, count), _side_by_side(load, out, count)
        if self.columns == math.prod(shape[axis] for axis in self.along):
            return te.compute(out, one, name="total")

        def either(*index: Any) -> Any:
            at = sum(
                index[kept.index(axis)] * math.prod(shape[near] for near in self.along[:number])
                for number, axis in enumerate(self.along)
            )
            return tirx.if_then_else(at < self.columns, one(*index), several(*index))

        return te.compute(out, either, name="total")


def _lane_by_lane(load: _Load, out: Sequence[Any], count: int) -> te.Tensor:
    """Return the sum of each lane, added to that of the elements that fill no vector."""
    vectors, rest = divmod(count, LANES)

    def in_lane(index: Sequence[Any], place: Any) -> Any:
        *outer, lane = index
        return load(outer, place * LANES + lane)

    lanes = te.compute(
        [*out, *extents((LANES,))],
        _side_by_side(in_lane, [*out, *extents((LANES,))], vectors),
        name="lanes",
    )
    k = te.reduce_axis((0, tirx.const(rest + LANES, "int64")), "k")

    def summed(*index: Any) -> Any:
        if not rest:
            return te.sum(lanes(*index, k), axis=[k])
        behind = load(index, vectors * LANES + k)
        return te.sum(tirx.if_then_else(k < rest, behind, lanes(*index, k - rest)), axis=[k])

    return te.compute(out, summed, name="total")


def _side_by_side(load: _Load, out: Sequence[Any], count: int) -> Callable[..., Any]:
    """Return what is added in four sums, to the first of which the last elements are added."""
    whole, rest = divmod(count, _SIDE_BY_SIDE)

    def one_of(index: Sequence[Any], place: Any) -> Any:
        *outer, side = index
        return load(outer, place * _SIDE_BY_SIDE + side)

    sums = _in_blocks(one_of, [*out, *extents((_SIDE_BY_SIDE,))], whole) if whole else None

    def total(*index: Any) -> Any:
        behind = [load(index, whole * _SIDE_BY_SIDE + at) for at in range(rest)]
        sides = [sums(*index, side) for side in range(_SIDE_BY_SIDE)] if sums else []
        return sum([*sides[:1], *behind, *sides[1:]][1:], start=[*sides[:1], *behind][0])

    return total


def _in_blocks(load: _Load, out: Sequence[Any], count: int) -> Callable[..., Any]:
    """Return what is added one after the other in blocks, and blocks of blocks."""
    parts, level = [], 1
    while count > _BLOCK and level < _LEVELS:
        whole, rest = divmod(count, _BLOCK)
        if rest:
            parts.append(_one_by_one(load, out, rest, whole * _BLOCK))
        load, count, level = _blocks(load, out, whole), whole, level + 1
    parts.append(_one_by_one(load, out, count, 0))
    return lambda *index: sum((part(*index) for part in parts[1:]), start=parts[0](*index))


def _blocks(load: _Load, out: Sequence[Any], count: int) -> _Load:
    """Return what loads the sums of blocks."""
    k = te.reduce_axis((0, tirx.const(_BLOCK, "int64")), "k")

    def block(*index: Any) -> Any:
        return te.sum(load(index[:-1], index[-1] * _BLOCK + k), axis=[k])

    blocks = te.compute([*out, *extents((count,))], block, name="blocks")
    return lambda index, at: blocks(*index, at)


def _one_by_one(load: _Load, out: Sequence[Any], count: int, first: int) -> te.Tensor:
    k = te.reduce_axis((0, tirx.const(count, "int64")), "k")
    return te.compute(out, lambda *i: te.sum(load(i, k + first), axis=[k]), name="sums")


def torch_total(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    axes: Sequence[int],
    step: float,
    zero_point: int,
) -> TorchTotal | None:
    """Return the sum of a tensor as torch's kernel adds it; ``None`` if it goes another way.

    Args:
        shape: sizes of the tensor.
        strides: how far elements of an axis are from each other in torch's memory.
        axes: axes to sum over, counted from 0.
        step, zero_point: quantization of the tensor.
    """
    steps = {axis: strides[axis] for axis, size in enumerate(shape) if size > 1}
    summed = sorted((axis for axis in axes if axis in steps), key=lambda axis: steps[axis])
    # The results are contiguous, so that neighbours among them are in the last axis.
    kept = [axis for axis in reversed(range(len(shape))) if axis in steps and axis not in axes]
    count = math.prod(shape[axis] for axis in summed)
    if not summed or not _is_one(summed, shape, strides) or count > _MOST:
        return None
    inner = steps[summed[0]]
    order = (*(axis for axis in axes if axis not in steps), *summed)
    if inner == 1 and count >= LANES:
        return TorchTotal(step, zero_point, order, lanes=True)
    along = next(
        (kept[:n] for n in range(len(kept), 0, -1) if _is_one(kept[:n], shape, strides)), []
    )
    size, columns = math.prod(shape[axis] for axis in along), 0
    outer = steps[along[0]] if along else 0
    if outer == 1 and size >= LANES:
        columns = size - size % (LANES * _SIDE_BY_SIDE)
    elif inner >= outer:
        columns = size - size % _SIDE_BY_SIDE
    return TorchTotal(step, zero_point, order, lanes=False, along=tuple(along), columns=columns)


def _is_one(axes: Sequence[int], shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether axes, the nearest in memory first, lie there as one."""
    pairs = zip(axes[:-1], axes[1:], strict=True)
    return all(strides[far] == strides[near] * shape[near] for near, far in pairs)
