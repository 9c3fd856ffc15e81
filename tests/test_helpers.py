"""Files of this folder that are no tests say what they are."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
HELPERS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in ROOT.rglob("*.py")
    if not path.name.startswith("test_") and path.name not in ("conftest.py", "__init__.py")
)


@pytest.mark.parametrize("name", [name for name in HELPERS if not name.startswith("reference/")])
def test_helpers_are_marked(name: str) -> None:
    text = ast.get_docstring(ast.parse((ROOT / name).read_text())) or ""
    first = text.split("\n")[0]
    assert "helper" in first.lower(), f"tests/{name}: begin its docstring with 'Helper: '"
