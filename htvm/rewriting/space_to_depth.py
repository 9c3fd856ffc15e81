"""A strided convolution as one at stride 1, over blocks of pixels moved into the channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from htvm.rewriting.filters import Filter, Rewritten
from htvm.rewriting.rewrite import Rewrite
from patterns.op import TensorType
from patterns.ops.moves.reshape import Reshape
from patterns.ops.moves.slice import Slice
from patterns.ops.moves.transpose import Transpose
from patterns.reading.node import Node, node_of

if TYPE_CHECKING:
    from byoc_dory.layers import Array


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
