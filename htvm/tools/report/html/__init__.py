"""The report as one self-contained HTML page, with styles, figures and script inside."""

from __future__ import annotations

from htvm.tools.report.html.page import report_html

__all__ = ["report_html"]
