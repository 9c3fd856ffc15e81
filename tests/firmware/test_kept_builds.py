"""What is kept between runs is rebuilt when it is damaged, and never somebody else's."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import htvm
from htvm.cache_folder import cache_root
from htvm.errors import SimulationError, ToolchainError
from htvm.firmware.build import build_host
from htvm.firmware.toolchain import Compiler
from htvm.sim import iss, runner
from htvm.sim.iss import run_elf


def half(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 0xFF
    file.write_bytes(data)


DAMAGES: tuple[Callable[[Path], None], ...] = (half, flip, Path.unlink)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_build_is_made_again(
    damage: Callable[[Path], None], tmp_path: Path, compiler: Compiler
) -> None:
    module = htvm.build(htvm.zoo.build("toyadmos"), "diana.cpu", "host")
    program, soc = module.compiled.program, module.compiled.target.soc
    built = build_host(program, soc, compiler, tmp_path)
    sample = np.ones((1, 640), np.int8)
    (wanted,) = runner.run(built, [sample]).outputs
    damage(built.path)
    again = build_host(program, soc, compiler, tmp_path)
    assert again.path == built.path
    np.testing.assert_array_equal(runner.run(again, [sample]).outputs[0], wanted)
    stamp = again.path.stat().st_mtime_ns
    assert build_host(program, soc, compiler, tmp_path).path.stat().st_mtime_ns == stamp


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_tool_is_made_again(
    damage: Callable[[Path], None], tmp_path: Path, compiler: Compiler
) -> None:
    fake, source = tmp_path / "cc", tmp_path / "tool.c"
    fake.write_text(
        '#!/bin/sh\nfor word; do last=$word; done\n[ $# -lt 2 ] || echo made > "$last"\n'
    )
    fake.chmod(0o755)
    source.write_text("")
    own = replace(compiler, host=(str(fake),), cache=tmp_path / "cache")
    tool = own.built("tool", [source])
    damage(tool)
    assert own.built("tool", [source]).read_text() == "made\n"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exit 0", "wrote nothing"),
        ("exit 3", "ended with code 3 and said nothing"),
        ("kill -9 $$", "(?s)ended by SIGKILL and said nothing.*free some disk space"),
        ("head -c 99999 /dev/zero | tr '\\0' '\\33' >&2; exit 1", "failed: "),
    ],
    ids=["lies", "silent", "killed", "noise"],
)
def test_what_broken_compilers_do(
    script: str, words: str, tmp_path: Path, compiler: Compiler
) -> None:
    fake, source = tmp_path / "cc", tmp_path / "program.c"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    source.write_text("")
    with pytest.raises(ToolchainError, match=words) as caught:
        replace(compiler, host=(str(fake),)).compile_host([source], tmp_path / "out" / "program")
    assert caught.value.where and caught.value.hint
    assert len(str(caught.value)) < 2000 and str(caught.value).isprintable()
    assert list((tmp_path / "out").iterdir()) == []


def test_the_compiler_needs_no_temporary_folder_of_the_users(
    tmp_path: Path, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "program.c"
    source.write_text("int main(void) { return 0; }\n")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "absent"))
    own = replace(compiler, host=compiler.cross)
    assert own.compile_host([source], tmp_path / "program", flags=["-O1"]).is_file()


def test_no_folder_for_a_run(
    tmp_path: Path, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    with pytest.raises(SimulationError, match="absent.*TMPDIR"):
        run_elf(tmp_path / "program.elf", compiler=compiler)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders have no such owners here")
def test_a_shared_temporary_folder_may_hold_a_trap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in the cache is executed: where others can write, it is not kept."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if sys.platform != "linux":
        pytest.skip("the user's cache folder is found in another way")
    made = cache_root()
    assert made.stat().st_mode & 0o077 == 0
    made.chmod(0o777)
    with pytest.raises(ToolchainError, match="XDG_CACHE_HOME"):
        cache_root()


def test_without_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if sys.platform == "linux":
        assert cache_root().parent == tmp_path


def test_interrupted_simulation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("htvm.sim.iss.run_elf", interrupt)
    assert iss.main(["program.elf"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_damaged_cache_of_the_compiler_is_named(tmp_path: Path, compiler: Compiler) -> None:
    fake, source = tmp_path / "cc", tmp_path / "program.c"
    fake.write_text('#!/bin/sh\necho "error: $ZIG_GLOBAL_CACHE_DIR/o/x.o: not found" >&2\nexit 1\n')
    fake.chmod(0o755)
    source.write_text("")
    own = replace(compiler, host=(str(fake),), cache=tmp_path / "cache")
    with pytest.raises(ToolchainError, match=r"remove .*cache.zig, it will be made again"):
        own.compile_host([source], tmp_path / "program")
