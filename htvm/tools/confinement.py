"""`confined`: a verb of the command line in a process of its own, which the kernel bounds.

For files of strangers: what such a file makes a reader, the compiler or one of its libraries do
ends with that process.  It has its own home, cache and temporary folder, no network where the
system allows that, and no more processor time and memory than it is given.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import logging
import os
import signal
import site
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from byoc_dory.errors import DefectError, InputError, LimitError, UnsupportedError
from htvm.frontend.limits import check_limits
from htvm.processes import EXIT_CODES
from htvm.public import public

_log = logging.getLogger(__name__)

_LEAST_BYTES = 1 << 30
_MOST = 1 << 62  # what the kernel's limits hold, with room for the grace
_LONGEST_WORD = 1 << 17  # of Linux, with the byte that ends it
_GRACE_S = 3  # to remove unfinished files, before a process is killed
_CHILD = "import sys; sys.path[:] = {path!r}; from htvm.tools.cli.confined import main; main()"
# Everything else in the environment, such as passwords, is not the command's business.
_ENVIRONMENT = frozenset(
    "COLUMNS DYLD_LIBRARY_PATH LANG LC_ALL LC_CTYPE LD_LIBRARY_PATH LINES NO_COLOR PATH PYTHONPATH "
    "SOURCE_DATE_EPOCH TERM TZ VIRTUAL_ENV".split()
)
_SAID = {
    "cpu_seconds": "takes more than {:,} s of processor time",
    "memory_bytes": "needs more than {:,} B of memory",
    "seconds": "takes longer than {:,} s",
}


@public
@dataclass(frozen=True)
class Confinement:
    """What a confined command may take; each process that it starts, such as a compiler, as much.

    Attributes:
        cpu_seconds: of processor time.
        memory_bytes: of address space (not on macOS), and of each file that is written; the
            libraries alone need the smallest possible number, a GiB.
        seconds: from start to end, with all of its processes.

    Raises:
        InputError: a limit is no positive integer, or too small.
    """

    cpu_seconds: int = 600
    memory_bytes: int = 1 << 32
    seconds: int = 1800

    def __post_init__(self) -> None:
        check_limits(self)
        for name in ("cpu_seconds", "memory_bytes"):
            if getattr(self, name) > _MOST:
                raise InputError(
                    f"{getattr(self, name)} is no limit of {name}",
                    where="option 'limits'",
                    hint=f"give at most {_MOST}",
                )
        if self.memory_bytes < _LEAST_BYTES:
            raise InputError(
                f"the libraries cannot be loaded into {self.memory_bytes:,} B",
                where="limit memory_bytes",
                hint=f"give at least {_LEAST_BYTES:,}",
            )


@public
@dataclass(frozen=True)
class ConfinedResult:
    """What a confined command answered.

    Attributes:
        exit_code: as without confinement: 0, 1 for a finding, 2 for an error that a user can mend.
        stdout, stderr: what it printed.
    """

    exit_code: int
    stdout: str
    stderr: str


@public
def confined(
    verb: str, *arguments: str | os.PathLike[str], limits: Confinement | None = None
) -> ConfinedResult:
    """Execute a verb of the command line in a process that the kernel bounds.

    ::

        htvm.confined("compile", "model.tflite", "--target", "cortex_m4", "--out", "project")

    Files are written where the arguments say.  Nothing is taken from the user's cache or left
    there, so that tools such as the simulator are compiled each time.

    Args:
        verb: e.g. ``"run"``; ``htvm --help`` lists them.
        arguments: those of the verb.
        limits: what it may take; by default that of `Confinement`.

    Raises:
        InputError: an argument is no text, or ``limits`` are others.
        LimitError: it came to one of the limits; ``limit`` is its name.
        DefectError: it crashed.
        UnsupportedError: the system has no such limits (Windows).
    """
    limits = limits or Confinement()
    if not isinstance(limits, Confinement):
        raise InputError(
            f"a {type(limits).__name__} is no limit of a process",
            where="option 'limits'",
            hint="give htvm.Confinement(...)",
        )
    for each in (verb, *arguments):
        if not _is_word(each):
            raise InputError(
                f"{each!r:.60} is no word of a command line",
                where="htvm.confined",
                hint="give text, or a path",
            )
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        words = [verb, *(os.fspath(each) for each in arguments)]
        code = supervised(words, limits, out, err)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode("utf-8", "replace"))
    return ConfinedResult(code, *texts)


def _is_word(given: object) -> bool:
    """Whether the system can hand something to a process as one of its arguments."""
    text = os.fspath(given) if isinstance(given, os.PathLike) else given
    if not isinstance(text, str) or "\0" in text:
        return False
    try:
        return len(os.fsencode(text)) < _LONGEST_WORD
    except UnicodeEncodeError:
        return False


def supervised(
    words: Sequence[str],
    limits: Confinement,
    stdout: IO[bytes] | None = None,
    stderr: IO[bytes] | None = None,
) -> int:
    """Execute a command line in confinement; return its exit code.

    An interrupt, or any other end of this call, ends it with all processes that it started.

    Args:
        words: the verb and its arguments.
        limits: what it may take.
        stdout, stderr: where its output goes; by default that of this process.

    Raises:
        LimitError, DefectError, UnsupportedError: as for `confined`.
    """
    if os.name != "posix":
        raise UnsupportedError("this system cannot confine a command", where=sys.platform)
    with tempfile.TemporaryDirectory(prefix="htvm-") as folder:
        before = _children_seconds()
        script = _CHILD.format(path=[*filter(None, sys.path), str(Path(__file__).parents[2])])
        process = subprocess.Popen(
            [sys.executable, "-c", script, json.dumps(asdict(limits)), *words],
            env=_environment(Path(folder)),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,  # a group, which can be ended as a whole
        )
        try:
            status = process.wait(limits.seconds)
        except subprocess.TimeoutExpired as error:
            raise _exceeded("seconds", limits) from error
        finally:
            _end(process)
    if status == -signal.SIGKILL and _children_seconds() - before >= limits.cpu_seconds:
        raise _exceeded("cpu_seconds", limits)
    for limit, code in EXIT_CODES.items():
        if status in (code, 128 - code):  # or by the signal itself, as while it ends
            raise _exceeded(limit, limits)
    if status < 0:
        raise DefectError(
            f"the confined command was ended by {signal.Signals(-status).name}",
            where=f"htvm {words[0] if words else ''}",
            hint=f"it may lack memory: memory_bytes={limits.memory_bytes:,}; else report it",
        )
    return status


def _children_seconds() -> float:
    """Return the processor time of all processes that this one started and that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def _exceeded(limit: str, limits: Confinement) -> LimitError:
    return LimitError(
        f"the confined command {_SAID[limit].format(getattr(limits, limit))}",
        where=f"limit {limit}",
        hint=f"if you trust the file: htvm.Confinement({limit}=...), "
        f"or htvm --confined --allow {limit}=...",
        limit=limit,
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process with those that it started; first so that it removes unfinished files."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS says it of zombies
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _environment(folder: Path) -> dict[str, str]:
    """Return an environment whose folders are below a private one."""
    found = {name: value for name, value in os.environ.items() if name in _ENVIRONMENT}
    variables = ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")
    for name in variables:
        place = folder / name.lower()
        place.mkdir(mode=0o700)
        found[name] = str(place)
    # Packages of the user's, e.g. the compiler, are not in the new home.
    return {**found, "PYTHONUSERBASE": site.getuserbase()}


# ------------------------------------------------------------------------------ in the child


def confine(limits: Confinement) -> None:
    """Confine this process and those that it will start; call it before any thread is started.

    The number of processes stays unlimited: the kernel counts all those of the user.
    """
    import resource

    _isolate()
    bounds = {
        # The signal comes at the first, and ends a process that does not listen at the second.
        resource.RLIMIT_CPU: (limits.cpu_seconds, limits.cpu_seconds + _GRACE_S),
        resource.RLIMIT_FSIZE: (limits.memory_bytes,) * 2,
        resource.RLIMIT_CORE: (0, 0),
    }
    if sys.platform == "linux":
        bounds[resource.RLIMIT_AS] = (limits.memory_bytes,) * 2
    else:
        _log.warning("the memory is not limited: %s does not do that", sys.platform)
    for kind, (soft, hard) in bounds.items():
        most = resource.getrlimit(kind)[1]
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        resource.setrlimit(kind, (soft, hard))


_NO_NEW_PRIVILEGES, _DEATH_SIGNAL = 38, 1  # options of prctl
_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000  # flags of unshare


def _isolate() -> None:
    """Leave the network, give up gaining privileges, and end with the parent."""
    if sys.platform != "linux":
        _log.warning("the network can be reached: %s cannot take it away", sys.platform)
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    libc.prctl(_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
    if libc.unshare(_NEW_NETWORK) == 0:  # root may do it
        return
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_NEW_USER | _NEW_NETWORK) != 0:
        reason = os.strerror(ctypes.get_errno())
        _log.warning("the network can be reached: this system does not take it away: %s", reason)
        return
    own = Path("/proc/self")
    for file, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"),
                       ("gid_map", f"{group} {group} 1")):  # fmt: skip
        (own / file).write_text(text)
