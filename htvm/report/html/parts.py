"""Colours and words shared by the page's figures and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from htvm.report.data import ReportData
    from htvm.result import Causes

__all__ = [
    "CAUSES",
    "CAUSE_COLOURS",
    "COLOURS",
    "BarPart",
    "cause_bar",
    "cause_parts",
    "stacked",
    "steps_by_name",
    "unit_classes",
]

CAUSES: Mapping[str, tuple[str, str]] = {
    "array": ("compute", "an accelerator's array computes"),
    "weights": ("weights", "an accelerator loads weights"),
    "trigger": ("trigger", "an accelerator is busy with anything else"),
    "dma_alone": ("DMA alone", "transfers that no accelerator hides"),
    "host_alone": ("host alone", "neither an accelerator nor the DMA is busy"),
}
"""The causes that add up to the cycles: field of `Causes` -> its name and its meaning."""

COLOURS: Mapping[str, str] = {
    "ink": "#1d2330",
    "dim": "#626b7c",
    "line": "#dfe3ea",
    "host": "#717b8d",
    "dma": "#e08a1e",
    "u0": "#2f6fde",
    "u1": "#c2497f",
    "u2": "#1c9a7c",
    "u3": "#b8860b",
    "u4": "#6a5acd",
    "u5": "#c4552d",
    "u6": "#2a93b8",
    "u7": "#7a8b2c",
}
"""The colours of everything in figures, on light paper."""

CAUSE_COLOURS: Mapping[str, str] = {
    "array": COLOURS["u0"],
    "weights": "#8a5cd1",
    "trigger": "#8fb4f2",
    "dma_alone": COLOURS["dma"],
    "host_alone": COLOURS["host"],
}
"""The colours of the causes, on light paper: field of `Causes` -> colour."""

_HUES = 8  # number of accelerators that have a colour of their own


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
    parts = [
        (CAUSE_COLOURS[part.classes.removeprefix("c-")], part)
        for part in cause_parts(causes, causes.cycles)
    ]
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


def unit_classes(report: ReportData) -> dict[str, str]:
    """Map accelerators to colour classes; the host is grey, the DMA has the colour of transfers.

    Cores that differ only by a number ("core0", "core1") share a colour.
    """
    from htvm.report.lanes import folded, lanes_of

    names = [core.name for core in report.machine.cores] if report.machine else []
    names += [row.accelerator for row in report.layers]
    names += [node.accelerator for node in report.graph]
    lanes = lanes_of(report)
    names += [lane.name for lane in (*lanes, *folded(lanes))]
    classes = {"cpu": "u-host", "host": "u-host", "dma": "u-dma"}
    kinds: dict[str, str] = {}
    for name in dict.fromkeys(names):
        kind = name.rstrip("0123456789-") or name
        if name not in classes:
            kinds.setdefault(kind, f"u-{len(kinds) % _HUES}")
            classes[name] = kinds[kind]
    return classes
