"""Imports form no circles, whether they are needed when a program runs or for types alone."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

from tests.frontend.flatfile import small_network

HERE = Path(__file__).parents[2]
PACKAGES = ("htvm", "patterns", "byoc_dory", "runtime_c")


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


def test_a_program_begins_where_all_of_its_file_is_defined() -> None:
    for package in PACKAGES:
        for path in (HERE / package).rglob("*.py"):
            *before, _ = [ast.unparse(node) for node in ast.parse(path.read_text("utf-8")).body]
            assert not [text for text in before if text.startswith("if __name__ ==")], path


_BUILT = """
import sys
import htvm
from htvm.inputs import seeded_inputs
module = htvm.build(sys.argv[1], sys.argv[2])
assert module.run(seeded_inputs(module.model.inputs)).outputs
"""


@pytest.mark.rotating(1)
@pytest.mark.parametrize("target", ["cortex_m4", "diana"])
def test_the_compiler_builds_and_runs_without_tools(target: str, tmp_path: Path) -> None:
    for package in PACKAGES:
        shutil.copytree(HERE / package, tmp_path / package, ignore=shutil.ignore_patterns("tools"))
    network = tmp_path / "net.tflite"
    network.write_bytes(small_network().file())
    done = subprocess.run(
        [sys.executable, "-c", _BUILT, str(network), target], cwd=tmp_path, check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
