"""Tensors in ONNX files: decoded only after their sizes have been checked against their bytes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import HtvmError, ModelError, UnsupportedError
from htvm.frontend.operators import MOST_AXES, MOST_ELEMENTS

if TYPE_CHECKING:
    from onnx import TensorProto

    from byoc_dory.layers import Array
    from htvm.frontend.limits import Budget

WIDER = {"int4": "int8", "uint4": "uint8"}
"""Type of 4 bits -> the one that holds it in numpy's own arithmetic."""

# Element type -> numpy name, bytes per element, field with the data if raw_data is empty.
_TYPES = {
    1: ("float32", "float_data"),
    2: ("uint8", "int32_data"),
    3: ("int8", "int32_data"),
    4: ("uint16", "int32_data"),
    5: ("int16", "int32_data"),
    6: ("int32", "int32_data"),
    7: ("int64", "int64_data"),
    9: ("bool", "int32_data"),
    10: ("float16", "int32_data"),  # as bits
    11: ("float64", "double_data"),
    12: ("uint32", "uint64_data"),
    13: ("uint64", "uint64_data"),
    21: ("uint4", "int32_data"),  # two elements to a byte, as are those of the next type
    22: ("int4", "int32_data"),
}
_EXTERNAL = 1

_BESIDE = "keep the data file beside the model, or save the model with its data inside"

DAMAGED = "the file is damaged, or no ONNX model; fetch or export it again"


def text_of(value: object, where: str) -> str:
    """Return a text of the file: the decoder returns bytes that are not UTF-8 unchanged.

    Raises:
        ModelError: it is not.
    """
    if not isinstance(value, str):
        raise ModelError(f"a name that is no text: {value!r:.60}", where=where, hint=DAMAGED)
    return value


def dtype_name(element_type: int, where: str) -> str:
    """Return the numpy name of an element type.

    Raises:
        UnsupportedError: the type is not supported here (bfloat16, texts, 2 bits ...).
    """
    if element_type not in _TYPES:
        from onnx import TensorProto

        known = {value: name for name, value in TensorProto.DataType.items()}
        raise UnsupportedError(
            f"a tensor of type {known.get(element_type, element_type)}",
            where=where,
            hint="supported are " + ", ".join(name for name, _ in _TYPES.values()),
        )
    return _TYPES[element_type][0]


def is_external(tensor: TensorProto) -> bool:
    """Whether the tensor's data lie in another file."""
    return bool(tensor.data_location == _EXTERNAL)


def external_bytes(tensors: Iterable[TensorProto], folder: Path) -> int:
    """Return how large the other files are, together, in which the data of some tensors lie."""
    locations = {_entries(tensor).get("location", "") for tensor in tensors if is_external(tensor)}
    total = 0
    for location in locations:
        # Whoever reads it says what is wrong with a file.
        with contextlib.suppress(HtvmError, OSError, RuntimeError, ValueError):
            total += _external_path(location, folder, "").stat().st_size
    return total


def array_of(
    tensor: TensorProto, where: str, folder: Path | None, budget: Budget | None = None
) -> Array:
    """Return the array that a tensor holds.

    Args:
        tensor: an initialiser or an attribute.
        where: place in the file, for messages.
        folder: folder of external data; ``None`` refuses them.
        budget: counts the bytes of external data.

    Raises:
        ModelError: sizes and data contradict each other, values are outside the declared type, or
            external data are missing.
        UnsupportedError: the element type is not supported, or the budget is exceeded.
    """
    name = dtype_name(tensor.data_type, where)
    dtype = np.dtype(name)
    shape = tuple(int(size) for size in tensor.dims)
    # Arrays without elements have strides, too.
    room = math.prod(size or 1 for size in shape)
    if len(shape) > MOST_AXES or min(shape, default=0) < 0 or room > MOST_ELEMENTS:
        shown = list(shape) if len(shape) <= MOST_AXES else f"{len(shape)} axes"
        raise ModelError(f"a tensor of shape {shown}", where=where)
    elements = math.prod(shape)
    if is_external(tensor):
        raw = _external(tensor, where, folder, budget)
    elif tensor.HasField("raw_data"):
        raw = tensor.raw_data
    else:
        return _typed(tensor, dtype, shape, where)
    size = -(-elements // 2) if name in WIDER else elements * dtype.itemsize
    if len(raw) != size:
        raise ModelError(
            f"{len(raw)} bytes for {name}{list(shape)}, which takes {size}",
            where=where,
            hint="the file is damaged; export it again",
        )
    if name in WIDER:
        return _halves(np.frombuffer(raw, "uint8"), name, shape)
    return np.frombuffer(raw, dtype.newbyteorder("<")).reshape(shape).astype(dtype)


def _halves(data: Array, name: str, shape: tuple[int, ...]) -> Array:
    """Return elements of 4 bits from their bytes; the lower half of each comes first."""
    values = np.stack([data & 15, data >> 4], axis=-1).reshape(-1)[: math.prod(shape)]
    signed = (values ^ 8).astype("int8") - 8 if name == "int4" else values
    return signed.reshape(shape).astype(name)


def _typed(tensor: TensorProto, dtype: np.dtype, shape: tuple[int, ...], where: str) -> Array:
    values = np.asarray(getattr(tensor, _TYPES[tensor.data_type][1]))
    narrow = dtype.name in WIDER
    size = -(-math.prod(shape) // 2) if narrow else math.prod(shape)
    if values.size != size:
        raise ModelError(
            f"{values.size} values for {dtype.name}{list(shape)}"
            + (f", which takes {size}, of two elements each" if narrow else ""),
            where=where,
            hint="the file is damaged; export it again",
        )
    bits = np.dtype("uint16") if dtype == np.float16 else np.dtype("uint8") if narrow else dtype
    if values.size and bits.kind in "iu":
        limits, low, high = np.iinfo(bits), int(values.min()), int(values.max())
        if low < limits.min or high > limits.max:
            raise ModelError(
                f"values from {low} to {high} in a tensor of {dtype.name}",
                where=where,
                hint=f"{bits.name} holds {limits.min} to {limits.max}; export the file again",
            )
    if narrow:
        return _halves(values.astype(bits), dtype.name, shape)
    return values.reshape(shape).astype(bits).view(dtype)


def _entries(tensor: TensorProto) -> dict[str, str]:
    """Return where the data lie; the decoder returns bytes that are not UTF-8 unchanged."""
    return {
        text_of(entry.key, "external data"): text_of(entry.value, "external data")
        for entry in tensor.external_data
    }


def _external(tensor: TensorProto, where: str, folder: Path | None, budget: Budget | None) -> bytes:
    entries = _entries(tensor)
    location = entries.get("location", "")
    try:
        path = _external_path(location, folder, where)
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", -1))
        with path.open("rb") as file:
            size = path.stat().st_size
            length = size - offset if length < 0 else length
            if not 0 <= offset <= offset + length <= size:
                raise ModelError(
                    f"bytes {offset} to {offset + length} of '{location}', which has {size}",
                    where=where,
                    hint=_BESIDE,
                )
            if budget is not None:
                budget.spend("decoded_bytes", length, where)
            file.seek(offset)
            return bytes(file.read(length))
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, an impossible name
        raise ModelError(
            f"external data '{location}' cannot be read: "
            f"{getattr(error, 'strerror', None) or error}",
            where=where,
            hint=_BESIDE,
        ) from error


def _external_path(location: str, folder: Path | None, where: str) -> Path:
    """Return the path of a file with external data.

    Raises:
        ModelError: there are none here, or it is outside of the model's folder, or no file.
        OSError, RuntimeError, ValueError: it is no path.
    """
    if folder is None or not location or Path(location).is_absolute():
        raise ModelError(f"external data in '{location}'", where=where, hint=_BESIDE)
    path = (folder / location).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ModelError(
            f"external data outside the model's folder: '{location}'", where=where, hint=_BESIDE
        )
    if path.exists() and not path.is_file():
        raise ModelError(f"external data '{location}' is no file", where=where, hint=_BESIDE)
    return path
