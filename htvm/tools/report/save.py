"""Writing reports to files; the suffix selects the format."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from htvm.errors import ExportError
from htvm.files import write_whole
from htvm.public import boundary
from htvm.tools.report.data import ReportData

if TYPE_CHECKING:
    from htvm.tools.report.data import ReportData


SCHEMA = 1
"""Version of the document: raised when a field is removed or redefined, not for new fields."""

KIND = "report"
"""The document's ``kind``."""


def report_json(report: ReportData) -> str:
    """Return the whole report as JSON.

    It has ``schema`` (`SCHEMA`), ``kind``, the fields of `ReportData`, and values derived from it:
    ``latency_ms`` and the memory's ``total``.
    """
    summary = report.summary
    data = {"schema": SCHEMA, "kind": KIND, **msgspec.to_builtins(report)}
    data["summary"]["latency_ms"] = summary.latency_ms
    data["summary"]["memory"]["total"] = summary.memory.total
    return json.dumps(data, indent=2, allow_nan=False)


def _text(report: ReportData) -> bytes:
    return f"{report}\n".encode()


def _html(report: ReportData) -> bytes:
    from htvm.tools.report.html import report_html

    return report_html(report).encode()


def _csv(report: ReportData) -> bytes:
    from htvm.tools.report.layers import report_csv

    return report_csv(report).encode()


def _json(report: ReportData) -> bytes:

    return f"{report_json(report)}\n".encode()


def _trace(report: ReportData) -> bytes:
    from htvm.tools.report.trace import report_trace

    return f"{report_trace(report)}\n".encode()


def _png(report: ReportData) -> bytes:
    from htvm.tools.report.figures import report_png

    return report_png(report)


FORMATS: Mapping[str, Callable[[ReportData], bytes]] = {
    ".html": _html,
    ".txt": _text,
    ".csv": _csv,
    ".perfetto.json": _trace,
    ".json": _json,
    ".png": _png,
}
"""Supported suffixes; if several fit, the first one counts."""


def format_of(path: str | Path, where: str = "") -> str:
    """Return the suffix that selects a file's format.

    Raises:
        ExportError: the name has no supported suffix.
    """
    name = Path(path).name.lower()
    for suffix in FORMATS:
        if name.endswith(suffix) and name != suffix:
            return suffix
    raise ExportError(
        f"'{path}' does not say which kind of report to write",
        where=where or str(path),
        hint=f"end the name with {', '.join(FORMATS)}",
    )


@boundary
def save(report: ReportData, path: str | Path, *, form: str = "", where: str = "") -> Path:
    """Write a report to a file, completely or not at all.

    Args:
        report: the report.
        path: the file; its suffix says how: ``.html`` (one page with everything), ``.txt``,
            ``.csv`` (the steps), ``.json`` (everything, see `htvm.report.load`),
            ``.perfetto.json`` (the timeline as a trace), ``.png`` (timeline, maps, roofline).
        form: one of these suffixes, if the file's name has another.
        where: where the user gave the path, for messages.

    Returns:
        The path.

    Raises:
        ExportError: the suffix is not supported, or the file cannot be written.
        DependencyError: the format is a figure and matplotlib is not installed.
    """
    form = form or format_of(path, where)
    return write_whole(path, FORMATS[form](report), "the report", where)
