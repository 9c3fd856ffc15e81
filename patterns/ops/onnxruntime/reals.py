"""Rounding of reals to int8 inside a kernel that computes in float32."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm import te, tirx

from patterns.ops.float32.let import Definitions, within

if TYPE_CHECKING:
    from patterns.op import Range

__all__ = ["ROUNDING", "rounded"]

ROUNDING = (-2000.0, 2000.0, 1.5 * 2**23, 1.5 * 2**23)
"""What `rounded` reads: bounds beyond 8 bits, whatever the zero point, and a number that rounds to
integers when it is added, twice, so that nothing is cancelled."""


def rounded(
    block: Definitions, value: Any, figures: te.Tensor, first: int, zero_point: int, clip: Range
) -> Any:
    """Return ``rint(value) + zero_point`` as int8, ties to even, clipped.

    Args:
        block: definitions in front of the result.
        value: float32.
        figures: float32, with `ROUNDING` from ``first`` on.
        first: see ``figures``.
        zero_point, clip: of the result.
    """
    inside = within(block, value, figures[first], figures[first + 1])
    near = block.bind("near", (inside + figures[first + 2]) - figures[first + 3])
    low, high = (tirx.const(bound, "int32") for bound in clip)
    moved = tirx.Cast("int32", near) + zero_point
    return block.around(tirx.Cast("int8", tirx.max(tirx.min(moved, high), low)))
