"""Reading arrays back from the C that `htvm.aot.entry.c_array` printed."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from byoc_dory.errors import ModelError
from htvm.aot.literals import C_TYPES, LOWEST

# A body has neither of these signs, so that its end is looked for once.
_ARRAY = re.compile(r"\bconst (\w+) (\w+)\[(\d+)\] = \{\n([^{};]*)\n\};")
_DTYPES = {c: dtype for dtype, c in C_TYPES.items()}


def read_c_arrays(text: str, where: str) -> dict[str, npt.NDArray[Any]]:
    """Return every array defined in a text, by its C name.

    Args:
        text: C text as printed by `htvm.aot.entry`.
        where: file name for messages.

    Raises:
        ModelError: a definition has another form than printed.
    """
    found = {}
    for kind, name, size, body in _ARRAY.findall(text):
        try:
            array, elements = _array(_DTYPES[kind], body), int(size)
        except (KeyError, ValueError, OverflowError) as error:
            raise ModelError(f"the array '{name}' cannot be read", where=where) from error
        if array.size != elements:
            raise ModelError(
                f"the array '{name}' has {array.size} of {elements} elements", where=where
            )
        found[name] = array
    return found


def _array(dtype: str, body: str) -> npt.NDArray[Any]:
    for kind, printed in LOWEST.items():
        body = body.replace(printed, str(np.iinfo(kind).min))
    words = [word.strip() for word in body.replace("\n", " ").split(",")]
    words = words[:-1] if words and not words[-1] else words
    if dtype == "float32":
        return np.array([_real(word) for word in words], np.float32)
    return np.array([int(word.removesuffix("u")) for word in words], np.int64).astype(dtype)


def _real(word: str) -> float:
    if word.endswith("/0.0f"):
        return -math.inf if word.startswith("-") else math.inf
    return float.fromhex(word.removesuffix("f"))
