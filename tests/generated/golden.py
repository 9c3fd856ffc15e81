"""A helper of tests: texts that are kept in tests/golden, one file for each."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

GOLDEN = Path(__file__).resolve().parents[1] / "golden"

_SHOWN = 200  # lines of a difference


def check_golden(name: str, text: str, update: bool) -> None:
    """Compare a text with tests/golden/``name``, or write it there.

    Args:
        name: path of the file below tests/golden, e.g. ``diana/digital_add.c``.
        text: what was generated.
        update: write the file instead (the fixture ``update_golden``).

    Fails the test with the difference where the file has another text or is missing.
    """
    path = GOLDEN / name
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        return
    known = path.read_text("utf-8") if path.is_file() else ""
    if text == known and path.is_file():
        return
    lines = difflib.unified_diff(
        known.splitlines(), text.splitlines(), f"tests/golden/{name}", "generated", lineterm=""
    )
    shown = list(lines)
    if len(shown) > _SHOWN:
        shown = [*shown[:_SHOWN], f"... and {len(shown) - _SHOWN} lines more"]
    pytest.fail(
        "the generated text has changed. If that is meant: pytest tests/generated "
        "tests/byoc_dory/test_emit_golden.py --update-golden, and read the diff\n"
        + "\n".join(shown),
        pytrace=False,
    )
