"""Reading a possibly damaged FlatBuffers file: every access is checked against its bounds.

Generated accessors (the packages ``tflite`` and ``flatbuffers``) follow any offset they find, which
in a damaged file ends in a crash, a wrong answer or an endless loop.  This reader raises
`ModelError` instead.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np

from byoc_dory.errors import ModelError
from byoc_dory.layers import Array
from htvm.frontend.limits import Budget

_HINT = "the file is truncated or damaged; fetch or export it again"
_LONGEST_NAME = 1 << 16


@dataclass(frozen=True, eq=False)
class FlatBuffer:
    """The bytes of a file.

    Attributes:
        data: all bytes of the file.
        source: name of the file, for messages.
        budget: counts what is decoded: a table, list or text that many others name takes its size
            each time.
    """

    data: bytes
    source: str
    budget: Budget

    def error(self, what: str, offset: int) -> ModelError:
        """Return a `ModelError` about the byte at ``offset``."""
        return ModelError(
            f"corrupt model: {what}",
            where=f"byte {offset} of {len(self.data)} in {self.source}",
            hint=_HINT,
        )

    def spend(self, count: int, offset: int) -> None:
        """Count bytes that are about to be decoded at ``offset``.

        Raises:
            UnsupportedError: the file is decoded too often.
        """
        self.budget.spend("decoded_bytes", count, f"byte {offset} of {self.source}")

    def read(self, code: str, offset: int) -> int | float:
        """Return one little-endian scalar, with ``code`` as in `struct`."""
        size = struct.calcsize(f"<{code}")
        if offset < 0 or offset + size > len(self.data):
            raise self.error("an offset leads outside the file", offset)
        value: int | float = struct.unpack_from(f"<{code}", self.data, offset)[0]
        return value

    def integer(self, code: str, offset: int) -> int:
        """Return one little-endian integer."""
        return int(self.read(code, offset))

    def follow(self, offset: int) -> int:
        """Return the target of the relative offset stored at ``offset``."""
        return offset + self.integer("I", offset)

    def root(self) -> FlatTable:
        """Return the table at the root of the file."""
        return FlatTable.at(self, self.follow(0))


@dataclass(frozen=True, eq=False)
class FlatTable:
    """A table of the file, with a checked virtual table.

    Attributes:
        buffer: bytes of the file.
        position: position of the table.
        fields: offset of each field inside the table; 0 if it is absent.
        looked: numbers of the fields that have been looked at.
    """

    buffer: FlatBuffer
    position: int
    fields: tuple[int, ...]
    looked: set[int] = field(default_factory=set[int])

    @classmethod
    def at(cls, buffer: FlatBuffer, position: int) -> FlatTable:
        """Return the table at a position."""
        vtable = position - buffer.integer("i", position)
        vtable_bytes = buffer.integer("H", vtable)
        table_bytes = buffer.integer("H", vtable + 2)
        if vtable_bytes < 4 or vtable_bytes % 2 or table_bytes < 4:
            raise buffer.error("a table has an impossible size", vtable)
        if position + table_bytes > len(buffer.data):
            raise buffer.error("a table ends outside the file", position)
        buffer.spend(vtable_bytes, position)
        fields = tuple(buffer.integer("H", vtable + at) for at in range(4, vtable_bytes, 2))
        if any(field >= table_bytes for field in fields):
            raise buffer.error("a field lies outside its table", vtable)
        return cls(buffer, position, fields)

    def _field(self, index: int) -> int:
        """Return the position of a field, or 0 if it is absent."""
        self.looked.add(index)
        offset = self.fields[index] if index < len(self.fields) else 0
        return self.position + offset if offset else 0

    def integer(self, index: int, code: str, default: int = 0) -> int:
        """Return an integer field."""
        at = self._field(index)
        return self.buffer.integer(code, at) if at else default

    def real(self, index: int, default: float = 0.0) -> float:
        """Return a 32-bit floating-point field."""
        at = self._field(index)
        return float(self.buffer.read("f", at)) if at else default

    def table(self, index: int) -> FlatTable | None:
        """Return a field that is a table."""
        at = self._field(index)
        return FlatTable.at(self.buffer, self.buffer.follow(at)) if at else None

    def vector(self, index: int, dtype: str) -> Array | None:
        """Return a field that is a vector of numbers, read-only, or ``None`` if it is absent."""
        found = self._vector(index, np.dtype(dtype).itemsize)
        if found is None:
            return None
        start, count = found
        return np.frombuffer(self.buffer.data, np.dtype(dtype).newbyteorder("<"), count, start)

    def tables(self, index: int) -> tuple[FlatTable, ...]:
        """Return a field that is a vector of tables; empty if it is absent."""
        found = self._vector(index, 4)
        if found is None:
            return ()
        start, count = found
        buffer = self.buffer
        return tuple(FlatTable.at(buffer, buffer.follow(start + 4 * item)) for item in range(count))

    def string(self, index: int) -> str:
        """Return a field that is a string; empty if it is absent."""
        found = self._vector(index, 1)
        if found is None:
            return ""
        start, count = found
        if count > _LONGEST_NAME:
            raise self.buffer.error(f"a name of {count} characters", start)
        # Runtimes never decode names, and run files whose names are not UTF-8.
        return self.buffer.data[start : start + count].decode("utf-8", "replace")

    def _vector(self, index: int, item_bytes: int) -> tuple[int, int] | None:
        at = self._field(index)
        if not at:
            return None
        position = self.buffer.follow(at)
        count = self.buffer.integer("I", position)
        if position + 4 + count * item_bytes > len(self.buffer.data):
            raise self.buffer.error(f"a vector of {count} items ends outside the file", position)
        self.buffer.spend(count * item_bytes, position)
        return position + 4, count
