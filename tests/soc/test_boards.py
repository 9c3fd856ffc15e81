"""Boards as data: their files, their targets, what fits them, and what is said of others."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import byoc_dory.soc.boards as package
import htvm
from byoc_dory.errors import L2OverflowError, TargetError
from byoc_dory.soc.boards.board import boards, read_board
from byoc_dory.soc.boards.cores import CORES
from byoc_dory.soc.registry import board_target, resolve
from htvm.cli import main
from htvm.cli.arguments import open_model
from htvm.report.fit import Fit

DATA = Path(package.__file__).parent / "data"


def test_every_board_is_a_target() -> None:
    assert {"nucleo-l4r5zi", "nucleo-g0b1re", "nucleo-h7a3zi-q", "pico-2", "esp32-c3"} <= {
        *boards()
    }
    for name, board in boards().items():
        assert board.source.startswith("published: ") and board.core in CORES
        target = resolve(board_target(name))
        assert target.name == f"{board.core}:board={name}"
        assert target.soc.clock_hz == board.clock_hz and target.soc.host == CORES[board.core]
        flash, ram = target.soc.memories
        assert (flash.base, flash.size) == (board.flash.address, board.flash.size)
        assert (ram.base, ram.size) == (board.ram.address, board.ram.size)
        assert flash.end <= ram.base or ram.end <= flash.base


def test_an_unknown_board_lists_the_known(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(TargetError) as caught:
        board_target("nucleo")
    for name in boards():
        assert name in str(caught.value)
    assert main(["fit", "zoo:digits", "--board", "nucleo"]) != 0
    told = capsys.readouterr().err
    assert "unknown board 'nucleo'; did you mean nucleo-l4r5zi? known boards: esp32-c3" in told


def test_a_core_that_the_board_has_not() -> None:
    with pytest.raises(TargetError, match=r"no cortex_m4 with board=pico-2.*there is cortex_m33"):
        resolve("cortex_m4:board=pico-2")


def test_a_board_and_a_target_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["fit", "zoo:digits", "--board", "pico-2", "--target", "diana"]
    assert main(arguments) != 0
    assert "two answers to one question" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "other"}, "another name than its file"),
        ({"clock_hz": "fast"}, "no description of a board.*clock_hz"),
        ({"flash": {"base": "0x8000000", "size": -1}}, "negative size"),
        ({"flash": {"base": "here", "size": 1}}, "no description of a board"),
    ],
)
def test_files_that_are_no_boards(change: dict[str, object], said: str, tmp_path: Path) -> None:
    path = tmp_path / "pico-2.json"
    shutil.copy(DATA / path.name, path)
    assert read_board(path) == boards()["pico-2"]
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(TargetError, match=said):
        read_board(path)


@pytest.fixture(scope="module")
def model() -> htvm.Model:
    return open_model("zoo:mobilenet_v1")


def fitted(model: htvm.Model, target: str) -> Fit:
    return htvm.fit(model, target)


def test_what_fits_a_board(model: htvm.Model) -> None:
    found = fitted(model, "cortex_m4:board=nucleo-l4r5zi")
    assert found.fits == "yes"
    flash, ram = found.levels
    assert (flash.memory, flash.limit, ram.memory, ram.limit) == (
        "flash", 2048 * 1024, "RAM", 640 * 1024,
    )  # fmt: skip
    assert flash.parts[0].name.startswith("constants of ")
    assert ram.parts[0].name == "arena"


def test_what_does_not_fit_a_board(model: htvm.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """The board that is large enough comes first, and a build says the same as fit."""
    from byoc_dory.soc.boards import description

    soc = description.soc()
    flash, ram = soc.memories
    small = soc.resized("L2", 64 * 1024)
    monkeypatch.setattr(description, "MICROCONTROLLER", small)
    found = fitted(model, "cortex_m4")
    assert found.fits == "no" and found.level("RAM").fits == "no"
    assert found.changes[0].fits == "yes"
    assert any("(--board nucleo-g0b1re)" in change.what for change in found.changes)
    with pytest.raises(L2OverflowError, match="the arena dominates.*a board with more memory"):
        htvm.build(model, "cortex_m4")
