"""Static assertions in drivers and device models: numbers of a description that they refuse."""

from __future__ import annotations

import re

from byoc_dory.errors import TargetError

__all__ = ["refused_number"]

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
    found = _FAILED.search(output)
    if found is None:
        return None
    path, line, required, said = found.groups()
    return TargetError(
        f"the C of the SoC is not written for these numbers: {said}"
        + (f" ({required})" if required else ""),
        where=f"{path}, line {line}",
        hint="give the description a number that it is written for, or change the C",
    )
