"""What binds layers of programs that an accelerator's own compiler planned, by its estimate.

Such a program computes many layers in one step, and its cycles are the compiler's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htvm.tools.report.table import Column, Table, count, percent, table_of

if TYPE_CHECKING:
    from htvm.tools.report.data import ReportData
    from htvm.tools.report.parts import Estimate

_SLOWEST = 3  # layers on the first screen


def causes_of(estimates: Sequence[Estimate]) -> tuple[str, ...]:
    """Return all causes of estimates, in the order in which they occur."""
    return tuple(dict.fromkeys(cause for each in estimates for cause, _ in each.causes))


def estimates_table(report: ReportData) -> Table:
    """Return estimated cycles of layers by cause and by memory, with a total below."""
    rows, causes = report.estimates, causes_of(report.estimates)
    whole = sum(each.cycles for each in rows)
    memories = dict.fromkeys(memory for each in rows for memory, _ in each.memory_cycles)
    sums = [count(sum(dict(each.causes).get(cause, 0) for each in rows)) for cause in causes]
    taken = [dict(each.memory_cycles) for each in rows]
    sums += [count(sum(each.get(name, 0) for each in taken)) for name in memories]

    def column(cause: str) -> tuple[Column, object]:
        return Column(cause, number=True), lambda each: dict(each.causes).get(cause)

    def accessed(name: str) -> tuple[Column, object]:
        column = Column(f"{name} accessed", number=True, spare=True)
        return column, lambda each: dict(each.memory_cycles).get(name)

    return table_of(
        rows,
        (Column("layer", wraps=True), lambda each: each.layer),
        (Column("cycles", number=True), lambda each: each.cycles),
        (Column("%", number=True), lambda each: percent(each.cycles, whole)),
        (Column("bound by"), lambda each: each.bound),
        *map(column, causes),  # type: ignore[arg-type]
        *map(accessed, memories),  # type: ignore[arg-type]
        title=f"cycles estimated for {_names(rows)}, by what binds their operators: MACs, outputs "
        "or weights, or a slower memory"
        + (f"; and in which {' and '.join(memories)} are accessed" if memories else ""),
        footer=("total", count(whole), "", "", *sums) if rows else (),
    )


def accesses_text(report: ReportData) -> str:
    """Return a line for each memory on what is moved; empty if no estimate is known."""
    whole = sum(each.cycles for each in report.estimates)
    return "\n".join(
        f"{each.memory}: {count(each.read)} B read, {count(each.written)} B written in "
        f"{count(each.cycles)} cycles, {percent(each.cycles, whole)} % of all"
        for each in report.accesses
    )


def slowest_lines(report: ReportData) -> list[str]:
    """Return the slowest layers with their two largest causes; none without estimates."""
    whole = sum(each.cycles for each in report.estimates)
    slowest = sorted(report.estimates, key=lambda each: -each.cycles)[:_SLOWEST]
    if not whole:
        return []
    longest = max(len(each.layer) for each in slowest)
    lines = [f"the slowest layers of {_names(report.estimates)}, estimated:"]
    for each in slowest:
        causes = sorted(each.causes, key=lambda cause: -cause[1])[:2]
        said = ", ".join(f"{100 * part / each.cycles:.0f} % {cause}" for cause, part in causes)
        share = 100 * each.cycles / whole
        lines.append(f"  {each.layer:<{longest}}  {share:4.1f} %  bound by {said}")
    return lines


def _names(rows: Sequence[Estimate]) -> str:
    return " and ".join(dict.fromkeys(each.accelerator for each in rows))
