"""Reports as JSON with a versioned schema.

The document has ``schema`` (the version), ``kind`` (``"report"``) and the fields of `ReportData`,
with what derives from them: ``latency_ms`` and ``total`` of the memory.  `htvm.report.loading`
reads it again.
"""

from __future__ import annotations

import json

import msgspec

from htvm.report.data import ReportData

__all__ = ["KIND", "SCHEMA", "report_json"]

SCHEMA = 1
"""Version of the document: raised when a field goes or changes its meaning, not for new ones."""

KIND = "report"
"""What the document says it is."""


def report_json(report: ReportData, indent: int | None = 2) -> str:
    """The whole report as JSON; ``indent=None`` gives one line."""
    summary = report.summary
    data = {"schema": SCHEMA, "kind": KIND, **msgspec.to_builtins(report)}
    data["summary"]["latency_ms"] = summary.latency_ms
    data["summary"]["memory"]["total"] = summary.memory.total
    return json.dumps(data, indent=indent, allow_nan=False)
