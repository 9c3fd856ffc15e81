"""Helper: run what a page of the documentation says, and compare, or write it down anew.

A fenced block ``console`` starts with ``$ htvm ...`` and continues with what that prints.  A block
``python`` may be followed by a block ``text`` with what it prints; the blocks of a page share their
names, and run in a folder of their own.  A block ``py`` is not run.  A table that the code writes
stands below a comment with the Python that prints it: ``<!-- python: print(...) -->``.  Where
commands name the target ``mychip``, it is the SoC that ``htvm targets new mychip`` writes.

    python -m tests.docs.outputs docs/guides/verify.md ...    writes the outputs of today
    python -m tests.docs.outputs --check PAGE ...             fails where they differ
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterable
from difflib import unified_diff
from pathlib import Path
from typing import Any

import htvm
from htvm.tools.cli.app import main
from htvm.tools.skeleton import new_soc

PAGES = (
    "README.md",
    "docs/tutorial.md",
    "docs/bring-your-own-soc.md",
    "docs/guides/first-report.md",
    "docs/guides/verify.md",
    "docs/guides/export.md",
    "docs/guides/from-microtvm.md",
    "docs/guides/from-tvmc.md",
    "docs/guides/own-pipeline.md",
    "docs/guides/quantize.md",
    "docs/guides/fit.md",
    "docs/guides/explain.md",
    "docs/guides/report.md",
    "docs/guides/boards.md",
)
"""Pages that show what comes out, below the root of the checkout."""

QUOTING = ("docs/comparison.md", "docs/contract.md", "docs/guides/relax-to-c.md")
"""Pages that quote figures of tables, or take a moment."""

_BLOCK = re.compile(
    r"```(console|python|text)\n(.*?)```\n|(<!-- python: (.*?) -->\n)(?:\|[^\n]*\n)+", re.S
)


def rewritten(text: str, folder: Path) -> str:
    """The page with the outputs of today.

    Args:
        text: of the page.
        folder: to run in; an empty one.
    """
    names: dict[str, Any] = {"__name__": "page"}
    printed: str | None = None
    before, path = Path.cwd(), list(sys.path)
    os.chdir(folder)
    try:
        _install(folder, re.findall(r"\$ htvm .*--target (mychip)\b", text))
        parts, at = [], 0
        for block in _BLOCK.finditer(text):
            kind, body, comment, code = block.groups()
            if comment:
                table = _captured(lambda code=code: exec(code, names))
                parts += [text[at : block.start()], comment, table]
                at = block.end()
                continue
            if kind == "python":
                printed = _captured(lambda body=body: exec(body, names))
            elif kind == "console":
                command = body.splitlines()[0].removeprefix("$ ")
                body = f"$ {command}\n" + _captured(lambda command=command: _run(command))
            elif printed is not None:
                body, printed = printed, None
            parts += [text[at : block.start()], f"```{kind}\n{body}```\n"]
            at = block.end()
        return "".join([*parts, text[at:]])
    finally:
        os.chdir(before)
        sys.path[:] = path


def _install(folder: Path, names: Iterable[str]) -> None:
    """Put new SoCs where Python finds them, with the files that pip would write."""
    for name in set(names) - set(htvm.targets()):
        source = new_soc(name, folder / f"{name}_soc") / "src"
        record = source / f"{name}_soc.dist-info"
        record.mkdir()
        (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-soc\nVersion: 0\n")
        (record / "entry_points.txt").write_text(
            f"[htvm.socs]\n{name} = {name}_soc.description:soc\n"
        )
        sys.path.insert(0, str(source))


def _run(command: str) -> None:
    program, *arguments = shlex.split(command)
    assert program == "htvm", command
    main(arguments)


def _captured(work: Any) -> str:
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        work()
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())


def changes(page: Path, folder: Path) -> list[str]:
    """What a page shows that does not come out today, as lines of a difference.

    Args:
        page: its file.
        folder: to run in; an empty one.
    """
    text = page.read_text(encoding="utf-8")
    today = rewritten(text, folder).splitlines()
    return list(unified_diff(text.splitlines(), today, "shown", "today", "", ""))


def _main(pages: list[str]) -> None:
    for page in (Path(name).resolve() for name in pages if name != "--check"):
        with tempfile.TemporaryDirectory() as folder:
            if "--check" in pages:
                found = changes(page, Path(folder))
                if found:
                    sys.exit("\n".join([*found, f"{page.name}: {_first(found)}"]))
            else:
                write(page, Path(folder))


def write(page: Path, folder: Path) -> None:
    """Write a page with the outputs of today.

    Args:
        page: its file.
        folder: to run in; an empty one.
    """
    page.write_text(rewritten(page.read_text(encoding="utf-8"), folder), encoding="utf-8")


def _first(found: list[str]) -> str:
    """The first line of a page that is not so today."""
    return next(line for line in found[2:] if line[:1] in "+-")


if __name__ == "__main__":
    _main(sys.argv[1:])
