"""Reading numpy's files: the arrays that users give as inputs and as calibration data."""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from byoc_dory.errors import InputError
from htvm.files import is_pipe

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["read_arrays"]

# Errors that numpy raises for files it cannot read, including those from zip, zlib and its header's
# parser; MemoryError if a header promises more than there is.
_NO_ARRAYS = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    SyntaxError,
    TypeError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def read_arrays(path: Path, hint: str, what: str = "inputs") -> dict[str, NDArray[Any]]:
    """Return the arrays of an ``.npz`` file by name; that of an ``.npy`` file under the empty name.

    Args:
        path: path of the file.
        hint: for messages: what it should be instead.
        what: for messages: what it should hold, in a word.

    Raises:
        InputError: the file holds no arrays.
    """
    if is_pipe(path):
        raise InputError(f"cannot read {what}: this is a pipe", where=f"file '{path}'", hint=hint)
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {"": loaded}
        with loaded:
            return {name: loaded[name] for name in loaded.files}
    except _NO_ARRAYS as error:
        # numpy takes any unknown format for a pickle, and advises to trust it.
        reason = getattr(error, "strerror", None) or "it holds no numpy arrays of numbers"
        raise InputError(
            f"cannot read {what}: {reason}", where=f"file '{path}'", hint=hint
        ) from error
