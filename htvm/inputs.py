"""Checks of the inputs that a user passes to a run: an array, a list, or a dict by input name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from byoc_dory.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from htvm.model import TensorInfo

Inputs: TypeAlias = (
    "NDArray[np.generic] | Sequence[NDArray[np.generic]] | Mapping[str, NDArray[np.generic]]"
)


def bind_inputs(infos: Sequence[TensorInfo], given: Inputs) -> list[NDArray[np.generic]]:
    """Return one contiguous array per input of the model, in its order.

    Args:
        infos: the model's inputs.
        given: one array (for a model with one input), a sequence in the model's order, or a mapping
            from input name to array.  Shapes and dtypes must be the model's; nothing is converted,
            because a silent conversion would hide a wrong quantization.  Only int64 is taken for
            int32, because frameworks have indices in it.

    Raises:
        InputError: a name, number, shape or dtype is wrong, an element is NaN, or one of int64 does
            not fit int32.
    """
    wanted = ", ".join(f"{info.name}: {info.dtype}{list(info.shape)}" for info in infos)
    if isinstance(given, Mapping):
        return [_checked(info, given[info.name]) for info in _named(infos, given, wanted)]
    arrays = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(arrays) != len(infos):
        raise InputError(
            f"{len(arrays)} inputs given, the model has {len(infos)}", hint=f"it takes {wanted}"
        )
    return [_checked(info, array) for info, array in zip(infos, arrays, strict=True)]


def seeded_inputs(infos: Sequence[TensorInfo], seed: int = 0) -> list[NDArray[np.generic]]:
    """Return random inputs that use the whole range of each integer input.

    Args:
        infos: the model's inputs.
        seed: seed of numpy's default generator.
    """
    rng = np.random.default_rng(seed)
    arrays: list[NDArray[np.generic]] = []
    for info in infos:
        if np.issubdtype(np.dtype(info.dtype), np.integer):
            limits = np.iinfo(info.dtype)
            values = rng.integers(limits.min, limits.max, info.shape, endpoint=True)
        else:
            values = rng.standard_normal(info.shape)
        arrays.append(np.asarray(values, info.dtype))  # numpy draws a number for no axes
    return arrays


def _named(
    infos: Sequence[TensorInfo], given: Mapping[str, NDArray[np.generic]], wanted: str
) -> Sequence[TensorInfo]:
    known = {info.name for info in infos}
    for name in given:
        if name not in known:
            raise InputError(f"the model has no input '{name}'", hint=f"it takes {wanted}")
    for info in infos:
        if info.name not in given:
            raise InputError(f"input '{info.name}' is missing", hint=f"the model takes {wanted}")
    return infos


def _checked(info: TensorInfo, array: object) -> NDArray[np.generic]:
    where = f"input '{info.name}'"
    if isinstance(array, np.generic):  # what numpy makes of an array without axes
        array = np.asarray(array)
    if not isinstance(array, np.ndarray):
        raise InputError(
            f"a {type(array).__name__} is not a numpy array", where=where,
            hint=f"pass an array of {info.dtype} and shape {list(info.shape)}",
        )  # fmt: skip
    if array.dtype == np.int64 and info.dtype == "int32":
        return _checked(info, _narrowed(array, where))
    if array.dtype != np.dtype(info.dtype):
        raise InputError(
            f"dtype {array.dtype} instead of {info.dtype}", where=where, hint=_quantize_hint(info)
        )
    if array.shape != tuple(info.shape):
        raise InputError(
            f"shape {list(array.shape)} instead of {list(info.shape)}", where=where,
            hint="reshape it, or add the batch axis",
        )  # fmt: skip
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise InputError(
            f"{int(np.isnan(array).sum())} of {array.size} elements are NaN", where=where,
            hint="pass numbers; no integer stands for NaN",
        )  # fmt: skip
    return np.asarray(array, order="C")


def _narrowed(array: NDArray[np.int64], where: str) -> NDArray[np.int32]:
    limits = np.iinfo("int32")
    outside = array[(array < limits.min) | (array > limits.max)]
    if outside.size:
        raise InputError(
            f"{int(outside[0])} does not fit int32", where=where,
            hint="the generated code takes int32; pass indices of the axis",
        )  # fmt: skip
    return array.astype("int32")


def _quantize_hint(info: TensorInfo) -> str:
    if info.scale is None:
        return f"convert it with array.astype('{info.dtype}')"
    return (
        f"quantize real values with round(value / {info.scale:g}) + {info.zero_point}, "
        f"clip, and convert to {info.dtype}"
    )
