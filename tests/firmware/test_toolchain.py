"""The compilers: what they make, what they say, and what they leave behind when they fail."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from htvm.cache_folder import cache_root
from htvm.errors import ToolchainError
from htvm.firmware import paths
from htvm.firmware.diagnostics import CompileError
from htvm.firmware.isa import rv32_flags
from htvm.firmware.toolchain import Compiler

HELLO = '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n'


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "program.c"
    file.write_text(HELLO)
    return file


@pytest.mark.parametrize("host", [None, *(c for c in ("gcc", "clang") if shutil.which(c))])
def test_host_program(host: str | None, source: Path, tmp_path: Path) -> None:
    program = Compiler.zig(host=host).compile_host([source], tmp_path / "new" / "program")
    assert subprocess.run([program], capture_output=True, check=True).stdout == b"hello\n"


def test_failure_names_the_error_and_leaves_nothing(tmp_path: Path, compiler: Compiler) -> None:
    source = tmp_path / "program.c"
    source.write_text("int main(void) { return missing; }\n")
    with pytest.raises(CompileError, match=r"missing.*program") as caught:
        compiler.compile_host([source], tmp_path / "out" / "program")
    assert "program.c:1" in caught.value.output
    assert list((tmp_path / "out").iterdir()) == []


def test_failure_keeps_the_old_program(source: Path, tmp_path: Path, compiler: Compiler) -> None:
    program = compiler.compile_host([source], tmp_path / "program")
    source.write_text("#error now\n")
    with pytest.raises(CompileError, match="now"):
        compiler.compile_host([source], program)
    assert subprocess.run([program], capture_output=True, check=True).stdout == b"hello\n"


def test_files_that_programs_share_are_compiled_once(tmp_path: Path) -> None:
    compiler = Compiler.zig(cache=tmp_path / "cache")
    shared = tmp_path / "shared.c"
    shared.write_text("int shared(void) { return 1; }\n")
    for name in ("one", "other"):
        source = tmp_path / f"{name}.c"
        source.write_text("int shared(void);\nint _start(void) { return shared(); }\n")
        compiler.compile_cross([source, shared], tmp_path / name, [], rv32_flags())
    assert len(list((tmp_path / "cache").rglob("shared*.o"))) == 1


def test_missing_ziglang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ToolchainError, match="no C compiler.*pip install ziglang"):
        Compiler.zig()


def test_missing_host_compiler() -> None:
    with pytest.raises(ToolchainError, match="no C compiler: 'nocc'"):
        Compiler.zig(host="nocc")


def test_compiler_that_cannot_be_started(source: Path, tmp_path: Path, compiler: Compiler) -> None:
    broken = replace(compiler, host=(str(tmp_path / "nocc"),))
    with pytest.raises(ToolchainError, match="cannot be started"):
        broken.compile_host([source], tmp_path / "program")


def test_compiler_that_hangs(source: Path, tmp_path: Path, compiler: Compiler) -> None:
    fake = tmp_path / "cc"
    fake.write_text("#!/bin/sh\nexec sleep 60\n")
    fake.chmod(0o755)
    slow = replace(compiler, host=(str(fake),), timeout_s=0.2)
    with pytest.raises(ToolchainError, match="did not end within 0.2 s"):
        slow.compile_host([source], tmp_path / "program")


def test_output_folder_that_cannot_be_made(
    source: Path, tmp_path: Path, compiler: Compiler
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolchainError, match="cannot write"):
        compiler.compile_host([source], tmp_path / "file" / "program")


def test_tools_are_built_once_per_content(source: Path, tmp_path: Path, compiler: Compiler) -> None:
    fake = tmp_path / "cc"
    fake.write_text(
        '#!/bin/sh\nfor word; do last=$word; done\n[ $# -lt 2 ] || echo made > "$last"\n'
    )
    fake.chmod(0o755)
    own = replace(compiler, host=(str(fake),), cache=tmp_path / "cache")
    first = own.built("tool", [source])
    stamp = first.stat().st_mtime_ns
    assert own.built("tool", [source]) == first and first.stat().st_mtime_ns == stamp
    assert own.built("tool", [source], generated=[("made.h", "")]) != first
    source.write_text(HELLO.replace("hello", "changed"))
    assert own.built("tool", [source]) != first


def test_runtime_is_found() -> None:
    assert (paths.runtime_c() / "iss" / "main.c").is_file()


def test_cache_falls_back_to_a_temporary_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if sys.platform == "linux":
        assert cache_root().parent == tmp_path


@pytest.mark.parametrize(("missing", "calls"), [("", 1), ("__divsf3", 2)])
def test_the_runtime_library_is_linked_where_it_is_missing(
    missing: str, calls: int, source: Path, tmp_path: Path, compiler: Compiler
) -> None:
    """zig makes it first, which takes seconds, and few programs need it."""
    log, fake = tmp_path / "log", tmp_path / "cc"
    undefined = f"echo 'undefined symbol: {missing}'; exit 1" if missing else ":"
    fake.write_text(
        f'#!/bin/sh\necho "$@" >> {log}\n'
        f"for word; do [ $word != -rtlib=none ] || {{ {undefined}; }}\n"
        '[ $word != -o ] || next=1\n[ $word = -o ] || [ -z "$next" ] || { out=$word; next=; }\n'
        "done\necho made > $out\n"
    )
    fake.chmod(0o755)
    own = replace(compiler, host=(str(fake),), cross=(str(fake),))
    assert (
        own.compile_cross([source], tmp_path / "program", [], rv32_flags()).read_text() == "made\n"
    )
    lines = log.read_text().splitlines()
    assert ["-rtlib=none" in line for line in lines] == [True, False][:calls]


def test_an_undefined_function_is_still_an_error(tmp_path: Path, compiler: Compiler) -> None:
    source = tmp_path / "program.c"
    source.write_text("int nowhere(void);\nint main(void) { return nowhere(); }\n")
    with pytest.raises(CompileError, match="undefined symbol: nowhere"):
        compiler.compile_host([source], tmp_path / "program")


def test_headers_are_kept_in_a_folder_of_their_own(tmp_path: Path, compiler: Compiler) -> None:
    own = replace(compiler, cache=tmp_path)
    folder = own.headers([("made.h", "1\n"), ("other.h", "2\n")])
    assert own.headers([("other.h", "2\n"), ("made.h", "1\n")]) == folder
    assert own.headers([("made.h", "3\n"), ("other.h", "2\n")]) != folder
    (folder / "made.h").write_text("damaged")
    own.headers([("made.h", "1\n"), ("other.h", "2\n")])
    assert (folder / "made.h").read_text() == "1\n"


def test_nothing_is_executed_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be the one of somebody's files."""
    trap = tmp_path / "ziglang" / "__main__.py"
    trap.parent.mkdir()
    trap.write_text("raise SystemExit('executed')\n")
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    monkeypatch.chdir(tmp_path)
    compiler = Compiler.zig(cache=tmp_path / "cache")
    assert compiler.compile_host([tmp_path / "main.c"], tmp_path / "main").is_file()
    assert compiler.name.startswith("clang of ziglang 0.")
