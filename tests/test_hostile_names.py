"""Names and paths of strangers in everything that is written: they do nothing there."""

from __future__ import annotations

import csv
import io
import logging
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import htvm
from byoc_dory.emit.layout import RowLayout
from byoc_dory.layers import Tensor
from byoc_dory.plain import code_span, csv_cell, markdown, plain
from htvm.errors import ModelError
from htvm.tools.cli.app import main
from htvm.tools.cli.terminal import log_to_stderr
from htvm.tools.report.table import Column, Table, csv_text, frame_csv, text, wrapped
from tests.frontend.single import CASES

HOSTILE = (
    '=HYPERLINK("http://e","x")|`a`<script>alert(1)</script>[l](http://e)<b>\x1b[31m\nhtvm: ok\r'
    "\u202eabc\u2028*/ ??/ %s {{7}} ${x} \\ _b_ **c** &lt; \x9b2J \ud800"
)
"""A name; as one in a file it lacks its last character, which UTF-8 cannot hold."""
PATH = "=a|`b`\x1b[31m<script>\u202e\udcff.tflite"
TEXTS = st.text(st.characters(codec=None), max_size=40)


def check_lines(shown: str) -> None:
    assert all(line.isprintable() for line in shown.split("\n"))
    assert not any(line.startswith("htvm: ok") for line in shown.split("\n"))


def kinds(page: str) -> set[str]:
    """Kinds of the inline tokens of a page of Markdown."""
    tokens = MarkdownIt("commonmark").enable("table").enable("strikethrough").parse(page)
    return {child.type for token in tokens for child in token.children or ()} | {
        token.type for token in tokens if not token.children
    }


def rendered(page: str) -> str:
    tokens = MarkdownIt("commonmark").enable("table").enable("strikethrough").parse(page)
    return "".join(child.content for token in tokens for child in token.children or ())


# ------------------------------------------------------------------------------ the writers


@given(TEXTS)
def test_plain_text_is_one_line_of_what_can_be_printed(name: str) -> None:
    shown = plain(name)
    assert shown.isprintable() and shown == plain(shown)
    assert shown == name or not name.isprintable()
    shown.encode()


@given(TEXTS)
def test_no_cell_is_a_formula(name: str) -> None:
    for head in ("", "=", "+", "-", "@", "\t=", "\r@"):
        for (cell,) in csv.reader(io.StringIO(csv_text(["name"], [[head + name]]))):
            assert not cell.startswith(("=", "+", "-", "@")) or cell == "name" or _number(cell)


def _number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("cell", [-3, -2.5, "-3", "+1e-3", "conv2d_0", "", "128,640,1,1", None])
def test_other_cells_stay_as_they_are(cell: object) -> None:
    assert csv_cell(cell) == cell


@given(TEXTS)
def test_markdown_shows_the_name(name: str) -> None:
    page = f"| a |\n|---|\n| x{markdown(name)}x |\n"
    assert rendered(page) == f"ax{plain(name)}x"
    assert kinds(page) <= {"text", "text_special", *(f"{part}_{end}" for end in ("open", "close")
                           for part in ("table", "thead", "tbody", "tr", "th", "td"))}  # fmt: skip
    assert "html_inline" not in kinds(f"| a |\n|---|\n| {code_span(name)} |\n")


@given(TEXTS)
def test_errors_tables_and_wrapped_lines(name: str) -> None:
    error = ModelError(name, where=name, hint=name)
    assert str(error).isprintable() and error.what == name
    table = Table((Column("a"), Column("b", wraps=True)), ((name, name),), name, (name, name))
    for shown in (text(table), text(table, 60), *wrapped([name], 60)):
        check_lines(shown)


def test_conversions_between_layouts() -> None:
    tensor = Tensor(HOSTILE, (4, 3, 5), layout="NCHW")
    kernel = RowLayout(1.0).prologue(tensor, f"{HOSTILE}.core", "convert")
    first, *rest = kernel.source.splitlines()
    assert first.startswith("/*") and first.endswith("*/") and first.count("*/") == 1
    assert rest[0].startswith("int32_t convert(")


def test_frames() -> None:
    import pandas

    frame = pandas.DataFrame({"name": ["=a", None, "b\x1b"], "x": [-1, 2, 3], "y": [0.5, None, 1]})
    frame["name"] = frame["name"].astype("string")
    assert frame_csv(frame) == "name,x,y\n'=a,-1,0.5\n,2,\nb\\x1b,3,1.0\n"


@pytest.fixture(autouse=True)
def _unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep records from pytest's own reports, which test processes cannot exchange as they are."""
    for name in ("htvm", "patterns", "byoc_dory"):
        monkeypatch.setattr(logging.getLogger(name), "propagate", False)


def test_logs_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr(1)
    try:
        logging.getLogger("htvm.test").warning("left out: %s", HOSTILE)
        check_lines(capsys.readouterr().err)
    finally:
        for name in ("htvm", "patterns", "byoc_dory"):
            logging.getLogger(name).handlers.clear()


# ------------------------------------------------------------------------------ the whole way


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    graph = CASES["conv"](np.random.default_rng(1))
    tensors = [
        replace(tensor, name=f"{HOSTILE[:-1]}{at}") for at, tensor in enumerate(graph.tensors)
    ]
    found = tmp_path_factory.mktemp("hostile") / PATH
    found.write_bytes(replace(graph, tensors=tensors).file())
    return found


COMMANDS = ("explain", "report", "run", "verify", "fit", "explore", "compare")


@pytest.mark.rotating(3)
@pytest.mark.parametrize("verb", COMMANDS)
def test_commands(verb: str, path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    target = [] if verb == "compare" else ["--target", "diana.digital"]
    assert main([verb, str(path), *target]) in (0, 1)
    shown = capfd.readouterr()
    check_lines(shown.out)
    check_lines(shown.err)


def test_errors_of_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for words in (["explain", str(tmp_path / PATH)], ["explain", "zoo:resnet8", f"--{HOSTILE}"]):
        assert main(words) == 2
        check_lines(capfd.readouterr().err)


@pytest.mark.rotating(3)
@pytest.mark.parametrize("suffix", [".html", ".txt", ".csv", ".json", ".perfetto.json", ".png"])
def test_reports(suffix: str, path: Path, tmp_path: Path) -> None:
    out = tmp_path / f"{PATH}{suffix}"
    assert main(["report", str(path), "-t", "diana.digital", "--out", str(out)]) == 0
    content = out.read_bytes()
    if suffix == ".png":
        return
    shown = content.decode()
    if suffix.endswith(".json"):
        msgspec.json.decode(content)
        assert shown.isascii()
    elif suffix != ".html":
        check_lines(shown)
    if suffix == ".html":
        assert all(line.isprintable() for line in shown.split("\n"))  # whose ends are blanks
        assert "<script>alert" not in shown and "<b>\\x1b" not in shown
    if suffix == ".csv":
        cells = [cell for row in csv.reader(io.StringIO(shown)) for cell in row]
        assert any(cell.startswith("'=HYPERLINK") for cell in cells)
        assert not any(cell.startswith(("=", "@")) for cell in cells)
    if suffix == ".json":
        again = htvm.report.load(out)
        check_lines(str(again))
        check_lines(again._repr_html_())


def test_exports(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "export"
    assert main(["compile", str(path), "-t", "diana.digital", "--out", str(folder)]) == 0
    page = (folder / "README.md").read_text("utf-8")
    check_lines(page)
    assert plain(HOSTILE[:-1]) in rendered(page)
    assert not kinds(page) & {"html_inline", "html_block", "link_open", "image"}
    for file in folder.rglob("*"):
        if file.suffix in (".c", ".h", ".txt") and "runtime" not in file.parts:
            check_lines(file.read_text("utf-8"))
    check_lines(str(htvm.open(folder).report()))


@pytest.mark.parametrize("form", ["cmsis", "zephyr", "platformio", "cmake"])
def test_packages(form: str, path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "package"
    words = ["compile", str(path), "-t", "cortex_m4", "--out", str(folder), "--as", form]
    assert main(words) == 0
    page = next(folder.rglob("README.md")).read_text("utf-8")
    check_lines(page)
    assert not kinds(page) & {"html_inline", "html_block", "link_open"}
