"""Calibration data, whatever form they come in, and labels: the right class of each."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from byoc_dory.errors import InputError
from htvm.arrays import read_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from htvm.model import TensorInfo

_log = logging.getLogger(__name__)

Array: TypeAlias = "NDArray[Any]"
Data: TypeAlias = (
    "Array | Mapping[str, Array] | Iterable[Array | Mapping[str, Array]] | str | PathLike[str]"  # noqa: E501
)
"""An array ``[N, ...]``, arrays by input name, an iterable of samples, or an npz or npy file."""


def stacked_samples(data: Data, infos: Sequence[TensorInfo]) -> dict[str, Array]:
    """The samples by input, ``[N, *shape]`` of the input's type; constant ones are warned of.

    The batch axis of a sample may be left out where it is 1.

    Raises:
        InputError: there are no samples; a name, a shape or a type is wrong; there are more of one
            input than of another; a number is not finite.
    """
    if isinstance(data, (str, PathLike)):
        data = read_arrays(Path(data), "give an .npz file with one array [N, ...] for each input")
        if len(data) == 1 and len(infos) == 1:
            data = next(iter(data.values()))
    if isinstance(data, Mapping):
        named = dict(data)
    elif isinstance(data, np.ndarray):
        named = {_only(infos): data}
    elif isinstance(data, Iterable):
        named = _collected_samples(data, infos)
    else:
        raise _no_samples(f"calibration data of type {type(data).__name__}")
    names = [info.name for info in infos]
    if set(named) != set(names):
        given = ", ".join(map(repr, named)) or "nothing"
        raise InputError(
            f"calibration data for {given}",
            where="option 'data'",
            hint=f"the model's inputs are {', '.join(map(repr, names))}",
        )
    result = {info.name: _checked_samples(named[info.name], info) for info in infos}
    counts = {name: len(array) for name, array in result.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{count} of '{name}'" for name, count in counts.items())
        raise InputError(
            f"unequal numbers of samples: {listed}",
            where="option 'data'",
            hint="give as many samples of every input",
        )
    _warn_of_constants(result)
    return result


def _warn_of_constants(samples: Mapping[str, Array]) -> None:
    """Warn of samples that say nothing about the values in use."""
    for name, array in samples.items():
        if array.size and np.all(array == array.flat[0]):
            what = f"are {array.flat[0]:g} everywhere"
        elif len(array) > 1 and np.all(array == array[:1]):
            what = "are all the same"
        else:
            continue
        _log.warning(
            "the %d calibration samples of input '%s' %s: ranges found from them do not hold in "
            "use; give real inputs, as varied as there",
            len(array),
            name,
            what,
        )


def _only(infos: Sequence[TensorInfo]) -> str:
    if len(infos) != 1:
        raise InputError(
            "calibration data without names for a model of several inputs",
            where="option 'data'",
            hint=f"give a dict with {', '.join(repr(info.name) for info in infos)}",
        )
    return infos[0].name


def _collected_samples(data: Iterable[Any], infos: Sequence[TensorInfo]) -> dict[str, Array]:
    """Samples that come one by one."""
    samples = list(data)
    if not samples:
        raise _no_samples("no calibration data")
    if not isinstance(samples[0], Mapping):
        name = _only(infos)
        samples = [{name: sample} for sample in samples]
    collected: dict[str, list[Any]] = {name: [] for name in samples[0]}
    for index, sample in enumerate(samples):
        if not isinstance(sample, Mapping) or set(sample) != set(collected):
            raise InputError(
                "a sample with other inputs than the first",
                where=f"option 'data', sample {index}",
                hint="give each sample the same inputs",
            )
        for name, value in sample.items():
            collected[name].append(value)
    try:
        return {
            name: np.stack([np.asarray(v) for v in values]) for name, values in collected.items()
        }
    except (TypeError, ValueError) as error:
        raise _no_samples("calibration samples of several shapes") from error


def _checked_samples(samples: Any, info: TensorInfo) -> Array:
    """One input's samples ``[N, *shape]``."""
    shape, dtype = info.shape, info.dtype
    where = f"option 'data', input '{info.name}'"
    try:
        array = np.asarray(samples)
    except ValueError as error:  # a ragged list
        raise _no_samples(f"no array, but a {type(samples).__name__}") from error
    if array.shape[1:] == shape[1:] and shape[:1] == (1,):
        array = array[:, None]
    if array.ndim != len(shape) + 1 or array.shape[1:] != shape:
        raise InputError(
            f"calibration data of shape {list(array.shape)}",
            where=where,
            hint=f"give N samples, [N, {', '.join(map(str, shape))}]",
        )
    if not len(array):
        raise _no_samples("no calibration data")
    if array.dtype.kind not in "biuf" or (array.dtype.kind == "f" and not _is_real(dtype)):
        raise InputError(
            f"calibration data of type {array.dtype}", where=where, hint=f"the input is {dtype}"
        )
    unfit = int((~np.isfinite(array)).reshape(len(array), -1).any(axis=1).sum())
    if unfit:
        raise InputError(
            f"{unfit} of {len(array)} samples hold NaN or infinity",
            where=where,
            hint="leave them out",
        )
    if not _is_real(dtype):
        limits = np.iinfo(dtype)
        if array.min() < limits.min or array.max() > limits.max:
            raise InputError(f"calibration data outside the range of {dtype}", where=where)
    return np.asarray(array.astype(dtype), order="C")


def _is_real(dtype: str) -> bool:
    return bool(np.dtype(dtype).kind == "f")


def _no_samples(what: str) -> InputError:
    return InputError(
        what,
        where="option 'data'",
        hint="give an array [N, ...], arrays by input name, an iterable of samples, or an npz file",
    )


Labels: TypeAlias = "NDArray[Any] | Sequence[int] | str | PathLike[str]"
"""N classes as integers, or an ``.npy`` or ``.npz`` file with one such array."""

_OF_LABELS = "option 'labels'"
_LABELS_HINT = "give an .npy or .npz file with one array of N integers, the class of each input"


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
    array = _read_labels(labels)
    if array.dtype.kind not in "iu":
        raise InputError(f"labels of type {array.dtype}", where=_OF_LABELS, hint=_LABELS_HINT)
    flat = array.reshape(-1)
    if array.ndim == 0 or flat.size != array.shape[0] or flat.size != samples:
        raise InputError(
            f"labels of shape {list(array.shape)} for {samples:,} inputs",
            where=_OF_LABELS,
            hint=f"give {samples:,} integers, the class of each input in 'data'",
        )
    wrong = (flat < 0) | (flat >= classes)
    if wrong.any():
        first = int(wrong.argmax())
        raise InputError(
            f"{int(wrong.sum()):,} labels are no classes, the first is {flat[first]} of input "
            f"{first}",
            where=_OF_LABELS,
            hint=f"the model has {classes} classes: give 0 to {classes - 1}",
        )
    return np.asarray(flat.astype(np.int64), order="C")


def _read_labels(labels: Labels) -> NDArray[Any]:
    if isinstance(labels, (str, PathLike)):
        arrays = read_arrays(Path(labels), _LABELS_HINT, "labels")
        if len(arrays) != 1:
            raise InputError(
                f"{len(arrays)} arrays of labels: {', '.join(arrays) or 'none'}",
                where=f"file '{labels}'",
                hint=_LABELS_HINT,
            )
        return next(iter(arrays.values()))
    try:
        return np.asarray(labels)
    except ValueError as error:  # a ragged list
        raise InputError(
            f"a {type(labels).__name__} that is no array", where=_OF_LABELS, hint=_LABELS_HINT
        ) from error


def _classes(outputs: Sequence[TensorInfo]) -> int:
    """Return the number of classes between which a model decides."""
    shapes = [info.shape for info in outputs]
    classes = math.prod(shapes[0]) if len(shapes) == 1 else 0
    if classes < 2 or max(shapes[0]) != classes:
        listed = " and ".join(str(list(shape)) for shape in shapes)
        raise InputError(
            f"labels for a network that does not choose a class: its output is {listed}",
            where=_OF_LABELS,
            hint="leave them out; they are for one output with a score for each class",
        )
    return classes
