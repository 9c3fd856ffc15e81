"""The verbs of the command line, one file each, with a click command called ``command``.

A verb's module is imported when the verb is called or its help is shown; the verb imports
everything beyond the command line when it runs.
"""

from __future__ import annotations

__all__ = ["VERBS"]

VERBS = (
    "quantize",
    "compile",
    "run",
    "generate",
    "verify",
    "compare",
    "explain",
    "print",
    "fit",
    "report",
    "diff",
    "explore",
    "sweep",
    "targets",
    "boards",
    "zoo",
    "cache",
    "doctor",
    "completion",
)
"""Names of the verbs, which are those of their modules, in the order of the help."""
