"""The position of each layer under the roofline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from htvm.report.data import ReportData

__all__ = ["Point", "points_of"]


@dataclass(frozen=True)
class Point:
    """One layer on an accelerator.

    Attributes:
        intensity: multiply-accumulates per byte moved to or from L2.
        rate: multiply-accumulates per cycle.
    """

    name: str
    accelerator: str
    intensity: float
    rate: float
    cycles: int


def points_of(report: ReportData) -> tuple[Point, ...]:
    """The layers that multiply on an accelerator, were simulated, and whose bytes are known."""
    points = []
    for row in report.layers:
        moved = [row.l2_read, row.l2_written, row.l2_weights]
        total = sum(size for size in moved if size is not None)
        if row.kind != "layer" or not row.cycles or not row.macs or not total:
            continue
        points.append(
            Point(row.name, row.accelerator, row.macs / total, row.macs / row.cycles, row.cycles)
        )
    return tuple(points)
