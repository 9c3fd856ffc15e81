"""Kills, full disks, caches and clocks of all kinds: the same bytes or an error; nothing lost."""

from __future__ import annotations

import os
import random
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from htvm.firmware import builds
from tests.forked import Command, Forked
from tests.frontend.flatfile import small_network

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="faults of Linux")

DAY = 24 * 3600
MOMENTS = random.Random(7)


class Place:
    """Builds of a small network, each in a folder of its own below a temporary one."""

    def __init__(self, folder: Path, forked: Forked) -> None:
        self.folder = folder
        self.forked = forked
        self.network = folder / "net.tflite"
        self.network.write_bytes(small_network().file())
        (folder / "home").mkdir()
        self._count = 0

    def command(
        self, environment: Mapping[str, str | None] | None = None, **faults: Any
    ) -> Command:
        self._count += 1
        own = {
            "HOME": str(self.folder / "home"),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "XDG_STATE_HOME": None,
        }
        out = self.folder / str(self._count) / "out"
        words = ("compile", str(self.network), "-t", "cortex_m4", "-o", str(out))
        return Command(words, {**own, **(environment or {})}, **faults)

    def files(self, command: Command) -> dict[str, bytes] | None:
        """What a command left; there is nothing beside it, unless it was killed."""
        out = Path(command.words[-1])
        if command.killed_s is None and out.parent.is_dir():
            assert [path.name for path in out.parent.iterdir()] == ["out"]
        if not out.exists():
            return None
        return {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*") if p.is_file()}

    def build(self, environment: Mapping[str, str | None] | None = None, **faults: Any) -> str:
        """Build, which has to succeed; return what was said."""
        command = self.command(environment, **faults)
        (answer,) = self.forked.run(command)
        assert answer.code == 0, answer
        assert self.files(command) == self.wanted
        return answer.said

    @property
    def wanted(self) -> dict[str, bytes]:
        """The files of an undisturbed build."""
        if not hasattr(self, "_wanted"):
            command = self.command({"XDG_CACHE_HOME": str(self.folder / "undisturbed")})
            assert self.forked.run(command)[0].code == 0
            found = self.files(command)
            assert found
            self._wanted = found
        return self._wanted


@pytest.fixture(scope="module")
def forked() -> Iterator[Forked]:
    made = Forked()
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared(forked: Forked, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("faults"), forked)


@pytest.fixture
def place(shared: Place) -> Place:
    """With an empty cache."""
    shutil.rmtree(shared.folder / "cache", ignore_errors=True)
    return shared


# ------------------------------------------------------------------------------ ends of processes


def killed(place: Place, moment: float) -> None:
    command = place.command(killed_s=moment)
    (answer,) = place.forked.run(command)
    assert answer.code == -9 or answer.code == 0
    assert place.files(command) in (None, place.wanted)
    assert place.files(command) is not None or answer.code == -9
    place.build()


def test_a_killed_build_is_repeated(place: Place) -> None:
    killed(place, 0.7)


@pytest.mark.slow
@pytest.mark.parametrize("moment", [round(MOMENTS.uniform(0, 3), 2) for _ in range(20)])
def test_a_build_killed_at_any_moment_is_repeated(place: Place, moment: float) -> None:
    killed(place, moment)


@pytest.mark.slow
def test_one_cache_after_many_kills(place: Place) -> None:
    """What several of them have left does not add up to something wrong."""
    for number in range(10):
        place.forked.run(place.command(killed_s=0.3 * number))
    place.build()


@pytest.mark.parametrize("count", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_builds_at_the_same_time(place: Place, count: int) -> None:
    commands = [place.command() for _ in range(count)]
    answers = place.forked.run(*commands)
    assert [answer.code for answer in answers] == [0] * count
    assert all(place.files(command) == place.wanted for command in commands)


# ------------------------------------------------------------------------------ caches


@pytest.mark.slow
def test_another_versions_cache(place: Place) -> None:
    """Entries of other names and formats stay where they are, and nothing is taken from them."""
    place.build()
    root = place.folder / "cache" / "htvm"
    kept = [path for path in (root / "stages").iterdir() if path.is_file()]
    assert kept
    for number, path in enumerate(kept):
        data = path.read_bytes()
        path.write_bytes((b"", b"HTVM 9\n" + data, data[:40], data[:-1], data[::-1])[number % 5])
        (path.parent / f"stage9-{path.name}").write_bytes(data)
    (root / "stages" / "folder").mkdir()
    (root / "builds" / "file").write_bytes(b"of another version")
    (root / "index.sqlite").write_bytes(b"of another version")
    for build in (root / "builds").iterdir():
        if build.is_dir():
            for file in build.iterdir():
                file.write_bytes(b"")
    assert "not what this user wrote" in place.build()
    assert "not used" not in place.build()


HOMES: dict[str, dict[str, str | None]] = {
    "none": {"HOME": None},
    "empty": {"HOME": ""},
    "relative": {"HOME": "home", "XDG_CACHE_HOME": "cache"},
    "not writable": {"HOME": "/proc"},
    "no folder": {"HOME": "/dev/null"},
    "no temporary folder": {"TMPDIR": "/nothing/there"},
}


@pytest.mark.parametrize(
    "home",
    ["empty", *(pytest.param(each, marks=pytest.mark.slow) for each in HOMES if each != "empty")],
)
def test_homes(place: Place, home: str, tmp_path: Path) -> None:
    """All are somewhere else if they can't be there, and never below the current folder."""
    before = set(Path.cwd().iterdir())
    place.build({"XDG_CACHE_HOME": None, "TMPDIR": str(tmp_path), **HOMES[home]})
    assert set(Path.cwd().iterdir()) == before


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to somebody else")
def test_the_home_of_somebody_else(place: Place, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".cache" / "htvm" / "stages").mkdir(parents=True)
    for folder in (home, *home.rglob("*")):
        os.chown(folder, 12345, 12345)
    said = place.build({"HOME": str(home), "XDG_CACHE_HOME": None, "TMPDIR": str(tmp_path)})
    assert "belongs to user 12345, not to 0" in said
    assert not list((home / ".cache" / "htvm" / "stages").iterdir())


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() == 0, reason="root writes everywhere")
def test_a_home_that_cannot_be_written(place: Place, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o500)
    said = place.build({"HOME": str(home), "XDG_CACHE_HOME": None, "TMPDIR": str(tmp_path)})
    assert "not used: Permission denied" in said and not list(home.iterdir())


# ------------------------------------------------------------------------------ disks and clocks


def full(place: Place, size: int) -> None:
    command = place.command(file_bytes=size)
    (answer,) = place.forked.run(command)
    if answer.code != 0:
        assert answer.code == 2 and "free some disk space" in " ".join(answer.said.split()), answer
    assert place.files(command) == (None if answer.code else place.wanted)
    place.build()


def test_a_full_disk(place: Place) -> None:
    full(place, 3000)


@pytest.mark.slow
@pytest.mark.parametrize("size", [2000, 4096, 10_000, 20_000, 60_000, 120_000, 250_000, 1_000_000])
def test_disks_with_room_for_a_part(place: Place, size: int) -> None:
    full(place, size)


CLOCKS = {
    "later": (40 * DAY,),
    "earlier": (-40 * DAY,),
    "set back": (0, 0, 0, -40 * DAY),
    "jumping": (0, 400 * DAY, -400 * DAY, 5, -5),
    "in 1970": (-56 * 365.25 * DAY,),
}


@pytest.mark.slow
@pytest.mark.parametrize("clock", CLOCKS)
def test_clocks(place: Place, clock: str) -> None:
    for shift in ((0,), CLOCKS[clock], CLOCKS[clock], (0,)):
        place.build(clock=shift)


@pytest.mark.slow
def test_builds_at_the_same_time_by_different_clocks(place: Place) -> None:
    """What one still builds is not too old for the others."""
    commands = [place.command(clock=(40 * DAY * (number % 2),)) for number in range(8)]
    answers = place.forked.run(*commands)
    assert [answer.code for answer in answers] == [0] * 8, answers
    assert all(place.files(command) == place.wanted for command in commands)


def test_only_what_nobody_builds_is_removed(tmp_path: Path) -> None:
    for name in ("held", "left", "new"):
        (tmp_path / name).mkdir()
        if name != "new":
            os.utime(tmp_path / name, (0, 0))
    (tmp_path / "file").write_text("")
    os.utime(tmp_path / "file", (0, 0))
    with builds._locked(tmp_path / "held"):
        builds._prune(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"held", "new", "file"}
    builds._prune(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"new", "file"}


def test_a_folder_that_is_removed_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, removed = builds._locked, []

    def late(folder: Path) -> Any:
        if not removed:
            shutil.rmtree(folder)
            removed.append(folder)
        return lock(folder)

    monkeypatch.setattr(builds, "_locked", late)
    with builds._work_folder(tmp_path) as folder:
        assert folder.is_dir() and removed
    assert not list(tmp_path.iterdir())
