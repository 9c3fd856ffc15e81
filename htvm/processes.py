"""Programs in processes of their own: running one, and what ends one for what it takes."""

from __future__ import annotations

import errno
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from byoc_dory.errors import DefectError, HtvmError, LimitError

EXIT_CODES = {"memory_bytes": 3, "seconds": 124, "cpu_seconds": 152}
"""Exit code of a command that came to a limit; the others are those of timeout(1) and SIGXCPU."""

_LIMITS = {"SIGXCPU": "cpu_seconds", "SIGXFSZ": "memory_bytes"}
# How C++ and the loader of libraries say it.
_NO_MEMORY = ("std::bad_alloc", "failed to map segment", "Cannot allocate memory")


@dataclass(frozen=True)
class Ended:
    """How a program ended.

    Attributes:
        code: its return code; the number of the signal that ended it, negated.
        output: bytes of its standard output.
        said: text of its standard error.
    """

    code: int
    output: bytes
    said: str

    @property
    def printed(self) -> str:
        """Text of its standard output."""
        return self.output.decode("utf-8", "replace")


def run(
    line: Sequence[str],
    what: str,
    error: type[HtvmError],
    where: str,
    *,
    hint: str = "",
    seconds: float | None = None,
    slow_hint: str = "",
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run a program, which is given no input, to its end.

    Args:
        line: the program and its arguments.
        what: how errors call it, e.g. "the C compiler".
        error: class of these errors.
        where: what they name as the place.
        hint: what to do if it cannot be started.
        seconds: after which it is ended; without limit if there are none.
        slow_hint: what to do if it was ended then.
        environment: its environment; this process's if there is none.

    Raises:
        error: it cannot be started, or took longer.
        LimitError: the kernel ended it for what it took.
    """
    try:
        process = subprocess.run(
            line,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except OSError as cause:
        reason = cause.strerror
        raise error(f"{what} cannot be started: {reason}", where=where, hint=hint) from cause
    except subprocess.TimeoutExpired as cause:
        reason = f"did not end within {seconds:g} s"
        raise error(f"{what} {reason}", where=where, hint=slow_hint) from cause
    refuse_exceeded(process.returncode, what)
    return Ended(process.returncode, process.stdout, process.stderr.decode("utf-8", "replace"))


def refuse_exceeded(code: int, what: str) -> None:
    """Refuse a process, such as a compiler, that the kernel ended for what it took.

    Args:
        code: its return code.
        what: what it was, e.g. "the C compiler".

    Raises:
        LimitError: it was ended so.
    """
    for name, limit in _LIMITS.items():
        if code == -getattr(signal, name, 0) and code < 0:
            said = signal.strsignal(-code) or name
            raise LimitError(f"{what} was ended: {said}", where=name, limit=limit)


def lacks_memory(error: BaseException | None) -> bool:
    """Return whether an error says that memory was not granted, or an unexpected one is due to it.

    Errors that name another reason are not: a file may promise more than fits any memory.
    """
    if error is None:
        return False
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    if any(text in str(error) for text in _NO_MEMORY):
        return True
    expected = isinstance(error, HtvmError) and not isinstance(error, DefectError)
    return not expected and lacks_memory(error.__cause__)
