"""Processes that were ended because of what they may take."""

from __future__ import annotations

import errno
import signal

from byoc_dory.errors import DefectError, HtvmError, LimitError

EXIT_CODES = {"memory_bytes": 3, "seconds": 124, "cpu_seconds": 152}
"""Exit code of a command that came to a limit; the others are those of timeout(1) and SIGXCPU."""

_LIMITS = {"SIGXCPU": "cpu_seconds", "SIGXFSZ": "memory_bytes"}
# How C++ and the loader of libraries say it.
_NO_MEMORY = ("std::bad_alloc", "failed to map segment", "Cannot allocate memory")


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
