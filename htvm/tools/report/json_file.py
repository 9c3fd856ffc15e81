"""Reports as JSON with a versioned schema.

The document has ``schema`` (the version), ``kind`` (``"report"``), the fields of `ReportData`, and
values derived from them: ``latency_ms`` and the memory's ``total``.  `htvm.report.loading` reads it
again.
"""

from __future__ import annotations

import json

import msgspec

from htvm.tools.report.data import ReportData

SCHEMA = 1
"""Version of the document: raised when a field is removed or redefined, not for new fields."""

KIND = "report"
"""The document's ``kind``."""


def report_json(report: ReportData, indent: int | None = 2) -> str:
    """Return the whole report as JSON; ``indent=None`` gives one line."""
    summary = report.summary
    data = {"schema": SCHEMA, "kind": KIND, **msgspec.to_builtins(report)}
    data["summary"]["latency_ms"] = summary.latency_ms
    data["summary"]["memory"]["total"] = summary.memory.total
    return json.dumps(data, indent=indent, allow_nan=False)
