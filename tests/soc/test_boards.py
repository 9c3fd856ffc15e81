"""Boards as data: their files, their targets, what fits them, and what is said of others."""

from __future__ import annotations

import importlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import byoc_dory.soc.boards as package
import htvm
from benchmarks import qemu
from byoc_dory.errors import L2OverflowError, TargetError
from byoc_dory.soc.board import boards, read_board
from byoc_dory.soc.boards.description import CORES
from byoc_dory.soc.registry import board_target, resolve
from htvm.inputs import seeded_inputs
from htvm.tools.cli import main
from htvm.tools.cli.arguments import open_model
from htvm.tools.cli.verbs import VERBS
from htvm.tools.report.fit import Fit
from tests.frontend.flatfile import small_network
from tests.tools import tool

DATA = Path(package.__file__).parent / "data"


NAMES = sorted(boards())

PRODUCTS = (
    "apollo3-evb arduino-due bl616-dk ch32v203-evt ch32v307-evt ek-ra4m1 ek-ra6m5 esp32 esp32-c3 "
    "esp32-c6 esp32-h2 esp32-p4 esp32-s3 giga-r1 longan-nano microbit-v2 mimxrt1060-evk "
    "nano-33-ble nrf52840-dk nrf5340-dk nrf54l15-dk nucleo-f446re nucleo-f767zi nucleo-g0b1re "
    "nucleo-h563zi nucleo-h743zi nucleo-h7a3zi-q nucleo-l4r5zi nucleo-u575zi-q nucleo-wb55rg pico "
    "pico-2 pico-w portenta-h7 teensy-40 teensy-41 uno-r4-wifi"
)
"""What people have, of every maker; there are more."""


def test_there_are_boards_that_people_have() -> None:
    assert {*PRODUCTS.split()} <= {*NAMES}
    assert sum(not board.qemu for board in boards().values()) >= 40
    # Nobody has published the memories of boards with these that people have.
    without = {"cortex_m52", "rv32imcv"}
    assert {board.core for board in boards().values()} == {*CORES} - without


@pytest.mark.rotating(20)
@pytest.mark.parametrize("name", NAMES)
def test_every_board_is_a_target(name: str) -> None:
    board = boards()[name]
    target = resolve(board_target(name))
    assert target.name == f"{board.npu or board.core}:board={name}" == resolve(name).name
    host = CORES[board.core]
    if host.vectors is not None:
        host = replace(host, vectors=replace(host.vectors, bits=board.vector_bits))
    assert target.soc.clock_hz == (board.npu_clock_hz or board.clock_hz)
    assert target.soc.host == host
    alone = resolve(f"{board.core}:board={name}").soc
    assert (alone.clock_hz, alone.memories) == (board.clock_hz, target.soc.memories) or board.npu
    flash, ram = target.soc.memories
    assert (flash.base, flash.size) == (board.flash.address, board.flash.size)
    assert (ram.base, ram.size) == (board.ram.address, board.ram.size)
    assert flash.end <= ram.base or ram.end <= flash.base


@pytest.mark.parametrize("name", NAMES)
def test_every_number_has_a_source(name: str) -> None:
    board = boards()[name]
    given = {"core", "clock_hz", "flash", "ram"}
    more = ("fpu", "console", "platformio", "vector_bits", "npu", "npu_macs", "npu_clock_hz")
    more += ("flash_reads", "cores")
    given |= {field for field in more if getattr(board, field)}
    assert {*board.sources} == given
    for text in board.sources.values():
        kind, _, rest = text.partition(": ")
        assert kind in ("published", "unverified") and len(rest) > 5, text
    arm = CORES[board.core].arm
    cores = {"cortex-m4": "fpv4-sp-d16", "cortex-m7": "fpv5", "cortex-m33": "fpv5-sp-d16"}
    cores |= dict.fromkeys(("cortex-m55", "cortex-m85"), "fpv5-d16")
    if board.fpu:
        assert arm is not None and board.fpu.startswith(cores[arm.cpu])


NPU = [name for name in NAMES if boards()[name].npu]
CORTEX = [n for n in NAMES if boards()[n].core.startswith("cortex") and n not in NPU]
OTHERS = [name for name in NAMES if name not in (*CORTEX, *NPU)]


@pytest.mark.rotating(1)
@pytest.mark.parametrize("name", [*CORTEX, *OTHERS])
def test_a_network_links_and_runs(name: str, tmp_path: Path) -> None:
    """Linked for the board's own memories, and run where the core has an emulator.

    In integers: for one in reals, zig makes a library for each core, in 5 s.
    """
    host = resolve(name).soc.host
    model = tmp_path / "small.tflite"
    model.write_bytes(small_network().file())
    module = htvm.build(model, name, platform=host.platform if host.arm is None else "arm")
    assert module.report().summary.memory.total <= boards()[name].ram.size
    if host.vectors is not None:
        tool("qemu-riscv64")
    if host.xtensa is not None:
        tool(host.xtensa.gcc)
        tool("qemu-xtensa")
    if host.arm is not None and not host.arm.emulator:
        tool(qemu.PROGRAM)
        module = htvm.build(model, name)
    inputs = seeded_inputs(module.compiled.source.inputs)
    (output,) = module.run(inputs).outputs
    np.testing.assert_array_equal(output, module.reference(inputs)[0])


@pytest.mark.rotating(1)
@pytest.mark.parametrize("name", NPU)
def test_a_network_fits_and_runs_beside_an_npu(name: str, tmp_path: Path) -> None:
    """With the board's NPU, on this machine with the model of the device; and it fits."""
    pytest.importorskip("ethosu.regor", reason="ethos-u-vela is not installed")
    path, board = tmp_path / "small.tflite", boards()[name]
    path.write_bytes(small_network().file())
    found = htvm.fit(path, name)
    assert found.fits == "yes" and found.target == f"ethos_u55:board={name}"
    limits = {level.memory: level.limit for level in found.levels}
    assert (limits["flash"], limits["RAM"]) == (board.flash.size, board.ram.size)
    module = htvm.build(path, name, platform="host")
    (core,) = module.compiled.target.accelerators
    assert core.peak_macs == board.npu_macs
    inputs = seeded_inputs(module.model.inputs)
    np.testing.assert_array_equal(module.run(inputs).outputs[0], module.reference(inputs)[0])


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("ethos_u55:board=pico", "cannot be .pico.; .*grove-vision-ai-v2"),
        ("ethos_u55:board=grove-vision-ai-v2,macs=256", "macs is 64 on the board, not 256"),
        ("ethos_u55:board=grove-vision-ai-v2,sram=1MiB", "sram is .* on the board"),
        ("ethos_u55:board=numaker-m55m1,clock=400", "220 MHz at most, not 400"),
        ("ethos_u65:board=ek-ra8p1", "there is no ethos_u65 with board=ek-ra8p1"),
    ],
)
def test_what_a_board_with_an_npu_has_not(target: str, said: str) -> None:
    with pytest.raises(TargetError, match=said):
        resolve(target)


def test_an_unknown_board_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(TargetError, match="`htvm boards` lists all"):
        board_target("nothing")
    assert main(["fit", "zoo:digits", "--board", "nucleo-l4r5z"]) != 0
    told = capsys.readouterr().err
    assert "unknown board 'nucleo-l4r5z'; did you mean nucleo-l4r5zi? `htvm boards` lists" in told
    assert main(["fit", "zoo:digits", "-t", "cortex_m4:board=nucleo-l4r5z"]) != 0
    assert "did you mean nucleo-l4r5zi? give one of none, " in capsys.readouterr().err
    assert main(["fit", "zoo:digits", "-t", "nucleo-l4r5z"]) != 0
    assert "did you mean nucleo-l4r5zi? known targets: " in capsys.readouterr().err


def test_a_core_that_the_board_has_not() -> None:
    with pytest.raises(TargetError, match=r"no cortex_m4 with board=pico-2.*there is cortex_m33"):
        resolve("cortex_m4:board=pico-2")


def test_every_verb_with_a_target_has_a_board() -> None:
    for verb in VERBS:
        command = importlib.import_module(f"htvm.tools.cli.verbs.{verb}").command
        options = {name for parameter in command.params for name in parameter.opts}
        assert ("-t" in options) == ("--board" in options), verb


@pytest.mark.parametrize("target", ["diana", "cortex_m33", "pico", "cortex_m0plus:board=pico"])
def test_a_board_and_another_target_are_refused(
    target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for verb in ("fit", "explain", "compare", "sweep", "run"):
        assert main([verb, "zoo:digits", "--board", "pico-2", "--target", target]) != 0
        assert f"and the target {target} are two answers to one question" in capsys.readouterr().err


def test_a_board_and_its_own_target_agree(capsys: pytest.CaptureFixture[str]) -> None:
    for target in ("pico-2", "cortex_m33:board=pico-2"):
        assert main(["fit", "zoo:digits", "--board", "pico-2", "--target", target]) == 0
        assert capsys.readouterr().out.startswith("digits on cortex_m33:board=pico-2")


READS = {"waits": 2, "line_bytes": 16, "code_lines": 64, "data_lines": 8}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "other"}, "another name than its file.*call the file other.json"),
        ({"clock_hz": "fast"}, "no description of a board.*clock_hz"),
        ({"clock_hz": 0}, "a clock or a size below 1"),
        ({"flash": {"base": "0x8000000", "size": -1}}, "a size below 1"),
        ({"flash": {"base": "here", "size": 1}}, "no description of a board"),
        ({"flash": {"base": "0x8000000"}}, "'flash' lacks the field 'size'"),
        ({"flash": 4096}, "'flash' is no record of base, size"),
        ({"ram": {"base": "0x10001000", "size": 65536}}, "flash and RAM overlap"),
        ({"ram": None}, "a board lacks the field 'ram'"),
        ({"npu": "ethos_u55"}, "an NPU without MACs or a clock"),
        ({"flash_reads": {"waits": 1}}, "'flash_reads' lacks the field 'line_bytes'"),
        ({"flash_reads": READS | {"line_bytes": 0}}, "flash with lines below 1 B"),
        ({"flash_reads": READS | {"waits": -1}}, "or with negative numbers.*check flash_reads"),
        ({"flash_reads": READS}, "'flash_reads' has no source"),
        ({"flsh": 1}, "a board has no field 'flsh'.*did you mean flash[?]"),
        ({"platformio": {"platform": "p", "bord": "b"}}, "no field 'bord'.*did you mean board[?]"),
        ({"console": ""}, "'console' has a source but no value"),
        ({"sources": {}}, "'clock_hz' has no source.*list in 'sources': clock_hz, console"),
    ],
)
def test_files_that_are_no_boards(change: dict[str, object], said: str, tmp_path: Path) -> None:
    """`None` stands for a field that is left out."""
    path = tmp_path / "pico-2.json"
    shutil.copy(DATA / path.name, path)
    assert read_board(path) == boards()["pico-2"]
    data = json.loads(path.read_text()) | change
    path.write_text(json.dumps({name: value for name, value in data.items() if value is not None}))
    with pytest.raises(TargetError, match=said):
        read_board(path)


def test_sources_say_whether_they_were_read(tmp_path: Path) -> None:
    path = tmp_path / "pico-2.json"
    data = json.loads((DATA / path.name).read_text())
    path.write_text(json.dumps(data | {"sources": data["sources"] | {"ram": "the web"}}))
    with pytest.raises(TargetError, match="source of 'ram' is 'the web'.*begin it with"):
        read_board(path)
    path.write_text("{")
    with pytest.raises(TargetError, match="no description of a board.*`htvm boards new NAME`"):
        read_board(path)


def test_a_board_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Written, shown, changed and used by its file; nothing of the other passes for verified."""
    monkeypatch.chdir(tmp_path)
    assert main(["boards", "new", "mine", "--like", "pico-2"]) == 0
    capsys.readouterr()
    path = Path("mine.json")
    board = read_board(path)
    known = {"core", "fpu", "clock_hz", "flash", "ram", "cores"}
    assert {*board.unverified} == {*board.sources} == known
    assert board.ram == boards()["pico-2"].ram and board.platformio is None
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {"ram": {"base": "0x20000000", "size": 8192}}))
    assert main(["boards", "show", "mine.json"]) == 0
    assert "8,192 B at 0x20000000" in capsys.readouterr().out
    for option in ("--board", "-t"):
        assert main(["fit", "zoo:digits", option, "mine.json"]) == 1
        assert "on cortex_m33:board=mine.json: it does NOT fit" in capsys.readouterr().out
    assert main(["boards", "new", "mine"]) == 2
    assert "no such file" in capsys.readouterr().err
    path.write_text(json.dumps(data | {"core": "cortex_m35"}))
    assert main(["fit", "zoo:digits", "--board", "mine.json"]) == 2
    assert "there is no core 'cortex_m35'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["new", "My Board"], "a board cannot be called that"),
        (["new", "pico-2"], "the name is taken"),
        (["new", "mine", "--like", "pico-3"], "unknown board 'pico-3'; did you mean pico-"),
        (["show", "pico-3"], "unknown board 'pico-3'"),
        (["show", "none.json"], "no description of a board: No such file"),
        (["show", "a=b.json"], "no description of a board: No such file"),
    ],
)
def test_mistakes_with_boards(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["boards", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_the_list_of_boards(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["boards"]) == 0
    told = capsys.readouterr().out
    assert all(f"\n{name} " in told for name in NAMES)
    assert main(["boards", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["boards"]
    assert [entry["name"] for entry in listed] == NAMES


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
    small = soc.resized("L2", 40 * 1024)  # too few by rows, too
    monkeypatch.setattr(description, "MICROCONTROLLER", small)
    found = fitted(model, "cortex_m4")
    assert found.fits == "no" and found.level("RAM").fits == "no"
    assert found.changes[0].fits == "yes"
    ram, flash = found.level("RAM").demand, found.level("flash").demand
    enough = [
        board
        for board in boards().values()
        if board.core == "cortex_m4" and board.ram.size >= ram and board.flash.size >= flash
    ]
    least = min(enough, key=lambda board: (board.ram.size, board.flash.size, board.name))
    assert any(f"(--board {least.name})" in change.what for change in found.changes)
    with pytest.raises(L2OverflowError, match="the arena dominates.*a board with more memory"):
        htvm.build(model, "cortex_m4")
