"""The elements along an axis that a STRIDED_SLICE takes."""

from __future__ import annotations

from collections.abc import Sequence

_BEGIN, _END, _SHRINK = 0, 1, 4  # masks, by their numbers among the options


def strided(
    axis: int,
    size: int,
    bounds: tuple[int, int, int],
    masks: Sequence[int],
    *,
    relative: bool = False,
) -> range:
    """Return the places along an axis, as TFLite Micro's reference kernel chooses them.

    A begin that is masked is the first element (the last one of a negative step), also where the
    axis is shrunk to one element; an end relative to the begin counts from there.

    Args:
        axis: number of the axis.
        size: its elements.
        bounds: begin, end and step along the axis.
        masks: the operator's masks: begin, end, ellipsis, new axis, shrink.
        relative: whether the end is relative to the begin.

    Raises:
        IndexError: the one element of a shrunk axis lies outside, or is taken backwards, which
            TensorFlow refuses, and of which the reference kernel writes nothing.
    """
    begin, end, step = bounds
    bit = 1 << axis
    first = slice(None if masks[_BEGIN] & bit else begin, None, step).indices(size)[0]
    if masks[_SHRINK] & bit:
        if not masks[_BEGIN] & bit and not -size <= begin < size:
            raise IndexError(f"element {begin} of {size}")
        if step < 0:
            raise IndexError(f"one element, taken in steps of {step},")
        return range(first, first + 1)
    last = None if masks[_END] & bit else end + (first if relative else 0)
    return range(first, slice(None, last, step).indices(size)[1], step)
