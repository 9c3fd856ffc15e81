"""The reference implementations take records from the product, and nothing that computes."""

from __future__ import annotations

import ast
import importlib
import inspect
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

PRODUCT = ("htvm", "patterns", "byoc_dory", "benchmarks")
FILES = sorted(
    path for path in Path(__file__).parent.glob("*.py") if not path.name.startswith("test_")
)


def used(source: str) -> Iterator[tuple[str, str]]:
    """Module and name of everything that a file imports from the product."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((item.name, "") for item in node.names if _is_product(item.name))
        elif isinstance(node, ast.ImportFrom) and _is_product(node.module or ""):
            yield from ((str(node.module), item.name) for item in node.names)


def _is_product(module: str) -> bool:
    return module.split(".")[0] in PRODUCT


def computing(source: str) -> list[str]:
    """What a file imports from the product that is neither a class nor a union of classes."""
    return [
        f"{module}.{name}"
        for module, name in used(source)
        if not _is_type(getattr(importlib.import_module(module), name, None))
    ]


def _is_type(thing: object) -> bool:
    return inspect.isclass(thing) or isinstance(thing, types.UnionType)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_only_records_are_imported(path: Path) -> None:
    assert computing(path.read_text()) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_says_what_it_is(path: Path) -> None:
    text = " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split())
    assert text.startswith("Helper: ") or (
        "independent definition" in text.lower() and "hares no code with the product" in text
        or path.name == "__init__.py"
    )  # fmt: skip


def test_a_function_of_the_product_is_seen() -> None:
    source = "from byoc_dory.errors import ModelError\nfrom htvm import load\nimport htvm, numpy\n"
    assert computing(source) == ["htvm.load", "htvm."]
