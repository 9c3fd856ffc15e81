"""Imports form no circles, whether they are needed when a program runs or for types alone."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import pytest

grimp = pytest.importorskip("grimp", reason="comes with import-linter, of the extra 'dev'")


def circle_of(imports: dict[str, set[str]]) -> list[str]:
    """The modules of a circle in the order in which they import each other, or nothing."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def test_a_circle_is_found() -> None:
    assert circle_of({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) in (
        ["a", "b", "c", "a"], ["b", "c", "a", "b"], ["c", "a", "b", "c"],
    )  # fmt: skip
    assert circle_of({"a": {"b", "c"}, "b": {"c"}}) == []


def test_modules_form_no_circle() -> None:
    graph = grimp.build_graph(
        "htvm", "patterns", "byoc_dory", exclude_type_checking_imports=False, cache_dir=None
    )
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert len(imports) > 400
    assert circle_of(imports) == []
