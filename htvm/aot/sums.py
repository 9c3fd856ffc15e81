"""`Sums`: a loop of products over flat buffers, and the calls that compute it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import sym, tirx
from tvm.ir import TensorLoad
from tvm.tirx.stmt import AllocBuffer, BufferStore, For, ForKind, SeqStmt

from byoc_dory.errors import UnsupportedError
from htvm.aot.intrinsics import BLOCK_ENDINGS, Column, Depthwise, Products, image_words
from htvm.aot.loops import Axis, address_of, call, products_of, substituted


class Sums:
    """The sums of products that a marked loop computes.

    Args:
        loop: the loop.
        where: for messages.

    Raises:
        UnsupportedError: it computes something else.
    """

    def __init__(self, loop: Any, where: str) -> None:
        self.where = where
        found = products_of(loop)
        if found is None:
            raise wrong_loop(where)
        self.total, self.data, self.weights = found.total, found.data, found.weights
        self.axes = found.axes
        self.summed = [axis for axis in self.axes if axis.total == 0]
        self.pixel = [axis for axis in self.axes if axis.total != 0 and axis.weights == 0]
        self.channel = [axis for axis in self.axes if axis.total == 1 and axis.data == 0]

    def word(self, row: Products) -> Any:
        """Return the store of a sum to which the products of a word are added."""
        (axis, *others), total = self.axes, self.total.value
        unit = (axis.extent, axis.data, axis.weights, axis.total) == (row.width, 1, 1, 0)
        if others or not unit or str(total.ty.dtype) != "int32":
            raise wrong_loop(self.where)
        operands = [self._load(row, operand, axis) for operand in (self.data, self.weights)]
        value = tirx.call_extern("int32", row.name, *operands, total.a)
        return BufferStore(self.total.buffer, value, self.total.indices)

    def _load(self, row: Products, load: Any, axis: Axis) -> Any:
        """Return the load of an operand's word, whose type has as many bytes."""
        if str(load.ty.dtype) != "int8" or len(load.indices) != 1:
            raise wrong_loop(self.where)
        first = substituted(load.indices[0], {axis.variable: 0})
        aligned = sym.Analyzer().can_prove_equal(tirx.floormod(first, row.width), 0)
        name = row.load if aligned else f"{row.load}_any"
        address = address_of(load, {axis.variable: 0})
        return tirx.call_extern(f"uint{8 * row.width}", name, address)

    def block(
        self, row: Products, column: Column, pixels: int, channels: int, turn: Any
    ) -> tuple[list[Any], Any]:
        """Return the statements that fill a block's column, and the call that multiplies it.

        Args:
            row, column: the row and how its operands are copied.
            pixels, channels: of the block.
            turn: variable of the loop over blocks of channels.
        """
        before, count, operands = self.columns(row, column, pixels, channels, turn)
        function = row.name + BLOCK_ENDINGS[pixels, channels]
        if column.long is not None and int(count) >= column.long and (pixels, channels) == (2, 2):
            function += "_long"
        return before, call(function, self.place(self.total), *operands, count)

    def columns(
        self,
        row: Products,
        column: Column,
        pixels: int,
        channels: int,
        turn: Any = 0,
        *,
        paired: bool = False,
    ) -> tuple[list[Any], Any, list[Any]]:
        """Return the statements that fill a column, its words, and the addresses of operands.

        Args:
            row, column: the row and how its operands are copied.
            pixels, channels: of the sums.
            turn: which block of channels these are.
            paired: whether more pixels than a column has are in pairs.
        """
        tile = [axis.extent for axis in (*self.pixel, *self.channel)]
        wanted = [size for size in (pixels, channels) if size > 1]
        if tile != wanted or len(self.axes) != len(tile) + len(self.summed):
            raise wrong_loop(self.where)
        if self.summed[-1].extent != row.width:
            return self._gathered(row, column, pixels, channels, turn)
        if len(self.summed) < 2:
            raise wrong_loop(self.where)
        # Words of a run are side by side in the data; runs begin anywhere.
        run, outer = _run_of(self.summed[-2:])
        outer = [*self.summed[:-2], *outer]
        if pixels > len(column.fill) and paired:
            # In pairs, one column for two behind the other.
            if outer:
                raise wrong_loop(self.where)
            return self._pairs(row, column, pixels, run)
        if pixels > len(column.fill):
            # The pixels of a row are side by side, too.
            if outer or self.pixel[0].data != run:
                raise wrong_loop(self.where)
            run, pixels = run * pixels, 1
        words, each = run // row.width, column.words * pixels
        total = words * math.prod(axis.extent for axis in outer)
        size, extra = total * each, pixels if column.lifted else 0
        buffer = tirx.decl_buffer((size + extra,), column.dtype, name="column")
        last = [number(words), *([first_of(buffer, size)] if extra else [])]
        fill = self._fill(
            buffer, outer, words * each, column.fill[pixels - 1], range(pixels), lambda _: last
        )
        operands = [first_of(buffer), self.place(self.weights)]
        clear = [
            BufferStore(buffer, tirx.const(0, column.dtype), [tirx.const(size + at, "int32")])
            for at in range(extra)
        ]
        return [AllocBuffer(buffer), *clear, fill], number(total), operands

    def _pairs(
        self, row: Products, column: Column, pixels: int, run: int
    ) -> tuple[list[Any], Any, list[Any]]:
        """Return the same as `columns` for pairs of pixels whose runs have so many elements."""
        words = run // row.width
        each = 2 * words * column.words
        buffer = tirx.decl_buffer((pixels // 2 * each,), column.dtype, name="column")
        pair, variable = tirx.Var("p", "int32"), self.pixel[0].variable
        sources = [self.place(self.data, {variable: 2 * pair + at}) for at in range(2)]
        place = tirx.address_of(buffer[pair * each])
        body = call(column.fill[1], place, *sources, number(words))
        fill = For(pair, 0, pixels // 2, ForKind.SERIAL, body)
        return (
            [AllocBuffer(buffer), fill],
            number(words),
            [first_of(buffer), self.place(self.weights)],
        )

    def _gathered(
        self, row: Products, column: Column, pixels: int, channels: int, turn: Any
    ) -> tuple[list[Any], Any, list[Any]]:
        """Return the same as `columns` for windows that are copied before they become a column."""
        run, outer = _run_of(self.summed)
        rows = [axis for axis in outer if axis.extent > 1]
        high, pitch = (rows[0].extent, rows[0].data) if rows else (1, 0)
        if not column.window or len(rows) > 1 or pitch is None:
            raise wrong_loop(self.where)
        if pixels > len(column.fill):
            if (high, run, self.pixel[0].data) != (3, 9, 6) or not column.image:
                raise wrong_loop(self.where)
            buffer = tirx.decl_buffer((image_words(pixels),), column.dtype, name="column")
            operands = [first_of(buffer), self.place(self.weights)]
            fill = call(
                column.image, operands[0], self.place(self.data), *map(number, (pixels, pitch))
            )
            return [AllocBuffer(buffer), fill], number(pixels), operands
        words = -(-high * run // row.width)
        size = words * row.width
        window = tirx.decl_buffer((pixels * size,), "int8", name="window")
        buffer = tirx.decl_buffer((pixels * words * column.words,), column.dtype, name="column")
        sizes = [number(each) for each in (high, pitch, run, size)]
        places = [first_of(window, at * size) for at in range(pixels)]
        copies = [
            call(
                column.window,
                to,
                self.place(self.data, {each.variable: at for each in self.pixel}),
                *sizes,
            )
            for at, to in enumerate(places)
        ]
        fill = call(column.fill[pixels - 1], first_of(buffer), *places, number(words))
        weights = tirx.address_of(self.weights.source[turn * tirx.const(size * channels, "int32")])
        statements = [AllocBuffer(window), AllocBuffer(buffer), *copies, fill]
        return statements, number(words), [first_of(buffer), weights]

    def whole(self, row: Products, column: Column, starts: Mapping[Any, Any], block: int) -> Any:
        """Return the statements that multiply the windows of some pixels with all channels.

        Args:
            row, column: the row and how its operands are copied.
            starts: what sums begin with, by the names of their buffers.
            block: channels of a block.
        """
        known = (*self.pixel, *self.channel, *self.summed)
        if len(self.pixel) > 1 or len(self.channel) > 1 or len(self.axes) != len(known):
            raise wrong_loop(self.where)
        pixels, channels = (axes[0].extent if axes else 1 for axes in (self.pixel, self.channel))
        if self.bias(starts):
            raise wrong_loop(self.where)
        run, around = _run_of(self.summed)
        outer = [axis for axis in around if axis.extent > 1]
        steps = -(-run * math.prod(axis.extent for axis in outer) // row.width)
        each = steps * column.words
        counts = [number(n) for n in (steps, pixels, channels, block)]
        function = f"{row.name}products"
        if not outer and run == each and (pixels == 1 or self.pixel[0].data == run):
            # The input is such a column.
            operands = [self.place(place) for place in (self.total, self.data, self.weights)]
            return call(function, *operands, *counts)
        buffer = tirx.decl_buffer((pixels * each,), column.dtype, name="column")
        fill = self._windows(buffer, outer, run, each, column.fill[pixels - 1], pixels)
        operands = [self.place(self.total), first_of(buffer), self.place(self.weights)]
        return SeqStmt([AllocBuffer(buffer), fill, call(function, *operands, *counts)])

    def _windows(
        self, column: Any, outer: Sequence[Axis], run: int, each: int, function: str, pixels: int
    ) -> Any:
        """Return the call that copies the windows of some pixels into a column, maybe in loops.

        Args:
            column: the buffer.
            outer: the loops around a run of the data, outermost first; the call has the last one.
            run: elements that are side by side.
            each: elements of the column for each pixel.
            function: copies.
            pixels: whose windows are copied at once.
        """
        around, last = outer[:-1], outer[-1] if outer else None
        rows, pitch = (1, 0) if last is None else (last.extent, last.data)
        if pitch is None:
            raise wrong_loop(self.where)

        def tail(place: Any) -> list[Any]:
            room = tirx.Cast("uint32", tirx.const(each, "int32") - place)
            return [*map(number, (rows, pitch, run, each)), room]

        return self._fill(column, around, rows * run, function, range(pixels), tail)

    def in_place(self, row: Products, starts: Mapping[Any, Any], first: list[Any]) -> Any:
        """Return the statements that multiply the windows of some pixels with all channels.

        Args:
            row: the row.
            starts: what sums begin with, by the names of their buffers.
            first: receives the statements that come first in the kernel.
        """
        pixel, channel, summed = (
            [axis for axis in axes if axis.extent > 1]
            for axes in (self.pixel, self.channel, self.summed)
        )
        turning = [axis for axis in self.axes if axis.extent > 1]
        if max(len(pixel), len(channel)) > 1 or len(turning) != len(pixel + channel + summed):
            raise wrong_loop(self.where)
        pixels, channels = (axes[0].extent if axes else 1 for axes in (pixel, channel))
        step = channels
        for axis in reversed(summed):
            if axis.weights != step:
                raise wrong_loop(self.where)
            step *= axis.extent
        run, outer = _run_of(summed)
        begins = [0]
        for axis in outer:
            if axis.data is None:
                raise wrong_loop(self.where)
            begins = [at + axis.data * turn for at in begins for turn in range(axis.extent)]
        places = tirx.decl_buffer((pixels,), "int32", name="places")
        rest = {axis.variable: 0 for axis in self.axes}
        analyzer = sym.Analyzer()
        fill = []
        for at in range(pixels):
            values = rest | {axis.variable: at for axis in pixel}
            place = analyzer.simplify(substituted(self.data.indices[0], values))
            if str(place.ty.dtype) != "int32":
                place = tirx.Cast("int32", place)
            fill.append(BufferStore(places, place, [tirx.const(at, "int32")]))
        operands = [
            self.place(self.total),
            first_of(self.data.source),
            first_of(places),
            self.place(self.weights),
            array_of("starts", begins, first),
        ]
        counts = [number(n) for n in (len(begins), run, pixels, channels)]
        bias = self.bias(starts)
        function = f"{row.name}products" if bias else f"{row.name}only_products"
        return SeqStmt([AllocBuffer(places), *fill, call(function, *operands, *bias, *counts)])

    def _fill(
        self,
        column: Any,
        outer: Sequence[Axis],
        size: int,
        function: str,
        pixels: Sequence[int],
        tail: Callable[[Any], Sequence[Any]],
    ) -> Any:
        """Return the loops that copy operands into a column.

        Args:
            column: the buffer.
            outer: the loops around a copy, outermost first.
            size: elements of the column that one copy fills.
            function: copies.
            pixels: whose operands are copied at once.
            tail: of a place in the column, the function's arguments behind the addresses.
        """
        fresh = {axis.variable: tirx.Var(f"f{at}", "int32") for at, axis in enumerate(outer)}
        place: Any = tirx.const(0, "int32")
        for axis in reversed(outer):
            place = place + fresh[axis.variable] * tirx.const(size, "int32")
            size *= axis.extent
        sources = [
            self.place(self.data, {each.variable: pixel for each in self.pixel} | fresh)
            for pixel in pixels
        ]
        body: Any = call(function, tirx.address_of(column[place]), *sources, *tail(place))
        for axis in reversed(outer):
            variable, notes = fresh[axis.variable], axis.notes
            body = For(variable, 0, axis.extent, ForKind.SERIAL, body, annotations=notes)
        return body

    def taps(self, row: Depthwise, starts: Mapping[Any, Any], first: list[Any]) -> Any:
        """Return the call that computes depthwise sums of all channels, of a pixel or of a row.

        Args:
            row: the row.
            starts: what sums begin with, by the names of their buffers.
            first: receives the statements that come first in the kernel.
        """
        channel = [axis for axis in self.axes if (axis.total, axis.data, axis.weights) == (1, 1, 1)]
        pixel = [] if row.group else [axis for axis in self.pixel if axis.extent > 1]
        known = len(channel) + len(pixel) + len(self.summed)
        turning = [axis for axis in self.axes if axis.extent > 1 or axis in self.summed]
        if len(channel) != 1 or len(pixel) > 1 or known != len(turning):
            raise wrong_loop(self.where)
        channels, places = channel[0].extent, [0]
        if any(axis.total != channels or axis.data is None for axis in pixel):
            raise wrong_loop(self.where)
        for axis in self.summed:
            if axis.data is None:
                raise wrong_loop(self.where)
            places = [at + axis.data * step for at in places for step in range(axis.extent)]
        place = array_of("places", places, first)
        bias = self.bias(starts) or [array_of("zeros", [0] * channels, first)]
        operands = [self.place(self.total), self.place(self.data), place]
        operands += [self.place(self.weights), *bias]
        line = [1, channels] if not pixel else [pixel[0].extent, pixel[0].data]
        numbers = [len(places), *([] if row.group else line), channels]
        return call(row.name, *operands, *map(number, numbers))

    def of_channel(self, channel: Any, pixels: int, stride: int) -> list[Any]:
        """Return the addresses of operands at the first channel, the channels, a row's elements.

        Args:
            channel: variable of the loop over channels.
            pixels, stride: of the block.
        """
        axes = [axis for axis in self.axes if axis.extent > 1]
        step, row, channels = ([axis.data for axis in axes] + [None] * 3)[:3]
        whole = [axis.extent for axis in axes] == [pixels, 3, 3]
        if not whole or row is None or channels is None or step != stride * channels:
            raise wrong_loop(self.where)
        operands = [self.place(each, {channel: 0}) for each in (self.data, self.weights)]
        return [*operands, number(channels), number(row)]

    def of_band(self, how: Depthwise, group: Any, rows: int, stride: int) -> list[Any]:
        """Return a buffer for pairs of columns, the addresses of operands at the first channel, the
        channels, a row's elements, and the output's rows and columns.

        Args:
            how: computes it.
            group: variable of the loop over groups of channels.
            rows, stride: of the band.
        """
        axes = [axis for axis in self.axes if axis.extent > 1]
        steps, extents = [axis.data for axis in axes], [axis.extent for axis in axes]
        if rows == 1:
            steps, extents = [0, *steps], [1, *extents]
        down, across, own, row, channels = (steps + [None] * 5)[:5]
        if extents[:1] + extents[2:] != [rows, how.band, 3, 3] or row is None or channels is None:
            raise wrong_loop(self.where)
        if (down, across, own) != (stride * row * (rows > 1), stride * channels, 1):
            raise wrong_loop(self.where)
        width = extents[1]
        pairs = tirx.decl_buffer((how.pairs(rows, width, stride),), "uint32", name="pairs")
        operands = [self.place(each, {group: 0}) for each in (self.data, self.weights)]
        return [pairs, *operands, *map(number, (channels, row, rows, width))]

    def bias(self, starts: Mapping[Any, Any]) -> list[Any]:
        """Return the address of the bias that the sums begin with; nothing if that is 0."""
        bias = starts.get(self.total.buffer.name)
        if isinstance(bias, TensorLoad):
            return [first_of(bias.source)]
        if isinstance(bias, tirx.IntImm) and int(bias) == 0:
            return []
        raise wrong_loop(self.where)

    def place(self, place: Any, values: Mapping[Any, Any] | None = None) -> Any:
        """Return the address of an element, at 0 of all loops without a value."""
        return address_of(place, {axis.variable: 0 for axis in self.axes} | dict(values or {}))


def _run_of(summed: Sequence[Axis]) -> tuple[int, list[Axis]]:
    """Return how many elements of the data are side by side, and the loops around these."""
    run, outer = 1, list[Axis]()
    for axis in reversed(summed):
        if axis.data == run and not outer:
            run *= axis.extent
        else:
            outer.insert(0, axis)
    return run, outer


def first_of(buffer: Any, place: int = 0) -> Any:
    """Return the address of a buffer's element, by default the first."""
    return tirx.address_of(buffer[tirx.const(place, "int32")])


def number(count: Any) -> Any:
    return tirx.const(int(count), "uint32")


def array_of(name: str, values: list[int], first: list[Any]) -> Any:
    """Return the address of an array of int32, whose statements are added to ``first``."""
    buffer = tirx.decl_buffer((len(values),), "int32", name=name)
    numbers = [tirx.const(value, "int32") for value in values]
    stores = [BufferStore(buffer, n, [tirx.const(at, "int32")]) for at, n in enumerate(numbers)]
    first += [AllocBuffer(buffer), *stores]
    return first_of(buffer)


def wrong_loop(where: str) -> UnsupportedError:
    return UnsupportedError("a loop is no sum of the products that it is marked for", where=where)
