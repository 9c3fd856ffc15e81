"""`Report`: the results of a build and its run, and the ways to show them."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from htvm.shown import Shown
from htvm.tools.report.data import ReportData

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class Report(ReportData, Shown):
    """The results of `Module.report()`, with the fields of `htvm.tools.report.data.ReportData`.

    Printing it shows all tables, an interactive session the first screen; `save` writes pages,
    figures, tables and JSON.
    """

    def _rows(self) -> tuple[object, ...]:
        return self.layers

    def __str__(self) -> str:
        """Return the report as text."""
        from htvm.tools.report.layers import report_text

        return report_text(self)

    def __repr__(self) -> str:
        """Return the first screen, so that an interactive session shows it."""
        return self.screen()

    def screen(self, width: int = 80) -> str:
        """Return the answer in about 16 lines: latency, memories, the slowest steps and why.

        Args:
            width: characters per line, at least 60; longer lines are cut.
        """
        from htvm.tools.report.screen import screen_text

        return screen_text(self, width)

    def _repr_html_(self) -> str:
        """The first screen, the cycles by cause, and all steps as a table, for notebooks."""
        from htvm.tools.report.html.tables import cause_bar

        return (
            f"<pre>{escape(self.screen())}</pre>{cause_bar(self)}"
            f"<details><summary>all {len(self.layers)} steps</summary>"
            f"{self._table_html()}</details>"
        )

    def plot_timeline(self) -> Figure:
        """Plot when each unit worked on what.

        Raises:
            DependencyError: matplotlib is not installed.
        """
        return self._figure("timeline")

    def plot_layers(self) -> Figure:
        """Plot the steps that take longest, each as a bar of its causes.

        Raises:
            DependencyError: matplotlib is not installed.
            InputError: there are no cycles.
        """
        return self._figure("layers")

    def plot_memory(self) -> Figure:
        """Plot the tensors in L1 and in the arena over time.

        Raises:
            DependencyError: matplotlib is not installed.
            InputError: nothing is placed in these memories.
        """
        return self._figure("memory")

    def plot_roofline(self) -> Figure:
        """Plot the layers on accelerators against the limits of arrays and DMA.

        Raises:
            DependencyError: matplotlib is not installed.
            InputError: no layer was simulated on an accelerator.
        """
        return self._figure("roofline")

    def plot_accuracy(self) -> Figure:
        """Plot what retargeting cost each layer: its SQNR against the source model, in dB.

        Raises:
            DependencyError: matplotlib is not installed.
            InputError: retargeting changed nothing, or it was not measured.
        """
        from htvm.tools.report.figures import accuracy_figure

        return accuracy_figure(self)

    def _figure(self, part: str) -> Figure:
        from htvm.tools.report.figures import report_figure

        return report_figure(self, part)

    def save(self, path: str | Path) -> Path:
        """Write the report to a file; its suffix selects the format (see `htvm.tools.report.save`).

        Raises:
            ExportError: the suffix is not supported, or the file cannot be written.
            DependencyError: the format is a figure and matplotlib is not installed.
        """
        from htvm.tools.report.save import save

        return save(self, path)
