"""Reading operands that are broadcast like in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tirx

__all__ = ["broadcast_load"]


def broadcast_load(source: te.Tensor, index: Sequence[Any]) -> Any:
    """Return the operand's element that numpy's broadcasting assigns to ``index`` of the result."""
    rank = len(source.shape)
    own = index[len(index) - rank :]
    return source(
        *(
            tirx.const(0, "int64") if int(size) == 1 else place
            for size, place in zip(source.shape, own, strict=True)
        )
    )
