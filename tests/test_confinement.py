"""Confined verbs answer as others do, or name the limit that they came to."""

from __future__ import annotations

import json
import os
import pickle  # noqa: TID251  (how other processes are given it)
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htvm
from benchmarks.hostile import FOLDER, answers
from htvm.errors import DefectError, InputError, LimitError
from htvm.processes import lacks_memory, refuse_exceeded
from htvm.tools.cli.app import main
from tests.frontend.onnxfile import model_of, node, saved

pytestmark = pytest.mark.skipif(os.name != "posix", reason="a system without such limits")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit this")

EXPLAIN = ("explain", "zoo:toyadmos", "--json")
GIB = 1 << 30


@pytest.mark.parametrize(
    "words",
    [
        ("targets", "show", "diana", "--json"),
        pytest.param(EXPLAIN, marks=pytest.mark.slow),
        pytest.param(("run", "zoo:digits", "--json"), marks=pytest.mark.slow),
    ],
)
def test_the_answer_is_the_same(words: tuple[str, ...], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    wanted = capfd.readouterr().out
    assert htvm.confined(*words) == htvm.ConfinedResult(0, wanted, "")
    assert main(["--confined", *words]) == 0
    assert capfd.readouterr().out == wanted


def test_mistakes_are_answered_as_ever(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--confined", "explain", "zoo:nothing"]) == 2
    assert "no network 'nothing'" in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["compile", "run", "report"])
def test_files_are_the_same(verb: str, tmp_path: Path) -> None:
    name = {"compile": "folder", "run": "out.npz", "report": "report.csv"}[verb]
    made = []
    for limits, place in ((None, tmp_path / "free"), (htvm.Confinement(), tmp_path / "confined")):
        place.mkdir()
        words = [verb, "zoo:digits", "-o", str(place / name)]
        assert (
            main(words) if limits is None else htvm.confined(*words, limits=limits).exit_code
        ) == 0
        paths = sorted(path for path in place.rglob("*") if path.is_file())
        made.append({path.relative_to(place): path.read_bytes() for path in paths})
    assert made[0] and made[0] == made[1]


def bomb(folder: Path) -> tuple[str, ...]:
    """A file that asks for 16 GiB when its limits are raised, and the arguments for that."""
    nodes = [node("Expand", ["a", "n"], "b"), node("ReduceMax", ["b"], "top", keepdims=0)]
    nodes.append(node("Add", ["x", "top"], "y"))
    constants: dict[str, Any] = {"a": np.ones((1, 1), np.float32), "n": np.full(2, 1 << 16)}
    path = saved(model_of(nodes, {"x": (1, 4)}, constants=constants), folder)
    raised = "--limit", "folded_elements=8G", "--limit", "folded_operations=64G"
    return "explain", str(path), *raised


@pytest.mark.rotating(1)
@pytest.mark.parametrize(
    ("limit", "value", "said"),
    [
        pytest.param("memory_bytes", GIB, "needs more than 1,073,741,824 B of m", marks=on_linux),
        ("cpu_seconds", 1, "takes more than 1 s of processor time"),
        ("seconds", 1, "takes longer than 1 s"),
    ],
)
def test_the_limit_is_named(
    limit: str, value: int, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = bomb(tmp_path) if limit == "memory_bytes" else EXPLAIN
    with pytest.raises(LimitError, match=rf"{said}.*limit {limit}.*Confinement\({limit}=") as found:
        htvm.confined(*words, limits=htvm.Confinement(**{limit: value}))
    copy = pickle.loads(pickle.dumps(found.value))
    assert (copy.limit, str(copy)) == (limit, str(found.value))
    code = {"memory_bytes": 3, "seconds": 124, "cpu_seconds": 152}[limit]
    assert main(["--confined", "--allow", f"{limit}={value}", *words]) == code
    written = capfd.readouterr().err
    assert said in written and written.count("htvm: error: ") == 1


@pytest.mark.slow
def test_who_does_not_listen_is_killed(tmp_path: Path) -> None:
    """A product of integers is one call of C, during which Python handles no signal."""
    nodes = [
        node("ConstantOfShape", ["n"], "zeros"),
        node("Cast", ["zeros"], "a", to=7),
        node("MatMul", ["a", "a"], "b"),
        node("ReduceMax", ["b"], "top", keepdims=0),
        node("Cast", ["top"], "real", to=1),
        node("Add", ["x", "real"], "y"),
    ]
    constants: dict[str, Any] = {"n": np.asarray([3000, 3000])}
    path = saved(model_of(nodes, {"x": (1, 4)}, constants=constants), tmp_path)
    words = ("explain", path, "--limit", "folded_operations=1000G")
    with pytest.raises(LimitError, match="takes more than 2 s of processor time"):
        htvm.confined(*words, limits=htvm.Confinement(cpu_seconds=2))


@pytest.mark.parametrize("limit", ["cpu_seconds", "memory_bytes", "seconds"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True])
def test_what_is_no_limit(limit: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"no limit of {limit}"):
        htvm.Confinement(**{limit: value})


def test_memory_that_no_verb_starts_with() -> None:
    with pytest.raises(InputError, match="cannot be loaded into 1,000,000 B.*at least"):
        htvm.Confinement(memory_bytes=1_000_000)


@pytest.mark.parametrize(("limit", "value"), [("cpu_seconds", 10**20), ("memory_bytes", 2**70)])
def test_limits_beyond_those_of_the_kernel(limit: str, value: int) -> None:
    with pytest.raises(InputError, match=f"{value} is no limit of {limit}.*at most"):
        htvm.Confinement(**{limit: value})


class OfBytes(os.PathLike[bytes]):
    def __fspath__(self) -> bytes:
        return b"run"


@pytest.mark.parametrize("word", [3, None, b"run", "ru\0n", "\ud800", "x" * 300_000, OfBytes()])
def test_what_is_no_word(word: Any) -> None:
    with pytest.raises(InputError, match="is no word of a command line.*give text"):
        htvm.confined("run", word)


def test_limits_of_something_else() -> None:
    with pytest.raises(InputError, match="a Limits is no limit of a process.*Confinement"):
        htvm.confined("run", "zoo:digits", limits=htvm.Limits())  # type: ignore[arg-type]


# ------------------------------------------------------------------------------ the process


def child(code: str) -> subprocess.Popen[str]:
    line = [sys.executable, "-c", f"import htvm.tools.confinement as c\n{code}"]
    return subprocess.Popen(line, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@on_linux
def test_nothing_answers_on_the_network() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = server.getsockname()
        out, err = child(
            f"import os, socket; before = os.getuid(); c.confine(c.Confinement())\n"
            f"print(os.getuid() == before); socket.create_connection({place}, 5)"
        ).communicate()
    if "the network can be reached" in err:
        pytest.skip("this system does not take the network away, and the log says so")
    assert out == "True\n" and "Network is unreachable" in err


@on_linux
def test_privileges_cannot_be_gained() -> None:
    out, _ = child(
        "c.confine(c.Confinement()); print(open('/proc/self/status').read())"
    ).communicate()
    assert "NoNewPrivs:\t1" in out


def test_a_limit_that_the_process_has_already_stays() -> None:
    out, _ = child(
        "import resource as r; r.setrlimit(r.RLIMIT_CPU, (7, 9)); c.confine(c.Confinement())\n"
        "print(r.getrlimit(r.RLIMIT_CPU))"
    ).communicate()
    assert out == "(9, 9)\n"


def test_folders_are_its_own_and_secrets_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SECRET_TOKEN", "abc")
    found = json.loads(htvm.confined("cache", "--json").stdout)
    assert str(tmp_path) not in json.dumps(found)
    assert not list(tmp_path.iterdir())
    assert "SECRET_TOKEN" not in htvm.tools.confinement._environment(tmp_path)


def processes() -> Iterator[tuple[int, int, int, str]]:
    """Yield number, parent, session and command line of all processes."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state = (folder / "stat").read_text().rpartition(")")[2].split()
            line = (folder / "cmdline").read_bytes().decode("utf-8", "replace")
        except OSError:  # it has ended
            continue
        if state[0] != "Z":
            yield int(folder.name), int(state[1]), int(state[3]), line


@pytest.mark.rotating(1)
@on_linux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupt_ends_all_of_it(number: signal.Signals, tmp_path: Path) -> None:
    """Also while it compiles, which it does in other processes."""
    line = [sys.executable, "-m", "htvm", "--confined", "run", "zoo:toyadmos", "-o"]
    command = subprocess.Popen(
        [*line, str(tmp_path / "out.npz")], text=True, stderr=subprocess.PIPE
    )

    def confined() -> dict[int, str]:
        """Command lines of the confined process and those that it started."""
        found = {own: (session, args) for own, _, session, args in processes()}
        leaders = {own for own, parent, session, _ in processes()
                   if parent == command.pid and session == own}  # fmt: skip
        return {own: args for own, (session, args) in found.items() if session in leaders}

    def left() -> list[str]:
        return [args for _, _, session, args in processes() if session in known]

    known: dict[int, str] = {}
    while not any("ziglang" in args for args in known.values()):
        assert command.poll() is None
        time.sleep(0.05)
        known = confined()
    command.send_signal(number)
    err = command.communicate(timeout=20)[1]
    assert command.returncode == (130 if number == signal.SIGINT else -number)
    assert number == signal.SIGKILL or err.strip().endswith("htvm: interrupted")
    deadline = time.monotonic() + 20
    while left() and time.monotonic() < deadline:
        time.sleep(0.2)  # a compiler without its parent
    assert not left() and not list(tmp_path.iterdir())


# ------------------------------------------------------------------------------ errors


def test_signals_of_limits() -> None:
    for code in (0, 1, 24, -9):
        refuse_exceeded(code, "the compiler")
    with pytest.raises(LimitError, match="the compiler was ended: .*; SIGXCPU"):
        refuse_exceeded(-signal.SIGXCPU, "the compiler")


def test_which_errors_are_due_to_memory() -> None:
    def caused(error: Exception, by: Exception) -> Exception:
        error.__cause__ = by
        return error

    assert lacks_memory(MemoryError()) and lacks_memory(OSError(12, "Cannot allocate memory"))
    assert lacks_memory(RuntimeError("std::bad_alloc"))
    assert lacks_memory(caused(DefectError("unexpected"), MemoryError()))
    assert not lacks_memory(ValueError("3")) and not lacks_memory(OSError(2, "No such file"))
    # A header that promises more than any memory is a fault of the file.
    assert not lacks_memory(caused(InputError("no arrays"), MemoryError()))


# ------------------------------------------------------------------------------ hostile files


@on_linux
@pytest.mark.slow
@pytest.mark.skipif(not FOLDER.is_dir(), reason="the hostile files are not here")
def test_hostile_files_are_answered() -> None:
    """Within seconds and a gigabyte, by an error with a type, by our budgets or by the kernel."""
    found = list(answers(FOLDER))
    assert found and all(each.is_fine for each in found), found
    assert {each.code for each in found if not each.raised} == {2}
    assert {each.code for each in found if each.raised} == {2, 3, 152}
