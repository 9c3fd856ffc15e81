"""`Report`: the results of a build and its run, and the ways to show them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from htvm.report.data import L1Use, L2Use, LayerRow, ReportData, SqnrRow, Summary, Unit

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["L1Use", "LayerRow", "L2Use", "Report", "SqnrRow", "Summary", "Unit"]


@dataclass(frozen=True, repr=False)
class Report(ReportData):
    """The results of `Module.report()`, with the fields of `htvm.report.data.ReportData`.

    Printing it shows all tables, an interactive session the first screen; `save` writes pages,
    figures, tables and JSON.
    """

    def __str__(self) -> str:
        """Return the report as text."""
        from htvm.report.layers import report_text

        return report_text(self)

    def __repr__(self) -> str:
        """Return the first screen, so that an interactive session shows it."""
        return self.screen()

    def screen(self, width: int = 80) -> str:
        """Return the answer in about 15 lines: latency, memories, the dearest steps and why.

        Args:
            width: characters per line, at least 60; longer lines are cut.
        """
        from htvm.report.screen import screen_text

        return screen_text(self, width)

    def save(self, path: str | Path) -> Path:
        """Write the report to a file; its suffix selects the format (see `htvm.report.save`).

        Raises:
            ExportError: the suffix is not supported, or the file cannot be written.
            DependencyError: the format is a figure and matplotlib is not installed.
        """
        from htvm.report.save import save

        return save(self, path)
