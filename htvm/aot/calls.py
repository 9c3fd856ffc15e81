"""Calls of the intrinsics of a core, in place of the loops that schedules have marked.

After lowering to flat buffers, the loops of a row of `htvm.aot.intrinsics` become calls of its
functions, behind copies of their operands where the row has columns.  TVM's own way,
``Schedule.tensorize``, crashes in the pinned version.  Loops over a run of bytes become calls of
``runtime_c/simd/htvm_runs.h``, element-wise loops those of `htvm.aot.lanes`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tvm_ffi
from tvm import sym, tirx
from tvm.ir import TensorLoad
from tvm.tirx.stmt import AllocBuffer, BufferStore, Evaluate, For, ForKind, SeqStmt

from byoc_dory.errors import UnsupportedError
from htvm.aot.fixed_point import SCALE
from htvm.aot.intrinsics import BLOCK_ENDINGS, PIXELS, Column, Depthwise, Products
from htvm.aot.lanes import FOUR, LANES, lanes_of
from htvm.aot.loops import (
    Axis,
    address_of,
    call,
    nest_of,
    products_of,
    statements_of,
    step_of,
    substituted,
    without_note,
)
from htvm.aot.rescale import Rescaling, rescaled_loops

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

    from htvm.aot.intrinsics import CoreKernels

PRODUCTS = "htvm_products"
"""Annotation of the outermost loop of a row's products: the row's name, then, behind ``:``, pixels
and channels of a block.  With columns for blocks of channels, it is the loop over these blocks, and
`SUMS` marks the products in it."""

SUMS = "htvm_sums"
"""Annotation of the outermost loop of a block's products."""

SCALED = "htvm_scaled"
"""Annotation of a loop over blocks of pixels that are multiplied with all channels and requantized
by one call, with the value of `PRODUCTS`; `SUMS` marks the products in it."""

START = "htvm_start"
"""Annotation of the outermost loop that sets the sums of all channels to 0 or to a bias."""

RESCALED = "htvm_rescaled"
"""Annotation of the loop over fours of channels that requantizes the sums of some pixels: their
number.  It becomes one call, if it computes what `htvm.aot.rescale` reads."""

WINDOWS = "htvm_windows"
"""Annotation of the outermost loop that requantizes whole rows of depthwise sums: the stride."""

POOL = "htvm_pool"
"""Annotation of the outermost loop that sums the window of a pool, for all channels of a pixel."""

RUN = "htvm_run"
"""Annotation of a loop that copies a run of bytes, or fills it with a constant."""

RUNS = "htvm_runs"
"""Annotation of a loop that copies runs of bytes, each followed by one with a constant."""

SHORT_RUN = 8
"""Bytes of a run that is short."""


def call_intrinsics(func: PrimFunc, core: CoreKernels) -> PrimFunc:
    """Replace marked loops over flat buffers by calls.

    Args:
        func: the function.
        core: its rows are those that loops are marked with.

    Raises:
        UnsupportedError: a marked loop is no sum of products that its row computes.
    """
    where = f"kernel '{(func.attrs or {}).get('global_symbol', '')}'"
    starts: dict[Any, Any] = {}
    first: list[Any] = []
    refused: list[UnsupportedError] = []

    def begin(loop: Any) -> Any:
        _, store = nest_of(loop)
        if START not in (loop.annotations or {}) or not isinstance(store, BufferStore):
            return loop
        starts[store.buffer.name] = store.value
        return Evaluate(tirx.const(0, "int32"))

    def visit(loop: Any) -> Any:
        notes = loop.annotations or {}
        if RESCALED in notes:
            return without_note(loop, RESCALED)
        if POOL in notes:
            return _pool(loop, starts, where)
        if RUN in notes:
            return loop if loop.loop_var in inner else _run(loop)
        if RUNS in notes:
            return _runs(loop)
        if LANES in notes:
            return lanes_of(loop, core.lanes)
        if SCALED in notes:
            return _scaled_block(loop, core, starts, where)
        return products(loop, str(notes[PRODUCTS])) if PRODUCTS in notes else loop

    def products(loop: Any, mark: str) -> Any:
        name, *block = mark.split(":")
        pixels, channels = map(int, block)
        row = core.row(name)
        if not isinstance(row, Products):
            return _Sums(loop, where).taps(row, starts, first)
        if row.whole:
            return _Sums(loop, where).in_place(row, starts, first)
        if row.column is None:
            return _Sums(loop, where).word(row)
        if row.column.whole:
            return _Sums(loop, where).whole(row, row.column, starts, channels)
        return _in_blocks(loop, row, row.column, pixels, channels, where)

    windows: dict[Any, _Sums] = {}

    def collect(loop: Any) -> Any:
        name = str((loop.annotations or {}).get(PRODUCTS, "")).partition(":")[0]
        if not name or getattr(core.row(name), "window", None) is None:
            return loop
        sums = _Sums(loop, where)
        windows[sums.total.buffer.name] = sums
        return Evaluate(tirx.const(0, "int32"))

    def rescale(loop: Any) -> Any:
        notes = loop.annotations or {}
        if WINDOWS in notes:
            return _windows(loop, windows, starts, where)
        return _rescale(loop, core.lanes) if RESCALED in notes else loop

    def kept(visit: Any) -> Any:
        def visited(loop: Any) -> Any:
            try:
                return visit(loop)
            except UnsupportedError as error:  # TVM would make it an error of its own
                refused.append(error)
                return loop

        return visited

    inner = _runs_within(func.body)
    body = tvm_ffi.structural_map(func.body, (For, begin))
    body = tvm_ffi.structural_map(body, (For, kept(collect)))
    body = tvm_ffi.structural_map(body, (For, kept(rescale)))
    body = tvm_ffi.structural_map(body, (For, kept(visit)))
    if refused:
        raise refused[0]
    return func.with_body(SeqStmt([*first, body]) if first else body)


def _run(loop: Any) -> Any:
    """Return the call that copies or fills a run of bytes."""
    store, zero, count = loop.body, {loop.loop_var: 0}, _number(loop.extent)
    target = address_of(store, zero)
    if isinstance(store.value, TensorLoad):
        return call("htvm_copy", target, address_of(store.value, zero), count)
    return call("htvm_fill", target, store.value, count)


def _rescale(loop: Any, lanes: int) -> Any:
    """Return the call that requantizes the sums of some pixels, or the loop if it does not."""
    pixels, found = int(loop.annotations[RESCALED]), rescaled_loops(loop)
    if found is not None and lanes > FOUR:
        return _rescale_rows(loop, pixels, *found)
    if found is None or found[1].bias is None:
        return loop
    (fours, *inner), made = found
    others = [other for other in inner if int(other.extent) > 1]
    channels = 4 * int(fours.extent)
    # (out, sum, multiplier, left shift, bias) of a step to the next four, lane and pixel.
    wanted = {4: (4, 4 * pixels, 4, 4, 4), 1: (1, 1, 1, 1, 1)}
    if pixels > 1:
        wanted[pixels] = (channels, 4, 0, 0, 0)
    each = [(1 if LANES in other.annotations else pixels, other) for other in others]
    steps = {what: made.steps(other.loop_var) for what, other in [(4, fours), *each]}
    if steps != wanted:
        return loop
    zeros = {other.loop_var: 0 for other in found[0]}
    places = (made.out, made.total, made.bias, made.multiplier, made.shift)
    numbers = [_number(pixels), _number(channels)]
    limits = [tirx.const(limit, "int32") for limit in (made.zero_point, made.low, made.high)]
    operands = [address_of(place, zeros) for place in places]
    return call("htvm_rescale_all", *operands, *numbers, *limits)


def _rescale_rows(loop: Any, pixels: int, loops: Sequence[Any], made: Rescaling) -> Any:
    """Return the call for sums of which all channels of a pixel are neighbours, or the loop."""
    outer, *others = loops
    lanes = [int(other.extent) for other in others if LANES in other.annotations]
    if len(lanes) != 1 or made.bias is not None:
        return loop
    channels = lanes[0] * int(outer.extent)
    for each in loops:
        lane, pixel = LANES in each.annotations, each is not outer
        # (out, sum, multiplier, left shift, bias) of a step.
        wanted = (1, 1, 1, 1) if lane else (channels, channels, 0, 0) if pixel else (lanes[0],) * 4
        if each.extent > 1 and made.steps(each.loop_var) != (*wanted, None):
            return loop
    zeros = {each.loop_var: 0 for each in loops}
    operands = [
        address_of(place, zeros) for place in (made.out, made.total, made.multiplier, made.shift)
    ]
    numbers = [_number(pixels), _number(channels)]
    limits = [tirx.const(limit, "int32") for limit in (made.zero_point, made.low, made.high)]
    return call("htvm_vectors_rescale", *operands, *numbers, *limits)


def _runs_within(body: Any) -> set[Any]:
    """Return the variables of runs that are parts of `RUNS`."""
    found: set[Any] = set()

    def visit(loop: Any) -> None:
        if RUNS in (loop.annotations or {}):
            found.update(each.loop_var for each in statements_of(loop.body))

    tvm_ffi.structural_walk(body, (For, visit))
    return found


def _runs(loop: Any) -> Any:
    """Return the call that copies runs of bytes, each followed by a constant."""
    copied, filled = statements_of(loop.body)
    first = {each.loop_var: 0 for each in (loop, copied)}
    sizes = [_number(each.extent) for each in (loop, copied, filled)]
    store = copied.body
    operands = [address_of(store, first), address_of(store.value, first)]
    return call("htvm_copy_runs", *operands, *sizes, filled.body.value)


def _windows(loop: Any, windows: Mapping[Any, _Sums], starts: Mapping[Any, Any], where: str) -> Any:
    """Return the call that computes whole rows of depthwise sums and requantizes them."""
    stride, found = int(loop.annotations[WINDOWS]), rescaled_loops(loop)
    sums = None if found is None else windows.get(found[1].total.source.name)
    if found is None or sums is None or found[1].bias is None or sums.bias(starts):
        raise _error(where)
    loops, made = found
    pixels = [axis for axis in sums.axes if axis.total and axis.weights == 0]
    channels, width = (int(each.extent) for each in reversed(loops[-2:]))
    row = {1: 2, 2: 1}[stride]
    # Outer loops of the sums: of rows at stride 1, and of columns.
    steps = [axis.data for axis in pixels]
    pitch = next(axis.data for axis in sums.summed if axis.weights == 3 * channels)
    wanted = [pitch, stride * channels][2 - len(pixels) :]
    places = [made.steps(each.loop_var) for each in loops]
    rows = [(width * channels, width * channels, 0, 0, 0)][: row - 1]
    if (
        steps != wanted
        or places != [*rows, (channels, channels, 0, 0, 0), (1, 1, 1, 1, 1)]
        or not made.is_unlimited
        or pitch is None
    ):
        raise _error(where)
    quads = tirx.decl_buffer(((width * stride + 2) * channels,), "uint32", name="quads")
    zeros = {each.loop_var: 0 for each in loops}
    operands = [address_of(made.out, zeros), sums.place(sums.data), _first(quads)]
    operands.append(sums.place(sums.weights))
    operands += [address_of(each, zeros) for each in (made.bias, made.multiplier, made.shift)]
    numbers = [_number(each) for each in (pitch, channels, width, stride)]
    zero_point = tirx.const(made.zero_point, "int32")
    return SeqStmt([AllocBuffer(quads), call("htvm_nines", *operands, *numbers, zero_point)])


def _error(where: str) -> UnsupportedError:
    return UnsupportedError("a loop is no sum of the products that it is marked for", where=where)


def _pool(loop: Any, starts: Mapping[Any, Any], where: str) -> Any:
    """Return the call that sums a window, for all channels of a pixel."""
    loops, store = nest_of(loop)
    added = getattr(getattr(store, "value", None), "b", None)
    load = getattr(added, "value", None)
    if not isinstance(store, BufferStore) or not isinstance(load, TensorLoad):
        raise _error(where)
    begin = starts.get(store.buffer.name)
    if not isinstance(begin, tirx.IntImm) or int(begin):
        raise _error(where)
    steps = {
        each.loop_var: tuple(step_of(p.indices[0], each.loop_var) for p in (store, load))
        for each in loops
        if int(each.extent) > 1
    }
    extents = {each.loop_var: int(each.extent) for each in loops}
    channel = [variable for variable, step in steps.items() if step == (1, 1)]
    summed = [variable for variable, step in steps.items() if step[0] == 0 and step[1]]
    if len(channel) != 1 or len(summed) > 2 or len(steps) != 1 + len(summed):
        raise _error(where)
    # (pixels, elements to the next) of rows and of columns.
    sides = [(1, 0)] * (2 - len(summed)) + [(extents[each], steps[each][1]) for each in summed]
    numbers = [number for side in sides for number in side] + [extents[channel[0]]]
    zeros = dict.fromkeys(extents, 0)
    operands = [address_of(place, zeros) for place in (store, load)]
    return call("htvm_pool_sums", *operands, *map(_number, numbers))


def _in_blocks(
    loop: Any, row: Products, column: Column, pixels: int, channels: int, where: str
) -> Any:
    """Return a loop over blocks of channels with calls in it, behind the column that they read."""
    before, products = _Sums(_sums_in(loop, where), where).block(row, column, pixels, channels)

    def called(inner: Any) -> Any:
        return products if SUMS in (inner.annotations or {}) else inner

    body = tvm_ffi.structural_map(loop.body, (For, called))
    return SeqStmt([*before, without_note(loop, PRODUCTS, body)])


def _scaled_block(loop: Any, core: CoreKernels, starts: Mapping[Any, Any], where: str) -> Any:
    """Return what a loop becomes whose sums are requantized by the call that computes them."""
    name, *numbers = str(loop.annotations[SCALED]).split(":")
    row, block = core.row(name), (int(numbers[0]), int(numbers[1]))
    sums = _Sums(_sums_in(loop, where), where)
    loops, store = nest_of(list(statements_of(loop.body))[-1])
    found = Rescaling.of(store, SCALE)
    bias = sums.bias(starts)
    if found is None or found.bias is not None or not bias:
        raise _error(where)
    around = [loop] if isinstance(row, Depthwise) else []  # the loop over channels
    zeros = {each.loop_var: 0 for each in (*loops, *around)}
    factors = [address_of(load, zeros) for load in (found.multiplier, found.shift)]
    out, zero = address_of(store, zeros), tirx.const(found.zero_point)
    if isinstance(row, Depthwise):
        function = f"{row.name}{block[0]}_{block[1]}"
        x, weights, *sizes = sums.of_channel(loop.loop_var, *block)
        return call(function, out, x, weights, *bias, *factors, *sizes, zero)
    apart = [step_of(store.indices[0], each.loop_var) for each in loops]
    if row.column is None or len(apart) != (2 if block[0] > 1 else 1) or apart[-1] != 1:
        raise _error(where)
    channels = math.prod(axis.extent for axis in sums.channel)
    before, words, operands = sums.columns(row, row.column, block[0], channels)
    sizes = [words, *map(_number, (channels, *apart[:-1]))]
    function = f"{row.name}scaled_{PIXELS[block[0]]}{'_alike' if found.alike else ''}"
    made = call(function, out, *operands, *bias, *factors, *sizes, zero)
    return without_note(loop, SCALED, SeqStmt([*before, made]))


def _sums_in(loop: Any, where: str) -> Any:
    """Return the loop in another one that `SUMS` marks."""
    found: list[Any] = []

    def collect(inner: Any) -> None:
        if SUMS in (inner.annotations or {}):
            found.append(inner)

    tvm_ffi.structural_walk(loop.body, (For, collect))
    if len(found) != 1:
        raise _error(where)
    return found[0]


class _Sums:
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
            raise _error(where)
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
            raise _error(self.where)
        operands = [self._load(row, operand, axis) for operand in (self.data, self.weights)]
        value = tirx.call_extern("int32", row.name, *operands, total.a)
        return BufferStore(self.total.buffer, value, self.total.indices)

    def _load(self, row: Products, load: Any, axis: Axis) -> Any:
        """Return the load of an operand's word, whose type has as many bytes."""
        if str(load.ty.dtype) != "int8" or len(load.indices) != 1:
            raise _error(self.where)
        first = substituted(load.indices[0], {axis.variable: 0})
        aligned = sym.Analyzer().can_prove_equal(tirx.floormod(first, row.width), 0)
        name = row.load if aligned else f"{row.load}_any"
        address = address_of(load, {axis.variable: 0})
        return tirx.call_extern(f"uint{8 * row.width}", name, address)

    def block(
        self, row: Products, column: Column, pixels: int, channels: int
    ) -> tuple[list[Any], Any]:
        """Return the statements that fill a block's column, and the call that multiplies it."""
        before, number, operands = self.columns(row, column, pixels, channels)
        function = row.name + BLOCK_ENDINGS[pixels, channels]
        if column.long is not None and int(number) >= column.long and (pixels, channels) == (2, 2):
            function += "_long"
        return before, call(function, self.place(self.total), *operands, number)

    def columns(
        self, row: Products, column: Column, pixels: int, channels: int
    ) -> tuple[list[Any], Any, list[Any]]:
        """Return the statements that fill a column, its words, and the addresses of operands.

        Args:
            row, column: the row and how its operands are copied.
            pixels, channels: of the sums.
        """
        tile = [axis.extent for axis in (*self.pixel, *self.channel)]
        if (
            len(self.summed) < 2
            or self.summed[-1].extent != row.width
            or tile != [size for size in (pixels, channels) if size > 1]
            or len(self.axes) != len(tile) + len(self.summed)
        ):
            raise _error(self.where)
        # Words of a run are side by side in the data; runs begin anywhere.
        run, outer = _run_of(self.summed[-2:])
        outer = [*self.summed[:-2], *outer]
        words, each = run // row.width, column.words * pixels
        number = words * math.prod(axis.extent for axis in outer)
        size, extra = number * each, pixels if column.lifted else 0
        buffer = tirx.decl_buffer((size + extra,), column.dtype, name="column")
        tail = [_number(words), *([_first(buffer, size)] if extra else [])]
        fill = self._fill(buffer, outer, words * each, column.fill[pixels - 1], range(pixels), tail)
        operands = [_first(buffer), self.place(self.weights)]
        clear = [
            BufferStore(buffer, tirx.const(0, column.dtype), [tirx.const(size + at, "int32")])
            for at in range(extra)
        ]
        return [AllocBuffer(buffer), *clear, fill], _number(number), operands

    def whole(self, row: Products, column: Column, starts: Mapping[Any, Any], block: int) -> Any:
        """Return the statements that multiply the windows of some pixels with all channels.

        Args:
            row, column: the row and how its operands are copied.
            starts: what sums begin with, by the names of their buffers.
            block: channels of a block.
        """
        known = (*self.pixel, *self.channel, *self.summed)
        if len(self.pixel) > 1 or len(self.channel) > 1 or len(self.axes) != len(known):
            raise _error(self.where)
        pixels, channels = (axes[0].extent if axes else 1 for axes in (self.pixel, self.channel))
        if self.bias(starts):
            raise _error(self.where)
        run, around = _run_of(self.summed)
        outer = [axis for axis in around if axis.extent > 1]
        steps = -(-run * math.prod(axis.extent for axis in outer) // row.width)
        each = steps * column.words
        counts = [_number(n) for n in (steps, pixels, channels, block)]
        function = f"{row.name}products"
        if not outer and run == each and (pixels == 1 or self.pixel[0].data == run):
            # The input is such a column.
            operands = [self.place(place) for place in (self.total, self.data, self.weights)]
            return call(function, *operands, *counts)
        buffer = tirx.decl_buffer((pixels * each,), column.dtype, name="column")
        fill = self._windows(buffer, outer, run, each, column.fill[pixels - 1], pixels)
        operands = [self.place(self.total), _first(buffer), self.place(self.weights)]
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
            raise _error(self.where)
        fresh = {axis.variable: tirx.Var(f"f{at}", "int32") for at, axis in enumerate(around)}
        place, size = tirx.const(0, "int32"), rows * run
        for axis in reversed(around):
            place = place + fresh[axis.variable] * tirx.const(size, "int32")
            size *= axis.extent
        sources = [
            self.place(self.data, {axis.variable: pixel for axis in self.pixel} | fresh)
            for pixel in range(pixels)
        ]
        room = tirx.Cast("uint32", tirx.const(each, "int32") - place)
        numbers = [*map(_number, (rows, pitch, run, each)), room]
        body: Any = call(function, tirx.address_of(column[place]), *sources, *numbers)
        for axis in reversed(around):
            variable, notes = fresh[axis.variable], axis.notes
            body = For(variable, 0, axis.extent, ForKind.SERIAL, body, annotations=notes)
        return body

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
            raise _error(self.where)
        pixels, channels = (axes[0].extent if axes else 1 for axes in (pixel, channel))
        step = channels
        for axis in reversed(summed):
            if axis.weights != step:
                raise _error(self.where)
            step *= axis.extent
        run, outer = _run_of(summed)
        begins = [0]
        for axis in outer:
            if axis.data is None:
                raise _error(self.where)
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
            _first(self.data.source),
            _first(places),
            self.place(self.weights),
            _array("starts", begins, first),
        ]
        counts = [_number(n) for n in (len(begins), run, pixels, channels)]
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
        tail: Sequence[Any],
    ) -> Any:
        """Return the loops that copy operands into a column.

        Args:
            column: the buffer.
            outer: the loops around a copy, outermost first.
            size: elements of the column that one copy fills.
            function: copies.
            pixels: whose operands are copied at once.
            tail: arguments of the function behind the addresses.
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
        body: Any = call(function, tirx.address_of(column[place]), *sources, *tail)
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
            raise _error(self.where)
        channels, places = channel[0].extent, [0]
        if any(axis.total != channels or axis.data is None for axis in pixel):
            raise _error(self.where)
        for axis in self.summed:
            if axis.data is None:
                raise _error(self.where)
            places = [at + axis.data * step for at in places for step in range(axis.extent)]
        place = _array("places", places, first)
        bias = self.bias(starts) or [_array("zeros", [0] * channels, first)]
        operands = [self.place(self.total), self.place(self.data), place]
        operands += [self.place(self.weights), *bias]
        line = [1, channels] if not pixel else [pixel[0].extent, pixel[0].data]
        numbers = [len(places), *([] if row.group else line), channels]
        return call(row.name, *operands, *map(_number, numbers))

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
            raise _error(self.where)
        operands = [self.place(each, {channel: 0}) for each in (self.data, self.weights)]
        return [*operands, _number(channels), _number(row)]

    def bias(self, starts: Mapping[Any, Any]) -> list[Any]:
        """Return the address of the bias that the sums begin with; nothing if that is 0."""
        bias = starts.get(self.total.buffer.name)
        if isinstance(bias, TensorLoad):
            return [_first(bias.source)]
        if isinstance(bias, tirx.IntImm) and int(bias) == 0:
            return []
        raise _error(self.where)

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


def _first(buffer: Any, place: int = 0) -> Any:
    """Return the address of a buffer's element, by default the first."""
    return tirx.address_of(buffer[tirx.const(place, "int32")])


def _number(count: Any) -> Any:
    return tirx.const(int(count), "uint32")


def _array(name: str, values: list[int], first: list[Any]) -> Any:
    """Return the address of an array of int32, whose statements are added to ``first``."""
    buffer = tirx.decl_buffer((len(values),), "int32", name=name)
    numbers = [tirx.const(value, "int32") for value in values]
    stores = [BufferStore(buffer, n, [tirx.const(at, "int32")]) for at, n in enumerate(numbers)]
    first += [AllocBuffer(buffer), *stores]
    return _first(buffer)
