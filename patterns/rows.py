"""The rows of its inputs that an operator reads for one row of its result (`Op.row_windows`).

A row is everything at one place of the second axis of a tensor with four axes and a batch of 1: a
row of pixels of a map in NHWC, whose bytes lie together.  Networks compute such operators row by
row (`htvm.aot.chains`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

ROW_AXIS = 1
_AXES = 4


@dataclass(frozen=True)
class RowWindow:
    """The rows of one input: for row y, `size` rows from ``y * stride - top`` on.

    Attributes:
        size: number of rows.
        stride: 0 if every row of the result reads the same ones.
        top, left, bottom, right: padding of the input, in rows and in columns.
        fill: value of the padding.
    """

    size: int = 1
    stride: int = 1
    top: int = 0
    left: int = 0
    bottom: int = 0
    right: int = 0
    fill: int = 0

    @property
    def is_padded(self) -> bool:
        """Whether it has any padding."""
        return any((self.top, self.left, self.bottom, self.right))

    def of_band(self, rows: int) -> RowWindow:
        """Return the rows that are read for so many rows at once, from the first one on."""
        return replace(self, size=self.size + (rows - 1) * self.stride)


def has_rows(shape: Sequence[int]) -> bool:
    """Whether a tensor has rows."""
    return len(shape) == _AXES and shape[0] == 1


def matching_rows(
    shapes: Sequence[Sequence[int]], result: Sequence[int], constants: Sequence[Sequence[int]] = ()
) -> tuple[RowWindow, ...] | None:
    """Return the windows of an operator without neighbours in rows, which may broadcast.

    Args:
        shapes: those of its inputs.
        result: that of its result.
        constants: those of constant operands, broadcast like in numpy.

    Returns:
        ``None`` if a row of the result is not a function of the same rows of the inputs.
    """
    if not has_rows(result) or not all(map(has_rows, shapes)):
        return None
    rows = result[ROW_AXIS]
    if any(len(each) >= _AXES - ROW_AXIS and each[-3] != 1 for each in constants):
        return None
    if any(shape[ROW_AXIS] not in (1, rows) for shape in shapes):
        return None
    return tuple(RowWindow(stride=int(shape[ROW_AXIS] == rows)) for shape in shapes)
