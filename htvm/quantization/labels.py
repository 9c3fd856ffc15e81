"""Labels of calibration inputs: the right class of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from byoc_dory.errors import InputError
from htvm.arrays import read_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from htvm.model import TensorInfo

Labels: TypeAlias = "NDArray[Any] | Sequence[int] | str | PathLike[str]"
"""N classes as integers, or an ``.npy`` or ``.npz`` file with one such array."""

_WHERE = "option 'labels'"
_HINT = "give an .npy or .npz file with one array of N integers, the class of each input"


def checked_labels(
    labels: Labels, samples: int, outputs: Sequence[TensorInfo]
) -> NDArray[np.int64]:
    """Return the labels as int64 [N].

    Args:
        labels: from the user.
        samples: number of inputs, N.
        outputs: the model's outputs.

    Raises:
        InputError: the model does not decide between classes; or there is no file, or not one array
            of N integers, each a class of the model.
    """
    classes = _classes(outputs)
    array = _read(labels)
    if array.dtype.kind not in "iu":
        raise InputError(f"labels of type {array.dtype}", where=_WHERE, hint=_HINT)
    flat = array.reshape(-1)
    if array.ndim == 0 or flat.size != array.shape[0] or flat.size != samples:
        raise InputError(
            f"labels of shape {list(array.shape)} for {samples:,} inputs",
            where=_WHERE,
            hint=f"give {samples:,} integers, the class of each input in 'data'",
        )
    wrong = (flat < 0) | (flat >= classes)
    if wrong.any():
        first = int(wrong.argmax())
        raise InputError(
            f"{int(wrong.sum()):,} labels are no classes, the first is {flat[first]} of input "
            f"{first}",
            where=_WHERE,
            hint=f"the model has {classes} classes: give 0 to {classes - 1}",
        )
    return np.asarray(flat.astype(np.int64), order="C")


def _read(labels: Labels) -> NDArray[Any]:
    if isinstance(labels, (str, PathLike)):
        arrays = read_arrays(Path(labels), _HINT, "labels")
        if len(arrays) != 1:
            raise InputError(
                f"{len(arrays)} arrays of labels: {', '.join(arrays) or 'none'}",
                where=f"file '{labels}'",
                hint=_HINT,
            )
        return next(iter(arrays.values()))
    try:
        return np.asarray(labels)
    except ValueError as error:  # a ragged list
        raise InputError(
            f"a {type(labels).__name__} that is no array", where=_WHERE, hint=_HINT
        ) from error


def _classes(outputs: Sequence[TensorInfo]) -> int:
    """Return the number of classes between which a model decides."""
    shapes = [info.shape for info in outputs]
    classes = math.prod(shapes[0]) if len(shapes) == 1 else 0
    if classes < 2 or max(shapes[0]) != classes:
        listed = " and ".join(str(list(shape)) for shape in shapes)
        raise InputError(
            f"labels for a network that does not choose a class: its output is {listed}",
            where=_WHERE,
            hint="leave them out; they are for one output with a score for each class",
        )
    return classes
