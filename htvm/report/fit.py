"""Whether a model fits, drawn: one line per memory, what dominates, what would help."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from htvm.report.fit_types import Answer, Change, Fit, LayerDemand, Level, Part
from htvm.report.table import Column, Table, count, text

__all__ = ["fit_data", "fit_json", "fit_text"]

_SHOWN = 5

_WORDS: dict[Answer, str] = {"yes": "yes", "no": "NO", "close": "close"}


def fit_text(fit: Fit) -> str:
    """The whole answer as text."""
    schedule = f", schedule {fit.schedule}" if fit.schedule else ""
    answers = {
        "yes": "it fits",
        "no": "it does NOT fit",
        "close": "it is too close to say: the size of the code, which is estimated, decides",
    }
    parts = [
        f"{fit.network} on {fit.target}{schedule}: {answers[fit.fits]}",
        text(_level_table(fit.levels)),
        *(_dominates(level) for level in fit.levels),
        text(_layer_table(fit.layers)) if fit.layers else "",
        _refused(fit),
        _changes(fit.changes),
    ]
    return "\n\n".join(part for part in parts if part)


def _level_table(levels: tuple[Level, ...]) -> Table:
    columns = (
        Column("memory"),
        Column("needs B", True),
        Column("planned B", True),
        Column("limit B", True),
        Column("used %", True),
        Column("fits"),
    )
    rows = []
    for level in levels:
        taken = level.demand if level.planned is None else level.planned
        slack = f" +-{count(level.slack)}" if level.slack else ""
        rows.append(
            (
                level.memory,
                count(level.demand) + slack,
                count(level.planned),
                count(level.limit),
                f"{100 * taken / level.limit:.1f}",
                _WORDS[level.fits],
            )
        )
    return Table(columns, tuple(rows))


def _dominates(level: Level) -> str:
    """The largest parts of a level."""
    shown, rest = level.parts[:_SHOWN], level.parts[_SHOWN:]
    lines = [f"  {_part(part)}" for part in shown]
    if rest and level.memory == "L2":
        size = sum(part.bytes for part in rest)
        lines.append(f"  {count(size):>9}  {len(rest)} more")
    head = f"{level.memory}: what takes most"
    return "\n".join([f"{head} ({level.note})" if level.note else head, *lines])


def _part(part: Part) -> str:
    note = f" ({part.note})" if part.note else ""
    return f"{count(part.bytes):>9}  {part.name}{note}"


def _layer_table(layers: tuple[LayerDemand, ...]) -> Table:
    columns = (
        Column("layer"),
        Column("on"),
        Column("tile k,c,y,x"),
        Column("L1 B", True),
        Column("least", True),
        Column("untiled", True),
        Column("weights B", True),
        Column("least", True),
        Column("whole", True),
    )
    rows = tuple(
        (
            layer.layer + (" (!)" if layer.l1_least > layer.l1_limit else ""),
            layer.accelerator,
            layer.tile,
            count(layer.l1_planned),
            count(layer.l1_least),
            count(layer.l1_whole),
            count(layer.weights_planned),
            count(layer.weights_least),
            count(layer.weights_whole),
        )
        for layer in layers
    )
    return Table(columns, rows)


def _refused(fit: Fit) -> str:
    if not fit.refused:
        return ""
    lines = [f"  {layer}: not on {name}: {reason}" for layer, name, reason in fit.refused]
    return "\n".join(["left to the CPU for want of memory:", *lines])


def _changes(changes: tuple[Change, ...]) -> str:
    if not changes:
        return ""
    lines = []
    for change in changes:
        need = "cannot be built" if change.demand is None else f"{count(change.demand)} B"
        note = f"; {change.note}" if change.note else ""
        answer = {"yes": "fits", "no": "does not fit", "close": "close"}[change.fits]
        lines.append(
            f"  {answer}: {change.what}: {change.memory} {need} of {count(change.limit)} B, "
            f"{change.how}{note}"
        )
    return "\n".join(["changes, the nearest that fits first:", *lines])


def fit_data(fit: Fit) -> dict[str, Any]:
    """The fields of `Fit`, and what derives from them, for JSON."""
    data = dataclasses.asdict(fit)
    data["fits"] = fit.fits
    for level, entry in zip(fit.levels, data["levels"], strict=True):
        entry["fits"] = level.fits
    return data


def fit_json(fit: Fit) -> str:
    """The answer as JSON."""
    return json.dumps(fit_data(fit), indent=2)
