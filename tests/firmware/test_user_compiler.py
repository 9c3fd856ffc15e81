"""A compiler of the user's: what is none is refused before anything is built."""

from __future__ import annotations

import struct
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


@pytest.mark.parametrize("core", ["cortex-m85", "cortex-m52"])
def test_a_gcc_that_is_too_old_for_a_core(
    core: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It compiles for an older core with the same instructions, and all that names it says so."""
    # Takes the older core only, and makes the head of an object file of 32 bits for Arm.
    head = struct.pack("<4s4B8x2H5I6H", b"\x7fELF", 1, 1, 1, 0, 1, 40, 1, *[0] * 4, 52, *[0] * 5)
    (tmp_path / "head").write_bytes(head)
    path = tmp_path / "old-gcc"
    path.write_text(
        f"""#!/bin/sh
for last; do :; done
case "$*" in
    *--version*) echo "old-gcc 12.2.1" ;;
    *-mcpu=cortex-m55*) cp {tmp_path}/head "$last" ;;
    *) echo "error: unrecognized -mcpu target" >&2; exit 1 ;;
esac
"""
    )
    path.chmod(0o755)
    soc = resolve(core.replace("-", "_")).soc
    compiler = user_compiler(str(path), soc)
    assert (compiler.cpu, compiler.name) == ("cortex-m55", "old-gcc 12.2.1 for cortex-m55")
    first = soc.host.arm.gcc if soc.host.arm is not None else None
    assert f"12.2.1 does not know {core}, GCC {first} does: it compiles for" in caplog.text
    assert user_compiler(str(path), resolve("cortex_m55").soc).cpu == ""
    with pytest.raises(ToolchainError, match="is no GCC for Arm Cortex-M33"):
        user_compiler(str(path), resolve("cortex_m33").soc)


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


@pytest.mark.parametrize("target", ["rv32imcv", "bpi-f3"])
def test_a_gcc_without_intrinsics_for_vectors(target: str, tmp_path: Path) -> None:
    path = tmp_path / "some-gcc"
    path.write_text("#!/bin/sh\necho 'some-gcc (GCC) 12.2.0'\n")
    path.chmod(0o755)
    said = "some-gcc 12.2.0 has no intrinsics for the vectors of RV.*since version 14"
    with pytest.raises(ToolchainError, match=said):
        user_compiler(str(path), resolve(target).soc)
