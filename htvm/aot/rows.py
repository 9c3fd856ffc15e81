"""Calls of loops over columns of bytes, on cores with vectors of 16 bytes (Helium).

A schedule marks the sums of products of some pixels with all channels (`SUMS`) and the loops that
start them (`START`).  After lowering to flat buffers, the sums become copies of the pixels' windows
into a column and one call of ``runtime_c/simd/htvm_rows.h``.  Depthwise sums of a pixel (`TAPS`)
become one call of ``htvm_taps.h``, which takes the elements where they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx.stmt import AllocBuffer, BufferStore, Evaluate, For, ForKind, SeqStmt

from byoc_dory.errors import UnsupportedError
from htvm.aot.loops import address_of, call, nest_of, products_of, step_of

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

SUMS = "htvm_rows"
"""Annotation of the outermost loop of the sums: number of channels of a block."""

TAPS = "htvm_taps"
"""Annotation of the outermost loop of the depthwise sums of a pixel."""

START = "htvm_rows_start"
"""Annotation of the outermost loop that sets these sums to 0 or to a bias."""

STEP = 16
"""Elements of a vector."""

_FILL, _PRODUCTS, _ONLY = "htvm_rows_fill", "htvm_rows_products", "htvm_rows_only_products"
_TAPS = "htvm_taps_sum"
ROWS_CALLS = (_FILL, _PRODUCTS, _ONLY, _TAPS)
"""Functions of the header that generated kernels call."""


def call_rows(func: PrimFunc) -> PrimFunc:
    """Replace marked loops over flat buffers by calls.

    Raises:
        UnsupportedError: a marked loop is no sum of products of int8.
    """
    where = f"kernel '{(func.attrs or {}).get('global_symbol', '')}'"
    starts: dict[Any, Any] = {}
    first: list[Any] = []

    def find(loop: Any) -> Any:
        if START not in (loop.annotations or {}):
            return loop
        _, store = nest_of(loop)
        if not isinstance(store, BufferStore):
            raise _error(where)
        starts[store.buffer.name] = store
        return Evaluate(tirx.const(0, "int32"))

    def replace(loop: Any) -> Any:
        notes = loop.annotations or {}
        if TAPS in notes:
            statement, before = _Rows(loop, starts, where).taps()
            first.extend(before)
            return statement
        return _Rows(loop, starts, where).rows(int(notes[SUMS])) if SUMS in notes else loop

    body = tvm_ffi.structural_map(func.body, (For, find))
    body = tvm_ffi.structural_map(body, (For, replace))
    return func.with_body(SeqStmt([*first, body]) if first else body)


def _error(where: str) -> UnsupportedError:
    return UnsupportedError("a loop marked for rows is no sum of products of int8", where=where)


@dataclass(frozen=True)
class _Axis:
    """A loop of the sums.

    Attributes:
        variable, extent: of the loop.
        data, weights, total: how many elements a step moves in each; ``None`` if that varies.
    """

    variable: Any
    extent: int
    data: int | None
    weights: int | None
    total: int | None


class _Rows:
    """The calls that a marked loop becomes."""

    def __init__(self, sums: Any, starts: dict[Any, Any], where: str) -> None:
        self.where = where
        found = products_of(sums)
        if found is None or found.total.buffer.name not in starts:
            raise _error(where)
        self.total, self.data, self.weights = found.total, found.data, found.weights
        places = (self.data, self.weights, self.total)
        self.axes = [
            _Axis(
                loop.loop_var,
                int(loop.extent),
                *(step_of(place.indices[0], loop.loop_var) for place in places),
            )
            for loop in found.loops
        ]
        self.start = starts[self.total.buffer.name]

    def taps(self) -> tuple[Any, list[Any]]:
        """Return the call that replaces depthwise sums, and what comes first in the kernel."""
        channel = [axis for axis in self.axes if (axis.total, axis.data, axis.weights) == (1, 1, 1)]
        summed = [axis for axis in self.axes if axis.total == 0]
        if len(channel) != 1 or len(channel) + len(summed) != len(self.axes):
            raise _error(self.where)
        channels, places = channel[0].extent, [0]
        for axis in summed:
            if axis.data is None:
                raise _error(self.where)
            places = [at + axis.data * step for at in places for step in range(axis.extent)]
        before, place = _array("places", places)
        bias = self.start.value
        if isinstance(bias, TensorLoad):
            start = _first(bias.source)
        elif isinstance(bias, tirx.IntImm) and int(bias) == 0:
            more, start = _array("zeros", [0] * channels)
            before += more
        else:
            raise _error(self.where)
        arguments = [self._address(self.total), self._address(self.data), place]
        arguments += [self._address(self.weights), start]
        counts = [tirx.const(n, "uint32") for n in (len(places), channels)]
        return call(_TAPS, *arguments, *counts), before

    def rows(self, block: int) -> Any:
        """Return the statements that replace sums of products with all channels.

        Args:
            block: channels of a block.
        """
        pixel = [axis for axis in self.axes if axis.total != 0 and axis.weights == 0]
        channel = [axis for axis in self.axes if axis.total == 1 and axis.data == 0]
        summed = [axis for axis in self.axes if axis.total == 0]
        if (
            len(pixel) > 1
            or len(channel) > 1
            or len(self.axes) != sum(map(len, (pixel, channel, summed)))
        ):
            raise _error(self.where)
        pixels = pixel[0].extent if pixel else 1
        channels = channel[0].extent if channel else 1
        run, outer = 1, list[_Axis]()
        for axis in reversed(summed):
            if axis.data == run and not outer:
                run *= axis.extent
            else:
                outer.insert(0, axis)
        taps = run * math.prod(axis.extent for axis in outer)
        steps = -(-taps // STEP)
        column = tirx.decl_buffer((pixels * steps * STEP + STEP,), "int8", name="column")
        fills = [
            self._fill(column, pixel, at, at * steps * STEP, outer, run) for at in range(pixels)
        ]
        counts = [tirx.const(n, "uint32") for n in (steps, pixels, channels, block)]
        arguments = [self._address(self.total), _first(column), self._address(self.weights)]
        bias = self.start.value
        if isinstance(bias, TensorLoad):
            products = call(_PRODUCTS, *arguments, _first(bias.source), *counts)
        elif isinstance(bias, tirx.IntImm) and int(bias) == 0:
            products = call(_ONLY, *arguments, *counts)
        else:
            raise _error(self.where)
        return SeqStmt([AllocBuffer(column), *fills, products])

    def _fill(
        self, column: Any, pixel: list[_Axis], at: int, offset: int, outer: list[_Axis], run: int
    ) -> Any:
        """Return the loops that copy a pixel's window."""
        variables = [tirx.Var(f"f{number}", "int32") for number in range(len(outer))]
        values: dict[Any, Any] = dict(
            zip((axis.variable for axis in outer), variables, strict=True)
        )
        values |= {pixel[0].variable: at} if pixel else {}
        place: Any = tirx.const(offset, "int32")
        size = run
        for axis, variable in zip(reversed(outer), reversed(variables), strict=True):
            place = place + variable * tirx.const(size, "int32")
            size *= axis.extent
        target, source = tirx.address_of(column[place]), self._address(self.data, values)
        body: Any = call(_FILL, target, source, tirx.const(run, "uint32"))
        for axis, variable in zip(reversed(outer), reversed(variables), strict=True):
            body = For(variable, 0, axis.extent, ForKind.SERIAL, body)
        return body

    def _address(self, place: Any, values: Mapping[Any, Any] | None = None) -> Any:
        """Return the address of an element, at 0 of all loops without a value."""
        return address_of(place, {axis.variable: 0 for axis in self.axes} | dict(values or {}))


def _first(buffer: Any) -> Any:
    """Return the address of a buffer's first element."""
    return tirx.address_of(buffer[tirx.const(0, "int32")])


def _array(name: str, values: list[int]) -> tuple[list[Any], Any]:
    """Return the statements that make an array of int32, and its address."""
    buffer = tirx.decl_buffer((len(values),), "int32", name=name)
    numbers = [tirx.const(value, "int32") for value in values]
    stores = [BufferStore(buffer, n, [tirx.const(at, "int32")]) for at, n in enumerate(numbers)]
    return [AllocBuffer(buffer), *stores], _first(buffer)
