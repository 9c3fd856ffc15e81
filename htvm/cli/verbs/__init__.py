"""The verbs of the command line, one file each, with a click command called ``command``.

A verb is imported when it is called or asked for help; what it needs beyond the command line it
imports when it runs.
"""

from __future__ import annotations

__all__ = ["VERBS"]

VERBS = (
    "compile",
    "run",
    "verify",
    "compare",
    "explain",
    "fit",
    "report",
    "explore",
    "targets",
    "completion",
)
"""Their names, which are those of their modules, in the order of the help."""
