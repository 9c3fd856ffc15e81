"""The user's options for tiling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from byoc_dory.errors import TargetError

ScheduleKind: TypeAlias = Literal["published", "decoupled", "overlapped"]
"""``published``: layer by layer, single-buffered, blocking, as the HTVM paper's figures imply.

``decoupled``: transfers overlap with computation; each layer is tiled alone, and memory is
allocated for the tiles chosen. Every layer reads its inputs from L2 and leaves its result there.

``overlapped``: transfers overlap with computation, and tensors stay in L1 between layers: tiles,
buffers and memory are chosen together.
"""


@dataclass(frozen=True)
class TilingOptions:
    """Options of the tiler.

    Attributes:
        l1_budget: bytes of L1 that a layer may use for its activations; ``None`` for all of the
            SoC's L1.  Smaller budgets show what a smaller memory would cost.
        objective: name of one of the accelerator's objectives, e.g. on DIANA ``"array"`` (fill the
            array's own dimensions; with weights ``"array(alpha=2, long DMA=0)"``), ``"paper"``
            (HTVM paper Eq. 3-5 taken literally) or ``"none"``
            (memory only); or on any accelerator ``"latency"`` (fewest predicted cycles). ``None``
            uses the schedule's own: ``"array"`` when published, else ``"latency"``, which then
            gives up a few cycles for weights without holes in L2.
        solver: ``"milp"`` or, for small layers and for testing, ``"exhaustive"``.
        loop_order: ``"yxk"`` keeps an input tile in L1 while all channel tiles use it; ``"kyx"`` is
            the order DORY publishes for DIANA, and always that of the published schedule.  In both,
            the weights are loaded with every trigger.
        node_limit: branch-and-bound nodes after which the MILP stops and states its gap.
        schedule: kind of schedule (see `ScheduleKind`).
        unroll: largest number of output columns that an in-memory array computes at a time (1, 2, 4
            or 8 on DIANA), with copies of the weights side by side in it, if there is room for
            them. The published schedule computes one.
        layers: (name of a layer, its objective) where it is another than ``objective``.
        assembly: when an accelerator's command streams are made: ``"ahead"`` of time, or ``"late"``
            by the device at start-up, from the region as JSON; only for accelerators that can.

    Raises:
        TargetError: there is no such solver, loop order or schedule, or a number is not positive
            (objectives belong to the accelerator, which checks them when it tiles).
    """

    l1_budget: int | None = None
    objective: str | None = None
    solver: Literal["milp", "exhaustive"] = "milp"
    loop_order: Literal["yxk", "kyx"] = "yxk"
    node_limit: int = 20_000
    schedule: ScheduleKind = "overlapped"
    unroll: int = 1
    assembly: Literal["ahead", "late"] = "ahead"
    layers: tuple[tuple[str, str], ...] = ()

    @property
    def overlapping(self) -> bool:
        """Whether transfers overlap with computation."""
        return self.schedule != "published"

    def tiles_for(self, layer: str) -> str:
        """Name of a layer's objective, or the schedule's own if none was given."""
        found = dict(self.layers).get(layer, self.objective)
        if found is not None:
            return found
        return "array" if self.schedule == "published" else "latency"

    def __post_init__(self) -> None:
        for what, value, known in (
            ("solver", self.solver, ("milp", "exhaustive")),
            ("loop order", self.loop_order, ("yxk", "kyx")),
            ("schedule", self.schedule, get_args(ScheduleKind)),
            ("assembly", self.assembly, ("ahead", "late")),
        ):
            if value not in known:
                raise TargetError(
                    f"there is no {what} {value!r}",
                    where="options of the tiler",
                    hint=f"one of {', '.join(known)}",
                )
        if self.objective is not None and not isinstance(self.objective, str):
            raise TargetError(
                f"there is no objective {self.objective!r}",
                where="options of the tiler",
                hint="give the name of one, such as latency",
            )
        for pair in self.layers:
            if not isinstance(pair, tuple) or [type(part) for part in pair] != [str, str]:
                raise TargetError(
                    f"{pair!r} is no layer with its objective",
                    where="options of the tiler",
                    hint="give pairs of names, such as ('conv2d_0', 'latency')",
                )
        check_count("node_limit", self.node_limit)
        check_count("unroll", self.unroll)
        if self.l1_budget is not None:
            check_count("l1_budget", self.l1_budget)


def check_count(option: str, given: object) -> None:
    """Refuse a value that is not a positive whole number.

    Raises:
        TargetError: the message names the option.
    """
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise TargetError(
            f"{option} cannot be {given!r}",
            where=f"option '{option}'",
            hint="give a whole number above 0",
        )
