"""Tables of FlatBuffers, written field by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NUMBERS = {
    "bool": "Bool",
    "int8": "Int8",
    "uint8": "Uint8",
    "int32": "Int32",
    "uint32": "Uint32",
    "float32": "Float32",
}
_VECTORS = {"int32s": ("Int32", 4), "int64s": ("Int64", 8), "float32s": ("Float32", 4)}


def table(builder: Any, fields: Mapping[int, tuple[str, Any]]) -> int:
    """Write a table, what it refers to first, and return its place.

    Args:
        builder: a ``flatbuffers.Builder``.
        fields: by number in the schema, each with its kind: a number's type; ``int32s`` and so on
            for a vector of numbers; ``bytes``, ``text``, ``texts``; ``table`` or ``tables`` that
            are written already.
    """
    written = {slot: _written(builder, *entry) for slot, entry in fields.items()}
    builder.StartObject(max(fields, default=-1) + 1)
    for slot, (kind, _) in fields.items():
        if kind in _NUMBERS:  # without a default, so that zeros are written, too
            getattr(builder, f"Prepend{_NUMBERS[kind]}Slot")(slot, written[slot], None)
        elif written[slot]:
            builder.PrependUOffsetTRelativeSlot(slot, written[slot], 0)
    return int(builder.EndObject())


def _written(builder: Any, kind: str, value: Any) -> Any:
    """Write what a field refers to, and return its place; a number is its own."""
    if kind == "text":
        return builder.CreateString(value)
    if kind == "bytes":
        return _bytes(builder, value) if value else 0
    if kind in _VECTORS:
        name, size = _VECTORS[kind]
        return _vector(builder, value, size, getattr(builder, f"Prepend{name}"))
    if kind == "texts":
        places = [builder.CreateString(text) for text in value]
        return _vector(builder, places, 4, builder.PrependUOffsetTRelative)
    if kind == "tables":
        return _vector(builder, value, 4, builder.PrependUOffsetTRelative)
    return value


def _vector(builder: Any, values: Any, size: int, prepend: Any) -> int:
    builder.StartVector(size, len(values), size)
    for value in reversed(values):
        prepend(value)
    return int(builder.EndVector())


def _bytes(builder: Any, data: bytes) -> int:
    """Write bytes that begin at a multiple of 8, as a file's constants do."""
    builder.StartVector(1, len(data), 8)
    builder.head -= len(data)
    builder.Bytes[builder.head : builder.head + len(data)] = data
    return int(builder.EndVector())
