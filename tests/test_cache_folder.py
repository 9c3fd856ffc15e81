"""Nothing that somebody else could have written is taken, linked or executed."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import stat
import sys
from pathlib import Path

import pytest

from htvm.cache_folder import cache_root, signed
from htvm.errors import ToolchainError
from htvm.firmware.sealed import is_sealed, seal
from htvm.firmware.toolchain import Compiler
from htvm.stage_cache import StageCache
from htvm.stage_values import encode

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="folders of Linux")


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user with a home of their own."""
    monkeypatch.setattr("htvm.stage_cache._BEGAN", float("inf"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_folders_and_key_are_private(tmp_path: Path) -> None:
    assert cache_root() == tmp_path / "cache" / "htvm" and mode(cache_root()) == 0o700
    key = tmp_path / "home" / ".local" / "state" / "htvm" / "cache.key"
    signed(b"", "a")
    assert mode(key) == 0o600 and mode(key.parent) == 0o700 and len(key.read_bytes()) == 32


def test_what_is_signed_depends_on_bytes_name_and_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {signed(b"1", "a"), signed(b"2", "a"), signed(b"1", "b")}
    assert signed(b"1", "a") in found
    monkeypatch.setenv("HOME", str(tmp_path / "another"))
    assert len({*found, signed(b"1", "a")}) == 4


def everybodys(folder: Path) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o777)


def everybodys_inside(folder: Path) -> None:
    (folder / "zig").mkdir(parents=True)
    folder.chmod(0o755)
    (folder / "zig").chmod(0o777)


def link(folder: Path) -> None:
    folder.parent.mkdir()
    (folder.parent / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(folder.parent / "elsewhere")


def somebodys(folder: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a folder to somebody else")
    folder.mkdir(parents=True)
    os.chown(folder, 12345, 12345)


def a_file(folder: Path) -> None:
    folder.parent.mkdir()
    folder.write_text("in the way")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (everybodys, "others can write it"),
        (everybodys_inside, "zig: others can write it"),
        (link, "it is a symbolic link"),
        (somebodys, "it belongs to user 12345, not to 0"),
        (a_file, "Not a directory"),
    ],
)
def test_folders_of_others_are_not_used(
    make: object, reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    preferred = tmp_path / "cache" / "htvm"
    make(preferred)  # type: ignore[operator]
    assert cache_root() == tmp_path / "temporary" / f"htvm-cache-{os.getuid()}"
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith(f"the cache {preferred} is not used: ") and reason in said


def test_no_folder_is_an_error_that_says_why(tmp_path: Path) -> None:
    everybodys(tmp_path / "cache" / "htvm")
    link(tmp_path / "temporary" / "x" / "y")
    (tmp_path / "temporary" / f"htvm-cache-{os.getuid()}").symlink_to(tmp_path)
    with pytest.raises(ToolchainError, match=r"others can write it.*it is a symbolic link"):
        cache_root()


def test_a_folder_of_ones_own_is_closed_for_others(tmp_path: Path) -> None:
    (tmp_path / "cache" / "htvm" / "builds").mkdir(parents=True)
    (tmp_path / "cache" / "htvm").chmod(0o755)
    assert mode(cache_root()) == 0o700 and (cache_root() / "builds").is_dir()


# ------------------------------------------------------------------------------ entries


@pytest.mark.parametrize("digest", ["sha256", "signed for another name", "of another user"])
def test_nothing_of_others_is_taken(
    digest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cache = StageCache(tmp_path / "stages")
    key = cache.key(1)
    path = tmp_path / "stages" / f"stage-{key[:32]}"
    path.parent.mkdir()
    data, _ = encode(("somebody's", []))
    with monkeypatch.context() as there:
        if digest == "of another user":
            there.setenv("HOME", str(tmp_path / "another"))
        made = signed(data, path.name if digest == "of another user" else "stage-another")
    path.write_bytes((hashlib.sha256(data).digest() if digest == "sha256" else made) + data)
    assert cache.get("stage", key, lambda: 7) == 7
    assert "it is not what this user wrote" in caplog.text
    caplog.clear()
    assert cache.get("stage", key, lambda: 8) == 7 and "not used" not in caplog.text


def test_what_the_user_wrote_but_is_no_value_is_computed_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = StageCache(tmp_path / "stages")
    key = cache.key(1)
    path = tmp_path / "stages" / f"stage-{key[:32]}"
    path.parent.mkdir()
    path.write_bytes(signed(b"\x80\x04N.", path.name) + b"\x80\x04N.")
    assert cache.get("stage", key, lambda: 7) == 7
    assert f"what is kept in {path} is not used" in caplog.text
    assert cache.get("stage", key, lambda: 8) == 7


def test_a_link_in_the_cache_is_not_followed(tmp_path: Path) -> None:
    cache = StageCache(tmp_path / "stages")
    key = cache.key(1)
    cache.get("stage", key, lambda: 7)
    (path,) = (tmp_path / "stages").iterdir()
    path.rename(tmp_path / "moved")
    path.symlink_to(tmp_path / "moved")
    assert cache.get("stage", key, lambda: 8) == 8 and not path.is_symlink()


def test_programs_of_another_cache_are_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    source = tmp_path / "tool.c"
    source.write_text("int main(void) { return 0; }\n")
    tool = Compiler.zig(cache=tmp_path / "one").built("tool", [source])
    shutil.copytree(tmp_path / "one" / "tools", tmp_path / "two" / "tools")
    monkeypatch.setenv("HOME", str(tmp_path / "another"))
    copied = tmp_path / "two" / tool.relative_to(tmp_path / "one")
    copied.write_bytes(b"somebody's program")
    assert Compiler.zig(cache=tmp_path / "two").built("tool", [source]) == copied
    assert copied.read_bytes() == tool.read_bytes()
    assert f"built again, as {copied} is not used: it is not what this user built" in caplog.text


def test_a_build_under_another_name_is_not_taken(tmp_path: Path) -> None:
    file = tmp_path / "model"
    file.write_bytes(b"program")
    seal(file, "one")
    assert is_sealed(file, "one") and not is_sealed(file, "another")


@pytest.mark.parametrize("rights", [0o666, 0o644])
def test_a_key_that_others_may_know_is_made_anew(
    rights: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "home" / ".local" / "state" / "htvm" / "cache.key"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"A" * 32)
    path.chmod(rights)
    signed(b"text", "one")
    assert path.read_bytes() != b"A" * 32 and mode(path) == 0o600
    assert "made anew" in caplog.text


def test_without_a_place_for_the_key_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "state").write_text("in the way")
    (tmp_path / "temporary").rmdir()
    (tmp_path / "temporary").write_text("in the way")
    caplog.set_level(logging.WARNING)
    assert signed(b"1", "a") == signed(b"1", "a")
    assert "nothing is kept for later processes" in caplog.text
