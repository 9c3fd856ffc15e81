"""Exports as rows of a table."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from benchmarks.torch_exports.export import exported
from benchmarks.torch_exports.fidelity import Fidelity, measured
from htvm.errors import HtvmError
from htvm.tools.report.table import Column, Table, count


@dataclass(frozen=True)
class Row:
    """An export: which, and what was found or why nothing was."""

    network: str
    quantizer: str
    way: str
    found: Fidelity | None
    reason: str = ""

    @property
    def per_million(self) -> float:
        """Results that differ, of a million."""
        return 1e6 * self.found.different / max(self.found.elements, 1) if self.found else 0.0


def row_of(network: str, quantizer: str, way: str, plain: ProcessPoolExecutor) -> Row:
    """Export a network and compare it with torch, also in the other process."""
    try:
        program = exported(network, quantizer, training=way == "qat")
    except (HtvmError, RuntimeError, ValueError, TypeError, AttributeError) as error:
        return Row(network, quantizer, way, None, f"not exported: {type(error).__name__}")
    try:
        return Row(network, quantizer, way, measured(program, plain=plain))
    except HtvmError as error:
        return Row(network, quantizer, way, None, f"not read: {error}")


def said(reached: bool) -> str:
    """Return whether a goal was reached."""
    return "reached" if reached else "MISSED"


def table_of(rows: list[Row]) -> Table:
    """Return the rows as a table."""
    columns = (
        Column("network"),
        Column("quantizer"),
        Column("way"),
        Column("results", number=True),
        Column("per million", number=True),
        Column("float64", number=True),
        Column("SSE", number=True),
        Column("largest", number=True),
        Column("outputs different", number=True),
        Column("why not"),
    )
    return Table(columns, tuple(_cells(row) for row in rows))


def _cells(row: Row) -> tuple[str, ...]:
    name = (row.network, row.quantizer, row.way)
    if row.found is None:
        return (*name, *("",) * 6, row.reason.partition(";")[0])
    found = row.found
    doubles, plain = (
        f"{1e6 * others / max(found.elements, 1):.1f}"
        for others in (found.doubles_different, found.plain_different)
    )
    outputs = f"{found.ends_different} of {count(found.ends)}"
    share = f"{row.per_million:.1f}"
    return (*name, count(found.elements), share, doubles, plain, str(found.largest), outputs, "")
