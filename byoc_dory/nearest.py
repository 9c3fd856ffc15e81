"""`nearest`: what somebody may have meant who mistyped a name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(given: object, known: Iterable[str]) -> str:
    """Return "did you mean NAME? " with the most similar name; empty if none is similar."""
    found = difflib.get_close_matches(str(given), list(known), n=1, cutoff=0.6)
    return f"did you mean {found[0]}? " if found else ""
