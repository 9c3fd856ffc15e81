"""An exported project builds and checks itself anywhere; it is written completely or not at all."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.errors import ExportError, InputError, SimulationError
from byoc_dory.soc.registry import resolve
from htvm.firmware import export as export_module
from htvm.firmware.elf import read_elf
from htvm.firmware.export import MANIFEST, export, write_project
from htvm.firmware.project import project_files
from htvm.firmware.socs import machine_of
from htvm.sim.iss import run_elf
from tests.aot import tiny
from tests.aot.cpu.modules import conv_case
from tests.aot.cpu.on_the_core import program_of, soc_of
from tests.tools import tool

DIANA = resolve("diana").soc
GENERIC = resolve("generic.cpu").soc
ZIG = f"{sys.executable} -m ziglang cc"


def _golden(change: int = 0) -> tuple[list[np.ndarray], list[np.ndarray]]:
    x = np.random.default_rng(3).integers(-128, 128, (1, 4, 8)).astype(np.int8)
    outputs = tiny.reference(x)
    outputs[0][4] ^= change
    return [x], outputs


def _tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    tool("make")
    environment = {**os.environ, "ZIG_LOCAL_CACHE_DIR": str(folder.parent / "zig")}
    return subprocess.run(
        ["make", *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )


# --- what is in it ----------------------------------------------------------------------------


@pytest.mark.rotating(1)
@pytest.mark.parametrize("soc", [DIANA, GENERIC], ids=lambda soc: soc.name)
def test_make_run_passes(soc: object, tmp_path: Path) -> None:
    # Moved after the export: nothing in it may point back to where it was made.
    export(tiny.program(), soc, tmp_path / "here", _golden())  # type: ignore[arg-type]
    (tmp_path / "a folder").mkdir()
    moved = shutil.move(tmp_path / "here", tmp_path / "a folder" / "there")
    done = _make(moved, "run", f"CC={ZIG}")
    assert done.returncode == 0, done.stderr
    assert "PASS: tiny: 64 of 64 output elements equal the golden" in done.stdout


def test_make_run_fails_on_a_wrong_golden(tmp_path: Path) -> None:
    export(tiny.program(), DIANA, tmp_path / "p", _golden(change=1))
    done = _make(tmp_path / "p", "run", f"CC={ZIG}")
    assert done.returncode != 0
    assert "FAIL: tiny: 63 of 64 output elements equal the golden" in done.stdout


def test_make_run_fails_on_an_error_code(tmp_path: Path) -> None:
    export(tiny.program(fail_with=5), DIANA, tmp_path / "p", _golden())
    done = _make(tmp_path / "p", "run", f"CC={ZIG}")
    assert done.returncode != 0 and "FAIL: tiny_run returned 5" in done.stdout


@pytest.mark.rotating(1)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_make_run_with_other_compilers(compiler: str, tmp_path: Path) -> None:
    tool(compiler)
    export(tiny.program(), DIANA, tmp_path / "p", _golden())
    done = _make(tmp_path / "p", "run", f"CC={compiler}")
    assert done.returncode == 0, done.stderr


@pytest.mark.rotating(1)
@pytest.mark.parametrize(("change", "word"), [(0, b"PASS"), (1, b"FAIL")])
def test_make_rv32_gives_firmware_that_checks_itself(
    change: int, word: bytes, tmp_path: Path
) -> None:
    export(tiny.program(), DIANA, tmp_path / "p", _golden(change))
    done = _make(tmp_path / "p", "rv32", f"PYTHON={sys.executable}", f"RV32_CC={ZIG}")
    assert done.returncode == 0, done.stderr
    result = run_elf(tmp_path / "p" / "build" / "tiny.elf", machine_of(DIANA))
    assert result.output == word + b": tiny\n"
    assert result.exit_code == change


def test_a_project_for_a_core_with_simd(tmp_path: Path) -> None:
    """It has the header of the intrinsics, and the flags; both programs check themselves."""
    case = conv_case(6, 6, 3, 8, (3, 3), (1, 1), (1, 1, 1, 1), "tflite")
    program, _ = program_of(case.module, "simd")
    wanted = case.expected.reshape(program.outputs[0].shape)
    export(program, soc_of("simd"), tmp_path / "p", ([case.inputs["x"]], [wanted]))
    assert "htvm_dot4(" in (tmp_path / "p" / "src" / "net_cpu.c").read_text()
    done = _make(tmp_path / "p", "run", f"CC={ZIG}")
    assert done.returncode == 0, done.stderr
    done = _make(tmp_path / "p", "rv32", f"PYTHON={sys.executable}", f"RV32_CC={ZIG}")
    assert done.returncode == 0, done.stderr
    result = run_elf(tmp_path / "p" / "build" / "net.elf", machine_of(soc_of("simd")))
    assert result.output == b"PASS: net\n"
    # The same program is one of illegal instructions for a scalar core.
    with pytest.raises(SimulationError):
        run_elf(tmp_path / "p" / "build" / "net.elf", machine_of(GENERIC))


def test_the_files_depend_on_the_program_alone() -> None:
    assert project_files(tiny.program(), DIANA, _golden()) == project_files(
        tiny.program(), DIANA, _golden()
    )


def test_the_readme_tells_the_memory() -> None:
    text = project_files(tiny.program(), DIANA, _golden())["README.md"]
    assert "| arena | 160 (no smaller one exists" in text
    assert "| 128 to 159 | `a` | steps 0 to 3 |" in text
    assert "int32_t tiny_run(const int8_t *input_0, int8_t *output_0, int8_t *output_1);" in text


def test_a_golden_of_the_wrong_shape(tmp_path: Path) -> None:
    inputs, outputs = _golden()
    with pytest.raises(InputError, match="output 'c'"):
        export(tiny.program(), DIANA, tmp_path / "p", (inputs, [outputs[0][:5], outputs[1]]))
    assert not (tmp_path / "p").exists()


# --- how it is written ------------------------------------------------------------------------

FILES = {"README.md": "new\n", "model/a.c": "int a;\n"}


def _listing(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_missing_parents_are_made(tmp_path: Path) -> None:
    assert write_project(FILES, tmp_path / "x" / "y" / "z") == tmp_path / "x" / "y" / "z"
    assert _listing(tmp_path / "x" / "y") == [
        "z",
        f"z/{MANIFEST}",
        "z/README.md",
        "z/model",
        "z/model/a.c",
    ]


def test_an_empty_folder_and_an_earlier_export_are_replaced(tmp_path: Path) -> None:
    place = tmp_path / "p"
    place.mkdir()
    write_project({**FILES, "model/b.c": "int b;\n"}, place)
    (place / "build").mkdir()
    (place / "build" / "b.o").write_text("made by make")
    write_project(FILES, place)
    assert "model/b.c" not in _tree(place) and "build/b.o" not in _tree(place)
    assert _listing(tmp_path) == ["p", f"p/{MANIFEST}", "p/README.md", "p/model", "p/model/a.c"]


def test_readable_for_others(tmp_path: Path) -> None:
    write_project(FILES, tmp_path / "p")
    reference = tmp_path / "reference"
    reference.mkdir()
    assert (tmp_path / "p").stat().st_mode == reference.stat().st_mode


def _edit(place: Path) -> None:
    (place / "model" / "a.c").write_text("int mine;\n")


def _add(place: Path) -> None:
    (place / "notes.txt").write_text("mine")


def _foreign(place: Path) -> None:
    (place / MANIFEST).unlink()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_edit, "'model/a.c' was changed after the earlier export"),
        (_add, "'notes.txt' was added after the earlier export"),
        (_foreign, "not empty and no earlier export: it holds 'README.md'"),
    ],
)
def test_somebodys_work_is_not_overwritten(
    change: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    place = tmp_path / "p"
    write_project(FILES, place)
    change(place)
    before = _tree(tmp_path)
    with pytest.raises(ExportError, match=message):
        write_project(FILES, place)
    assert _tree(tmp_path) == before


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("mine")
    with pytest.raises(ExportError, match="there is a file of this name"):
        write_project(FILES, tmp_path / "p")
    with pytest.raises(ExportError, match="cannot write the project"):
        write_project(FILES, tmp_path / "p" / "below")
    assert _tree(tmp_path) == {"p": b"mine"}


def test_a_place_where_nothing_can_be_made() -> None:
    if not Path("/proc/self").is_dir():
        pytest.skip("there is no /proc")
    with pytest.raises(ExportError, match="cannot write the project: .*; /proc/htvm/p; choose"):
        write_project(FILES, Path("/proc/htvm/p"))


def test_an_unwritable_parent(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(0o500)
    try:
        if os.access(locked, os.W_OK):
            pytest.skip("the superuser may write everywhere")
        with pytest.raises(ExportError, match="Permission denied"):
            write_project(FILES, locked / "p")
        assert _listing(tmp_path) == ["locked"]
    finally:
        locked.chmod(0o700)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("existed", [False, True])
@pytest.mark.parametrize("moment", ["write", "first move", "second move"])
def test_whatever_interrupts_leaves_the_place_as_it_was(
    error: BaseException,
    existed: bool,
    moment: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = tmp_path / "made" / "p"
    if existed:
        write_project({"old.txt": "old\n"}, place)
    before = _listing(tmp_path)
    moves = {"first move": 1, "second move": 2}
    if moment == "write":
        original = Path.write_bytes

        def write_bytes(self: Path, data: bytes) -> int:
            if self.name == "a.c":
                original(self, data[:3])
                raise error
            return original(self, data)

        monkeypatch.setattr(Path, "write_bytes", write_bytes)
    else:
        replace, count = os.replace, [0]

        def failing(source: Path, target: Path) -> None:
            count[0] += 1
            # Only this call: what puts the old folder back must not fail as well.
            if count[0] == moves[moment]:
                raise error
            replace(source, target)

        monkeypatch.setattr(export_module.os, "replace", failing)
        monkeypatch.setattr(export_module, "exchanged", lambda *_: False)
        if moment == "second move" and not existed:
            pytest.skip("there is nothing to move away first")
    kind = ExportError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(kind):
        write_project(FILES, place)
    assert _listing(tmp_path) == before


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it is moved away first")
def test_a_killed_export_leaves_the_old_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project({**FILES, "README.md": "old\n"}, tmp_path / "place")

    def move(*_: Path) -> None:
        pytest.fail("there would be neither between two moves")

    monkeypatch.setattr(export_module.os, "replace", move)
    write_project(FILES, tmp_path / "place")
    assert (tmp_path / "place" / "README.md").read_text() == "new\n"
    assert list(tmp_path.iterdir()) == [tmp_path / "place"]


def test_an_impossible_name_is_said() -> None:
    with pytest.raises(ExportError, match="cannot write the project: .*null"):
        write_project(FILES, Path("a\0b"))


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    write_project(FILES, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "README.md").read_text() == "new\n"


# --- other ways to build it -------------------------------------------------------------------


def _native_compiler() -> str:
    for name in ("cc", "gcc", "clang"):
        found = shutil.which(name)
        if found is not None:
            return found
    pytest.skip("there is no C compiler that cmake could use")


def _cmake(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([tool("cmake"), *arguments], capture_output=True, text=True)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("soc", [DIANA, GENERIC], ids=lambda soc: soc.name)
def test_cmake_builds_and_checks(soc: object, tmp_path: Path) -> None:
    export(tiny.program(), soc, tmp_path / "p", _golden())  # type: ignore[arg-type]
    build = tmp_path / "build"
    made = _cmake(
        "-S", str(tmp_path / "p"), "-B", str(build), f"-DCMAKE_C_COMPILER={_native_compiler()}"
    )
    assert made.returncode == 0, made.stderr
    built = _cmake("--build", str(build))
    assert built.returncode == 0, built.stdout + built.stderr
    done = subprocess.run([build / "tiny_golden"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "PASS: tiny: 64 of 64 output elements equal the golden" in done.stdout


def test_firmware_and_simulator_are_apart(tmp_path: Path) -> None:
    """A firmware needs no file of the simulator, and packages have the same folders."""
    export(tiny.program(), DIANA, tmp_path / "p", _golden())
    paths = [path.relative_to(tmp_path / "p").as_posix() for path in (tmp_path / "p").rglob("*")]
    simulated = {path for path in paths if path.startswith("simulator/")}
    assert {path.split("/")[0] for path in paths} >= {"include", "src", "example", "runtime"}
    assert any(path.endswith("diana_digital.c") for path in simulated)
    assert not any("_model" in path or "/host/" in path for path in {*paths} - simulated)
    shutil.rmtree(tmp_path / "p" / "simulator")
    done = _make(tmp_path / "p", "bare", f"PYTHON={sys.executable}", f"RV32_CC={ZIG}")
    assert done.returncode == 0, done.stderr


def test_make_bare_links_the_skeleton_of_a_port(tmp_path: Path) -> None:
    export(tiny.program(), DIANA, tmp_path / "p", _golden())
    done = _make(tmp_path / "p", "bare", f"PYTHON={sys.executable}", f"RV32_CC={ZIG}")
    assert done.returncode == 0, done.stderr
    symbols = read_elf(tmp_path / "p" / "build" / "tiny_bare.elf").symbols
    assert "htvm_port_outcome" in symbols


def test_a_filled_in_port_runs_the_golden(tmp_path: Path) -> None:
    """The skeleton with two lines changed: the outcome ends the simulated run."""
    export(tiny.program(), DIANA, tmp_path / "p", _golden())
    port = Path(shutil.copytree(tmp_path / "p/runtime/platform/port", tmp_path / "port"))
    text = (port / "htvm_port.c").read_text()
    text = text.replace(
        "    (void)code;\n",
        "    const uint32_t good = htvm_port_outcome.done && htvm_port_outcome.elements == 64;\n"
        "    htvm_hal_write(HTVM_SIM_EXIT, good && code == 0 ? 0x5555u : 0x13333u);\n",
    )
    (port / "htvm_port.c").write_text(text)
    done = _make(
        tmp_path / "p", "bare", f"PORT={port}", f"PYTHON={sys.executable}", f"RV32_CC={ZIG}"
    )
    assert done.returncode == 0, done.stderr
    result = run_elf(tmp_path / "p" / "build" / "tiny_bare.elf", machine_of(DIANA))
    assert result.exit_code == 0
