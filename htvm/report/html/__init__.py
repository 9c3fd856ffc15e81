"""The report as one HTML page that needs nothing else: styles, figures and script are inside."""

from __future__ import annotations

from htvm.report.html.page import report_html

__all__ = ["report_html"]
