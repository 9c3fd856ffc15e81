"""The exact rewrites of a convolution, and `Rewrite`, their base."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from htvm.rewriting.filters import Filter, Pads, Rewritten
from patterns.op import TensorType
from patterns.ops.convolution import conv2d_of
from patterns.ops.moves.concat import Concat
from patterns.ops.moves.reshape import Reshape, Slice, Transpose
from patterns.ops.scaling import window_counts
from patterns.reading.node import Node, node_of

if TYPE_CHECKING:
    from byoc_dory.layers import Array


@dataclass(frozen=True)
class Rewrite(ABC):
    """A way to compute a convolution by other operators, with the same result for every input.

    Attributes:
        name: name in tests and messages.
        early: whether it applies before retargeting, because retargeting has no form of the
            layer; otherwise it applies to retargeted layers, whose numbers it does not change.
    """

    name: ClassVar[str]
    early: ClassVar[bool] = False

    @abstractmethod
    def of(self, it: Filter) -> Rewritten | None:
        """Return what replaces a convolution; ``None`` if the rewrite does not apply to it."""


@dataclass(frozen=True)
class SplitPadding(Rewrite):
    """The padding becomes an operator of its own, before a convolution without padding."""

    name = "split_padding"

    def of(self, it: Filter) -> Rewritten | None:
        """See `Rewrite.of`: convolutions with padding."""
        if not any(it.pads):
            return None
        before, source, kind = it.padded(it.pads)
        conv = it.layer(source, kind, it.op.weight, (0, 0, 0, 0))
        top, left, bottom, right = it.pads
        says = f"padding {top}, {left}, {bottom}, {right} (top, left, bottom, right) split off"
        return Rewritten((*before, conv), says)


@dataclass(frozen=True)
class SingleRow(Rewrite):
    """A convolution along one axis gets the same stride along the other.

    Where the result has a single row (or column), the stride between rows has no effect.
    """

    name = "single_row"

    def of(self, it: Filter) -> Rewritten | None:
        """See `Rewrite.of`: convolutions with different strides and one row or column."""
        sy, sx = it.op.window.strides
        oy, ox = it.result
        if sy == sx or 1 not in (oy, ox):
            return None
        stride = sx if oy == 1 else sy
        dilation = it.op.window.dilation
        if window_counts(it.size, it.kernel, (stride, stride), it.pads, dilation) != (oy, ox):
            return None
        says = f"stride {sy}x{sx} computed as {stride}x{stride}, as the result has one " + (
            "row" if oy == 1 else "column"
        )
        return Rewritten(it.convolved(it.op.weight, it.pads, strides=(stride, stride)), says)


@dataclass(frozen=True)
class Dilation(Rewrite):
    """The gaps of a dilated kernel are filled with zero taps."""

    name = "dilation"

    def of(self, it: Filter) -> Rewritten | None:
        """See `Rewrite.of`: convolutions with dilation."""
        dy, dx = it.op.window.dilation
        if (dy, dx) == (1, 1):
            return None
        weight = it.op.weight
        fy, fx = it.kernel
        ky, kx = dy * (fy - 1) + 1, dx * (fx - 1) + 1
        whole = np.zeros((*weight.shape[:2], ky, kx), weight.dtype)
        whole[:, :, ::dy, ::dx] = weight
        apart = f"{dy}" if dy == dx else f"{dy}x{dx}"
        says = f"{fy}x{fx} with dilation {apart} computed as {ky}x{kx} with zero taps"
        return Rewritten(it.convolved(whole, it.pads, dilation=(1, 1)), says)


@dataclass(frozen=True)
class LargerKernel(Rewrite):
    """A kernel is extended to ``size x size`` by zero taps, which read more padding.

    Attributes:
        size: height and width of the kernel computed.
    """

    size: int = 3

    name = "larger_kernel"

    def of(self, it: Filter) -> Rewritten | None:
        """See `Rewrite.of`: convolutions without dilation and with a smaller kernel."""
        fy, fx = it.kernel
        size = self.size
        if it.op.window.dilation != (1, 1) or max(fy, fx) > size or fy == fx == size:
            return None
        top, left, bottom, right = it.pads
        above, below = _shares(size - fy, top, bottom)
        before, behind = _shares(size - fx, left, right)
        weight = np.pad(it.op.weight, ((0, 0), (0, 0), (above, below), (before, behind)))
        pads = (top + above, left + before, bottom + below, right + behind)
        says = f"{fy}x{fx} computed as {size}x{size} with zero taps"
        return Rewritten(it.convolved(weight, pads), says)


def _shares(more: int, before: int, after: int) -> tuple[int, int]:
    """Return how many taps to add at either end, such that the paddings become alike."""
    first = min(more, max(0, (before + after + more) // 2 - before))
    return first, more - first


@dataclass(frozen=True)
class SpaceToDepth(Rewrite):
    """Blocks of ``sy x sx`` pixels become pixels of ``sy * sx * C`` channels.

    Row ``y * sy + i`` of the padded input, read by tap ``i`` for row ``y`` of the result, is row
    ``y + i // sy`` of block row ``i % sy``: a kernel of ``ceil(fy / sy)`` rows at stride 1.  Taps
    beyond the original kernel are zero.
    """

    name = "space_to_depth"

    def of(self, it: Filter) -> Rewritten | None:
        """See `Rewrite.of`: convolutions over all channels, without dilation, with a stride."""
        window = it.op.window
        sy, sx = window.strides
        if window.groups != 1 or window.dilation != (1, 1) or sy * sx == 1:
            return None
        (fy, fx), (oy, ox) = it.kernel, it.result
        ky, kx = -(-fy // sy), -(-fx // sx)
        before, source, kind = _sized(it, sy * (oy + ky - 1), sx * (ox + kx - 1))
        moved = _blocks(it, source, kind)
        last = moved[-1]
        conv = it.layer(
            last.name, last.result, _weight(it.op.weight, sy, sx), (0, 0, 0, 0), strides=(1, 1)
        )
        stride = f"{sy}" if sy == sx else f"{sy}x{sx}"
        channels = sy * sx * it.channels
        says = f"{fy}x{fx} at stride {stride} computed as {ky}x{kx} over {channels} channels"
        return Rewritten((*before, *moved, conv), says)


def _sized(it: Filter, rows: int, columns: int) -> tuple[tuple[Node, ...], str, TensorType]:
    """Return parts that pad or crop the input, padding included, to these numbers of elements.

    Rows and columns that are added at the end are read by zero taps only; those that are left out
    are read by no window.
    """
    top, left, *_ = it.pads
    y, x = it.size
    bottom, right = rows - y - top, columns - x - left
    parts, source, kind = it.padded((top, left, max(0, bottom), max(0, right)))
    if min(bottom, right) >= 0:
        return parts, source, kind
    cropped = it.map_of(it.channels, rows, columns)
    name = f"{it.name}_crop"
    part = node_of(name, Slice.every((0,) * 4, cropped.shape), [(source, kind)], cropped)
    return (*parts, part), name, cropped


def _blocks(it: Filter, source: str, kind: TensorType) -> list[Node]:
    """Return the parts that move blocks of pixels into the channels.

    Two reshapes, which move nothing, and a transposition: its loops have no divisions.
    """
    sy, sx = it.op.window.strides
    channels = it.channels
    _, *sizes = kind.shape
    if it.layout == "NHWC":
        y, x, _ = sizes
        split, axes = (1, y // sy, sy, x // sx, sx, channels), (0, 1, 3, 2, 4, 5)
    else:
        _, y, x = sizes
        split, axes = (1, channels, y // sy, sy, x // sx, sx), (0, 3, 5, 1, 2, 4)
    turned = tuple(split[axis] for axis in axes)
    joined = it.map_of(sy * sx * channels, y // sy, x // sx)
    shapes = [split, turned, joined.shape]
    names = [f"{it.name}_{each}" for each in ("split", "blocks", "joined")]
    found, before = [], (source, kind)
    for name, shape, op in zip(
        names, shapes, (Reshape(split), Transpose(axes), Reshape(joined.shape)), strict=True
    ):
        result = TensorType(shape, kind.dtype)
        found.append(node_of(name, op, [before], result))
        before = name, result
    return found


def _weight(weight: Array, sy: int, sx: int) -> Array:
    """Return ``[K, sy * sx * C, ceil(fy / sy), ceil(fx / sx)]`` of ``[K, C, fy, fx]``."""
    k, channels, fy, fx = weight.shape
    whole = np.pad(weight, ((0, 0), (0, 0), (0, -fy % sy), (0, -fx % sx)))
    split = whole.reshape(k, channels, whole.shape[2] // sy, sy, whole.shape[3] // sx, sx)
    moved = split.transpose(0, 3, 5, 1, 2, 4)
    return np.asarray(moved.reshape(k, sy * sx * channels, *split.shape[2:5:2]), order="C")


@dataclass(frozen=True)
class AllChannels(Rewrite):
    """A grouped convolution over all channels; the weights of other groups' channels are zero."""

    name = "all_channels"
    early = True

    def of(self, it: Filter) -> Rewritten | None:
        """See `Rewrite.of`: convolutions in several groups that are not depthwise."""
        if not _is_grouped(it):
            return None
        groups, weight = it.op.window.groups, it.op.weight
        k, each, fy, fx = weight.shape
        whole = np.zeros((k, it.channels, fy, fx), weight.dtype)
        for group in range(groups):
            rows = slice(group * k // groups, (group + 1) * k // groups)
            whole[rows, group * each : (group + 1) * each] = weight[rows]
        says = f"{groups} groups of {each} channels computed over all {it.channels}"
        return Rewritten(it.convolved(whole, it.pads, groups=1), says)


@dataclass(frozen=True)
class ByGroup(Rewrite):
    """A grouped convolution as one convolution for each group, whose results are joined."""

    name = "by_group"
    early = True

    def of(self, it: Filter) -> Rewritten | None:
        """See `Rewrite.of`: convolutions in several groups that are not depthwise."""
        if not _is_grouped(it):
            return None
        axis, groups = it.op.window.channel_axis, it.op.window.groups
        before, source, kind = it.padded(it.pads if it.value else (0, 0, 0, 0))
        pads = (0, 0, 0, 0) if it.value else it.pads
        parts, joined = list(before), []
        for group in range(groups):
            part = _slice(it, group, source, kind)
            conv = _group(it, group, part, pads)
            parts += [part, conv]
            joined.append(conv)
        results = [(conv.name, conv.result) for conv in joined]
        concat = node_of(it.name, Concat(axis), results, it.output)
        says = f"{groups} groups computed one by one"
        return Rewritten((*parts, concat), says)


def _slice(it: Filter, group: int, source: str, kind: TensorType) -> Node:
    """Return the part that takes a group's channels."""
    axis, each = it.op.window.channel_axis, it.op.weight.shape[1]
    begin, sizes = [0] * 4, list(kind.shape)
    begin[axis], sizes[axis] = group * each, each
    result = TensorType(tuple(sizes), kind.dtype)
    name = f"{it.name}_channels_{group}"
    return node_of(name, Slice.every(begin, sizes), [(source, kind)], result)


def _group(it: Filter, group: int, source: Node, pads: Pads) -> Node:
    """Return the convolution of one group."""
    op, axis = it.op, it.op.window.channel_axis
    count = len(op.weight) // op.window.groups
    rows = slice(group * count, (group + 1) * count)
    requant: Any = op.requant
    own = {
        field.name: value[rows]
        for field in fields(requant)
        if isinstance(value := getattr(requant, field.name), tuple) and len(value) == len(op.weight)
    }
    window = replace(op.window, padding=pads, groups=1)
    conv = conv2d_of(
        op.weight[rows], op.bias[rows], window, replace(requant, **own), op.clip, op.dtype
    )
    shape = list(it.output.shape)
    shape[axis] = count
    result = TensorType(tuple(shape), it.output.dtype)
    return node_of(f"{it.name}_group_{group}", conv, [(source.name, source.result)], result)


def _is_grouped(it: Filter) -> bool:
    groups = it.op.window.groups
    return groups > 1 and not groups == it.channels == len(it.op.weight)


REWRITES: tuple[Rewrite, ...] = (
    SingleRow(),
    LargerKernel(),
    Dilation(),
    SplitPadding(),
    SpaceToDepth(),
    AllChannels(),
    ByGroup(),
)
