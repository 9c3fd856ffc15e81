"""Calls of loops over columns, on Cortex-M cores.

A schedule marks the loop over blocks of output channels (`COLUMN`) and, inside, the sums of
products of words of four elements (`SUMS`).  After lowering to flat buffers, the sums become one
call of ``runtime_c/simd/htvm_columns.h`` or ``htvm_spread.h``, and before the loop over channels
the operands of these sums are written into a column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tvm_ffi
from tvm import tirx
from tvm.tirx.stmt import AllocBuffer, BufferStore, For, ForKind, SeqStmt

from byoc_dory.errors import UnsupportedError
from htvm.aot.loops import address_of, call, products_of, step_of, without_note

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

COLUMN = "htvm_column"
"""Annotation of the loop over blocks of channels: kind of the columns, ``:``, number of pixels."""

SUMS = "htvm_sums"
"""Annotation of the outermost loop of the sums: number of channels, 2 or 4."""


@dataclass(frozen=True)
class _Kind:
    """Columns of one kind.

    Attributes:
        dtype: type of a column's words.
        words: words for four elements.
        fill: functions that fill one column, and two side by side.
        prefix: of the functions that multiply.
        less: whether a column ends with a word for each pixel, which filling it adds to.
    """

    dtype: str
    words: int
    fill: tuple[str, str]
    prefix: str
    less: bool


_KINDS = {
    "dsp": _Kind("uint32", 2, ("htvm_widen_one", "htvm_widen_two"), "htvm_", False),
    "thumb": _Kind("int32", 4, ("htvm_spread_one", "htvm_spread_two"), "htvm_spread_", True),
}
_PRODUCTS = {(2, 2): "two_by_two", (1, 4): "one_by_four", (1, 2): "one_by_two"}

_LONG = 36
"""Words from which on a block of two pixels and two channels is a call, and takes flash once."""

COLUMN_CALLS = tuple(
    name
    for kind in _KINDS.values()
    for name in (
        *kind.fill,
        *(kind.prefix + product for product in _PRODUCTS.values()),
        f"{kind.prefix}two_by_two_long",
    )
)
"""Functions of the headers that generated kernels call."""


def call_columns(func: PrimFunc) -> PrimFunc:
    """Replace marked loops over flat buffers by calls.

    Raises:
        UnsupportedError: a marked loop is no sum of products of words.
    """
    where = f"kernel '{(func.attrs or {}).get('global_symbol', '')}'"

    def visit(loop: Any) -> Any:
        if COLUMN not in (loop.annotations or {}):
            return loop
        return _Columns(loop, where).statement()

    return func.with_body(tvm_ffi.structural_map(func.body, (For, visit)))


class _Columns:
    """The calls that a marked loop becomes."""

    def __init__(self, channels: Any, where: str) -> None:
        self.channels, self.where = channels, where
        kind, pixels = str(channels.annotations[COLUMN]).split(":")
        self.kind, self.pixels = _KINDS[kind], int(pixels)
        found: list[Any] = []

        def collect(loop: Any) -> None:
            if SUMS in (loop.annotations or {}):
                found.append(loop)

        tvm_ffi.structural_walk(channels.body, (For, collect))
        if len(found) != 1:
            raise self._error()
        (self.sums,) = found
        self.block = int(self.sums.annotations[SUMS])
        self._read()

    def _error(self) -> UnsupportedError:
        return UnsupportedError(
            "a loop marked for columns is no sum of products of words", where=self.where
        )

    def _read(self) -> None:
        """Find the loops of the sums, and the indices of their operands."""
        found = products_of(self.sums)
        if found is None:
            raise self._error()
        self.data, self.weights, self.total = found.data, found.weights, found.total
        *outer, byte = found.loops
        index = self.total.indices[0]
        tile = [loop for loop in outer if step_of(index, loop.loop_var) != 0]
        steps = [loop for loop in outer if step_of(index, loop.loop_var) == 0]
        sizes = [int(loop.extent) for loop in tile]
        expected = [size for size in (self.pixels, self.block) if size > 1]
        if int(byte.extent) != 4 or sizes != expected or not 1 <= len(steps) <= 2:
            raise self._error()
        self.steps, self.inner = steps, [*tile, byte]
        self.pixel = tile[0].loop_var if self.pixels > 1 else None

    def statement(self) -> Any:
        """Return the statements that replace the marked loop."""
        # Words of a run are side by side in the data; runs begin anywhere.
        index = self.data.indices[0]
        runs = [loop for loop in self.steps if step_of(index, loop.loop_var) == 4]
        rows = [loop for loop in self.steps if step_of(index, loop.loop_var) != 4]
        if len(runs) > 1 or len(rows) > 1 or (runs and self.steps[-1] is not runs[0]):
            raise self._error()
        words = math.prod(int(loop.extent) for loop in runs)
        each = self.kind.words * self.pixels
        number = words * math.prod(int(loop.extent) for loop in rows)
        size = number * each
        extra = self.pixels if self.kind.less else 0
        column = tirx.decl_buffer((size + extra,), self.kind.dtype, name="column")
        less = [tirx.address_of(column[tirx.const(size, "int32")])] if extra else []
        zero = {loop.loop_var: 0 for loop in (*runs, *self.inner)}
        places = [
            zero | ({self.pixel: pixel} if self.pixel is not None else {})
            for pixel in range(self.pixels)
        ]
        row = rows[0].loop_var if rows else None
        offset = tirx.const(0, "int32") if row is None else row * tirx.const(words * each, "int32")
        fill = call(
            self.kind.fill[self.pixels - 1],
            tirx.address_of(column[offset]),
            *(address_of(self.data, place) for place in places),
            tirx.const(words, "uint32"),
            *less,
        )
        if row is not None:
            fill = For(
                row, 0, rows[0].extent, ForKind.SERIAL, fill, annotations=rows[0].annotations
            )
        start = {loop.loop_var: 0 for loop in (*self.steps, *self.inner)}
        function = self.kind.prefix + _PRODUCTS[self.pixels, self.block]
        if number >= _LONG and (self.pixels, self.block) == (2, 2):
            function += "_long"
        products = call(
            function,
            address_of(self.total, start),
            tirx.address_of(column[tirx.const(0, "int32")]),
            address_of(self.weights, start),
            tirx.const(number, "uint32"),
        )

        def replace(loop: Any) -> Any:
            return products if SUMS in (loop.annotations or {}) else loop

        body = tvm_ffi.structural_map(self.channels.body, (For, replace))
        clear = [
            BufferStore(column, tirx.const(0, self.kind.dtype), [tirx.const(size + at, "int32")])
            for at in range(extra)
        ]
        loop = without_note(self.channels, COLUMN, body)
        return SeqStmt([AllocBuffer(column), *clear, fill, loop])
