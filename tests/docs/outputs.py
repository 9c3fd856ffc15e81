"""Helper: run what a page of the documentation says, and compare, or write it down anew.

A fenced block ``console`` starts with ``$ htvm ...`` and continues with what that prints.  A block
``python`` may be followed by a block ``text`` with what it prints; the blocks of a page share their
names, and run in a folder of their own.  A table that the code writes stands below a comment with
the Python that prints it: ``<!-- python: print(...) -->``.  Where commands name the target
``mychip``, it is the SoC that ``htvm targets new mychip`` writes.

    python -m tests.docs.outputs docs/guides/verify.md ...    writes the outputs of today
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
from pathlib import Path
from typing import Any

import htvm
from htvm.tools.cli.app import main
from htvm.tools.skeleton import new_soc

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


if __name__ == "__main__":
    for page in map(Path, sys.argv[1:]):
        page = page.resolve()
        with tempfile.TemporaryDirectory() as place:
            found = rewritten(page.read_text(encoding="utf-8"), Path(place))
        page.write_text(found, encoding="utf-8")
