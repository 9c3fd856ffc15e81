"""Colours and words shared by the page's figures and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from htvm.tools.plots.causes import CAUSES
from htvm.tools.plots.colours import painted, unit_classes
from htvm.tools.plots.lanes import folded, lanes_of

if TYPE_CHECKING:
    from htvm.result import Causes
    from htvm.tools.report.data import ReportData


@dataclass(frozen=True)
class BarPart:
    """One part of a bar.

    Attributes:
        classes: class that sets its colour.
        name: what it stands for.
        value: its size, in the bar's unit.
        percent: its width, in percent of the bar's full width.
        meaning: an explanation in one sentence.
    """

    classes: str
    name: str
    value: int
    percent: float
    meaning: str = ""


def stacked(parts: Sequence[tuple[str, str, int, str]], whole: float) -> tuple[BarPart, ...]:
    """The parts of a bar from (classes, name, value, meaning); ``whole`` is its full width."""
    return tuple(
        BarPart(classes, name, value, 100.0 * value / whole if whole else 0.0, meaning)
        for classes, name, value, meaning in parts
        if value > 0
    )


def cause_parts(causes: Causes, whole: float) -> tuple[BarPart, ...]:
    """Return the causes as a bar with ``whole`` cycles as its full width."""
    return stacked(
        [
            (f"c-{field}", name, getattr(causes, field), meaning)
            for field, (name, meaning) in CAUSES.items()
        ],
        whole,
    )


def cause_bar(report: ReportData) -> str:
    """Return the cycles by cause as HTML that needs no style sheet; empty without cycles."""
    causes = report.summary.causes
    if causes is None:
        return ""
    parts = [(painted(part.classes), part) for part in cause_parts(causes, causes.cycles)]
    bar = "".join(
        f'<i style="display:inline-block;height:14px;width:{part.percent:.2f}%;'
        f'background:{colour}" title="{part.name}: {part.value:,}"></i>'
        for colour, part in parts
    )
    keys = " ".join(
        f'<span style="white-space:nowrap"><i style="display:inline-block;width:10px;height:10px;'
        f'background:{colour}"></i> {part.name} {part.percent:.1f} %</span>'
        for colour, part in parts
    )
    return f'<div style="max-width:640px"><div>{bar}</div><div>{keys}</div></div>'


def steps_by_name(report: ReportData) -> dict[str, int]:
    """Map the names of layers to the index of their step; conversions beside them do not count."""
    return {
        name: index
        for index, row in enumerate(report.layers)
        if row.kind in ("", "layer", "cpu")
        for name in (row.name, row.label, *row.name.split(" + "))
    }


def unit_classes_of(report: ReportData) -> dict[str, str]:
    """Map the units of a report to their classes (`htvm.tools.plots.colours.unit_classes`)."""
    names = [core.name for core in report.machine.cores] if report.machine else []
    names += [row.accelerator for row in report.layers]
    names += [node.accelerator for node in report.graph]
    lanes = lanes_of(report.timeline, report.summary.cycles)
    names += [lane.name for lane in (*lanes, *folded(lanes))]
    return unit_classes(["cpu", "host", "dma", *names])
