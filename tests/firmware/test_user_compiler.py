"""A compiler of the user's: what is none is refused before anything is built."""

from __future__ import annotations

from pathlib import Path

import pytest

import htvm
from byoc_dory.soc.registry import resolve
from htvm.errors import TargetError, ToolchainError
from htvm.firmware.user_compiler import user_compiler
from htvm.tools.cli.app import main


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A program that is no compiler."""
    path = tmp_path / "cc"
    path.write_text("#!/bin/sh\necho 'error: what is -mcpu?' >&2\nexit 3\n")
    path.chmod(0o755)
    return path


def test_no_program() -> None:
    with pytest.raises(ToolchainError, match="there is no program 'nothing-gcc'; --cc; give a GCC"):
        user_compiler("nothing-gcc", resolve("cortex_m4").soc)


def test_a_program_that_is_no_compiler(script: Path) -> None:
    said = "is no GCC for Arm Cortex-M0.: given one function, it said 'error: what is -mcpu.'"
    with pytest.raises(ToolchainError, match=said):
        user_compiler(str(script), resolve("cortex_m0plus").soc)
    with pytest.raises(ToolchainError, match="is no GCC for .*riscv64-unknown-elf-gcc"):
        user_compiler(str(script), resolve("generic.cpu").soc)


def test_this_machines_own_compiler(tmp_path: Path) -> None:
    """It makes an object file, of another machine."""
    path = tmp_path / "cc"
    path.write_text('#!/bin/sh\nfor last; do :; done\n[ $# = 1 ] || head -c 64 /bin/sh > "$last"\n')
    path.chmod(0o755)
    with pytest.raises(ToolchainError, match="is no GCC for"):
        user_compiler(str(path), resolve("cortex_m4").soc)


def test_extensions_that_gcc_lacks() -> None:
    with pytest.raises(TargetError, match="only ziglang's clang compiles for"):
        user_compiler("gcc", resolve("diana.simd.cpu").soc)


@pytest.mark.parametrize("verb", ["fit", "run", "compile"])
def test_refused_before_anything_is_built(
    verb: str,
    script: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The second first: its import would copy what the first has by then, and keep it.
    for module in ("htvm.tools.fitting", "htvm.pipeline"):
        monkeypatch.setattr(f"{module}.compile_model", None)
    more = ["--out", str(tmp_path / "out")] if verb == "compile" else []
    line = [verb, "zoo:toyadmos", "-t", "cortex_m4", "--cc", str(script), *more]
    assert main(line) != 0
    assert "is no GCC for Arm Cortex-M4" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_this_machine_has_no_such_compiler() -> None:
    with pytest.raises(TargetError, match="programs for this machine run on none"):
        htvm.build("zoo:toyadmos", "cortex_m4", "host", cc="arm-none-eabi-gcc")
