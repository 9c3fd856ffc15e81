"""The notebooks run from their first cell to their last, and are stored without what they print."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(path.name for path in FOLDER.glob("*.ipynb"))
# Run every day; the others are for those who do not wait.
QUICK = ("01_quick_start.ipynb",)
# Packages of extras that not every environment has.
NEEDS = {"11_train_for_the_chip.ipynb": "torch", "12_macs_and_memory_mode.ipynb": "ethosu"}
SECONDS = 300  # of one cell, on a busy machine
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in NOTEBOOKS],
)
def test_a_notebook_runs(name: str) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"needs the package {NEEDS[name]}")
    import nbclient
    import nbformat

    notebook = nbformat.read(FOLDER / name, as_version=4)
    # As Jupyter does it: in the notebook's own folder.
    settings = {"metadata": {"path": str(FOLDER)}}
    nbclient.NotebookClient(notebook, timeout=SECONDS, resources=settings).execute()
    drawn = [
        output
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    assert drawn, "a story without a picture"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_nothing_that_a_run_leaves_is_stored(name: str) -> None:
    for cell in read(name)["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
    assert set(read(name)["metadata"]) == {"kernelspec", "language_info"}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_links_lead_to_files(name: str) -> None:
    text = "\n".join("".join(cell["source"]) for cell in read(name)["cells"])
    assert [link for link in _LINK.findall(text) if not (FOLDER / link).exists()] == []


def test_the_readme_lists_them_all() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\((\w+\.ipynb)\)", text) == NOTEBOOKS
