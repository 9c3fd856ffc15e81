"""Kernel by kernel: each operator of a file by both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.tflm.cells import Cell
from benchmarks.tflm.run import Counted, Layer, Span

__all__ = ["middle", "side_by_side"]


def middle(span: Span | None) -> int | None:
    """Return the middle of an estimate."""
    return None if span is None else round(sum(span) / 2)


def side_by_side(ours: Cell, results: Mapping[Cell, Counted], others: Sequence[Cell]) -> str:
    """Return the layers of a network as text, ours beside those of others.

    Args:
        ours, others: cells of the same network and core.
        results: of these cells.
    """
    mine = results[ours]
    lines = [f"{ours.network}, {ours.core}, {ours.setting}: cycles (estimated), instructions"]
    head = "".join(f"  {other.by + ' ' + other.setting:>42}" for other in others)
    lines.append(f"{'':28}{'ours':>22}{head}")
    columns = [{part.name: part for part in results[other].layers} for other in others]
    for layer in mine.layers:
        parts = layer.name.split("+")
        beside = [_sum([column[part] for part in parts]) for column in columns]
        lines.append(_line(layer.name, layer, beside))
    total = Layer("all", mine.instructions, mine.estimate)
    beside = [Layer("", results[it].instructions, results[it].estimate) for it in others]
    lines.append(_line("all", total, beside))
    sizes = (f"  {results[it].flash:>31,} {results[it].ram:>10,}" for it in others)
    lines.append(f"{'flash B, RAM B':28}{mine.flash:>11,} {mine.ram:>10,}{''.join(sizes)}")
    unequal = [cell.setting for cell in (ours, *others) if not results[cell].equal]
    lines += [f"NOT EQUAL to the golden: {', '.join(unequal)}"] if unequal else []
    return "\n".join([*lines, ""])


def _sum(parts: Sequence[Layer]) -> Layer:
    spans = [part.estimate for part in parts if part.estimate is not None]
    total = (sum(each[0] for each in spans), sum(each[1] for each in spans))
    return Layer("", sum(part.instructions for part in parts), total if spans else None)


def _line(name: str, mine: Layer, beside: Sequence[Layer]) -> str:
    own = middle(mine.estimate)
    text = f"{name[:27]:28}{_number(own):>11} {mine.instructions:>10,}"
    for other in beside:
        cycles = middle(other.estimate)
        shares = f"{mine.instructions / other.instructions:.2f}"
        if own is not None and cycles:
            shares = f"{own / cycles:.2f} {shares}"
        text += f"  {_number(cycles):>20} {other.instructions:>10,} {shares:>10}"
    return text


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
