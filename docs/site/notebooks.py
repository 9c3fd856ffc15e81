"""The notebooks as pages of the site, with the outputs of a run if there was one.

``python docs/site/notebooks.py`` executes them into ``build/notebooks``, all whose sources have
changed since; `make docs` does so.  A site that is built without this shows the code alone.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

__all__ = ["execute", "on_files", "pages"]

ROOT = Path(__file__).parents[2]
STORED = ROOT / "notebooks"
EXECUTED = ROOT / "build" / "notebooks"
_LIMIT = 900  # seconds of one cell
# Packages of extras, without which one is not executed.
_NEEDS = {"11_train_for_the_chip": "torch", "12_macs_and_memory_mode": "ethosu"}
_NOT_RUN = "*The code of the notebook; `make docs` shows what it prints and draws, too.*\n\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the notebooks' pages (called by mkdocs)."""
    from mkdocs.structure.files import File

    for path, data in pages():
        files.append(File.generated(config, path, content=data))
    return files


def pages() -> Iterator[tuple[str, str | bytes]]:
    """Yield the pages and their pictures: path below the site's root, and content."""
    import nbformat
    from nbconvert import MarkdownExporter

    exporter = MarkdownExporter()
    for path in sorted(STORED.glob("*.ipynb")):
        ran = _executed(path)
        notebook = nbformat.read(ran or path, as_version=4)
        names = {"output_files_dir": f"{path.stem}_files", "unique_key": path.stem}
        _without_bars(notebook)
        body, resources = exporter.from_notebook_node(notebook, resources=names)
        body = re.sub(r"\]\(\.\./docs/", "](../", body)
        if ran is None:
            title, _, rest = body.partition("\n")
            body = f"{title}\n\n{_NOT_RUN}{rest}"
        yield f"notebooks/{path.stem}.md", body
        for name, data in resources["outputs"].items():
            yield f"notebooks/{name}", data


def _without_bars(notebook: Any) -> None:
    """Take away what progress bars leave, which is empty."""
    for cell in notebook.cells:
        if "outputs" in cell:
            cell.outputs = [
                each for each in cell.outputs if each.get("data", {}).get("text/html") != ""
            ]


def execute() -> None:
    """Execute the notebooks that were not, or whose source has changed."""
    import nbformat
    from nbclient import NotebookClient

    EXECUTED.mkdir(parents=True, exist_ok=True)
    for path in sorted(STORED.glob("*.ipynb")):
        if _executed(path) is not None:
            continue
        package = _NEEDS.get(path.stem)
        if package is not None and importlib.util.find_spec(package) is None:
            sys.stderr.write(f"not executing {path.name}, which needs {package}\n")
            continue
        sys.stderr.write(f"executing {path.name}\n")
        notebook = nbformat.read(path, as_version=4)
        settings = {"metadata": {"path": str(STORED)}}
        NotebookClient(notebook, timeout=_LIMIT, resources=settings).execute()
        notebook.metadata["source"] = _digest(path)
        whole = EXECUTED / f"{path.name}.new"
        nbformat.write(notebook, whole)
        whole.replace(EXECUTED / path.name)


def _executed(path: Path) -> Path | None:
    """Return the executed notebook if it is of today's source."""
    import nbformat

    found = EXECUTED / path.name
    if not found.is_file():
        return None
    notebook = nbformat.read(found, as_version=4)
    return found if notebook.metadata.get("source") == _digest(path) else None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    execute()
