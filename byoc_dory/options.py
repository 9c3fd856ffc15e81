"""What a user may choose about tiling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["TilingOptions"]


@dataclass(frozen=True)
class TilingOptions:
    """Choices of the tiler.

    Attributes:
        l1_budget: bytes of L1 a layer may use for its activations; ``None`` takes all that the
            SoC's description gives.  Smaller budgets explore what a smaller memory would cost.
        objective: name of one of the accelerator's objectives, e.g. on DIANA ``"array"`` (fill
            the array's own dimensions), ``"paper"`` (HTVM paper Eq. 3-5 taken literally) or
            ``"none"`` (memory only).
        solver: ``"milp"`` or, for small layers and for checking, ``"exhaustive"``.
        loop_order: ``"yxk"`` keeps an input tile in L1 while all channel tiles use it; ``"kyx"``
            is the order DORY publishes for DIANA.  The weights come with every trigger in both.
        node_limit: branch-and-bound nodes after which the MILP stops with a stated gap.
    """

    l1_budget: int | None = None
    objective: str = "array"
    solver: Literal["milp", "exhaustive"] = "milp"
    loop_order: Literal["yxk", "kyx"] = "yxk"
    node_limit: int = 20_000
