"""What a C compiler says: its first errors, and numbers of a description that assertions refuse."""

from __future__ import annotations

import re
import signal

from byoc_dory.errors import TargetError, ToolchainError

COMPILER_HINT = "see all it said with -vv, and whether python -m ziglang version works"

_LONGEST_LINE = 300
_ERRORS = 3  # that are quoted

# As clang and GCC print it: file, line, what was required (clang), what the assertion says.
_FAILED = re.compile(
    r"^(.+?):(\d+):\d+: error: static assertion failed"
    r"(?: due to requirement '(.*?)')?: \"?(.*?)\"?$",
    re.MULTILINE,
)


def refused_number(output: str) -> TargetError | None:
    """Return the error for a description that the C refuses; ``None`` if it is another failure.

    Args:
        output: what the C compiler printed.
    """
    match = _FAILED.search(output)
    if match is None:
        return None
    path, line, required, said = match.groups()
    return TargetError(
        f"the C of the SoC is not written for these numbers: {said}"
        + (f" ({required})" if required else ""),
        where=f"{path}, line {line}",
        hint="give the description a number that it is written for, or change the C",
    )


class CompileError(ToolchainError):
    """The compiler or linker failed; ``output`` is its complete output."""

    output: str = ""


def compile_error(text: str, code: int, where: str, cache: str) -> CompileError:
    """Return the error for a compiler that failed.

    Args:
        text: what it printed.
        code: its return code.
        where: for the message.
        cache: folder of its own cache.
    """
    said = _first_errors(text) or f"{_ended(code)} and said nothing"
    hint = _hint(text, code, cache)
    failure = CompileError(f"the C compiler failed: {said}", where=where, hint=hint)
    failure.output = text
    return failure


def _first_errors(text: str) -> str:
    printable = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    lines = [line.strip()[:_LONGEST_LINE] for line in printable.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return " | ".join((errors or lines)[:_ERRORS])


def _ended(code: int) -> str:
    if -code in set(signal.Signals):
        return f"it was ended by {signal.Signals(-code).name}"
    return f"it ended with code {code}"


def _hint(text: str, code: int, cache: str) -> str:
    if code < 0 and not text.strip():
        # So ends LLVM where a file cannot be written completely.
        return f"free some disk space and memory; if that is no help, {COMPILER_HINT}"
    if any(said in text for said in ("No space left", "NoSpaceLeft", "File too large")):
        return "free some disk space"
    if cache in text:
        return f"the compiler's cache may be damaged: remove {cache}, it will be made again"
    return COMPILER_HINT
