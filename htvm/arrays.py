"""Reading numpy's files: the arrays that users give as inputs and as calibration data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from byoc_dory.errors import InputError
from htvm.files import is_pipe

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_BYTES = 2**28
_LARGEST_RATIO = 20  # of arrays' bytes to those of a larger file; deflate reaches 1,000


def read_arrays(path: Path, hint: str, what: str = "inputs") -> dict[str, NDArray[Any]]:
    """Return the arrays of an ``.npz`` file by name; that of an ``.npy`` file under the empty name.

    Args:
        path: path of the file.
        hint: for messages: what it should be instead.
        what: for messages: what it should hold, in a word.

    Raises:
        InputError: the file holds no arrays, or far more bytes of them than it has itself.
    """
    if is_pipe(path):
        raise _refused("this is a pipe", path, hint, what)
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {"": loaded}
        with loaded:
            held = sum(entry.file_size for entry in loaded.zip.infolist())
            arrays = {} if held > _most_bytes(path) else {name: loaded[name] for name in loaded}
    except Exception as error:
        # From numpy, zip, its kinds of compression and the header's parser, whatever they meet.
        # numpy takes any unknown format for a pickle, and advises to trust it.
        reason = getattr(error, "strerror", None) or "it holds no numpy arrays of numbers"
        raise _refused(reason, path, hint, what) from error
    if held > _most_bytes(path):
        raise _refused(f"its arrays take {held:,} bytes", path, hint, what)
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):  # numpy returns any other entry of a zip as bytes
            raise _refused(f"'{name}' is no numpy array", path, hint, what)
    return arrays


def _most_bytes(path: Path) -> int:
    return max(_MOST_BYTES, _LARGEST_RATIO * path.stat().st_size)


def _refused(reason: str, path: Path, hint: str, what: str) -> InputError:
    return InputError(f"cannot read {what}: {reason}", where=f"file '{path}'", hint=hint)
