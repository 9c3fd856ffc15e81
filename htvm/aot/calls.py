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
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx.stmt import AllocBuffer, BufferStore, Evaluate, For, SeqStmt

from byoc_dory.errors import UnsupportedError
from htvm.aot.fixed_point import SCALE
from htvm.aot.intrinsics import IMAGE, PAIRED, PIXELS, ROW, Column, Depthwise, Products
from htvm.aot.lanes import FOUR, LANES, lanes_of
from htvm.aot.loops import (
    address_of,
    call,
    nest_of,
    statements_of,
    step_of,
    without_note,
)
from htvm.aot.rescale import Rescaling, rescaled_loops
from htvm.aot.sums import Sums, first_of, number, wrong_loop

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
            return Sums(loop, where).taps(row, starts, first)
        if row.whole:
            return Sums(loop, where).in_place(row, starts, first)
        if row.column is None:
            return Sums(loop, where).word(row)
        if row.column.whole:
            return Sums(loop, where).whole(row, row.column, starts, channels)
        return _in_blocks(loop, row, row.column, pixels, channels, where)

    windows: dict[Any, Sums] = {}

    def collect(loop: Any) -> Any:
        name = str((loop.annotations or {}).get(PRODUCTS, "")).partition(":")[0]
        if not name or getattr(core.row(name), "window", None) is None:
            return loop
        sums = Sums(loop, where)
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
    store, zero, count = loop.body, {loop.loop_var: 0}, number(loop.extent)
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
    numbers = [number(pixels), number(channels)]
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
    numbers = [number(pixels), number(channels)]
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
    sizes = [number(each.extent) for each in (loop, copied, filled)]
    store = copied.body
    operands = [address_of(store, first), address_of(store.value, first)]
    return call("htvm_copy_runs", *operands, *sizes, filled.body.value)


def _windows(loop: Any, windows: Mapping[Any, Sums], starts: Mapping[Any, Any], where: str) -> Any:
    """Return the call that computes whole rows of depthwise sums and requantizes them."""
    stride, found = int(loop.annotations[WINDOWS]), rescaled_loops(loop)
    sums = None if found is None else windows.get(found[1].total.source.name)
    if found is None or sums is None or found[1].bias is None or sums.bias(starts):
        raise wrong_loop(where)
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
        raise wrong_loop(where)
    quads = tirx.decl_buffer(((width * stride + 2) * channels,), "uint32", name="quads")
    zeros = {each.loop_var: 0 for each in loops}
    operands = [address_of(made.out, zeros), sums.place(sums.data), first_of(quads)]
    operands.append(sums.place(sums.weights))
    operands += [address_of(each, zeros) for each in (made.bias, made.multiplier, made.shift)]
    numbers = [number(each) for each in (pitch, channels, width, stride)]
    zero_point = tirx.const(made.zero_point, "int32")
    return SeqStmt([AllocBuffer(quads), call("htvm_nines", *operands, *numbers, zero_point)])


def _pool(loop: Any, starts: Mapping[Any, Any], where: str) -> Any:
    """Return the call that sums a window, for all channels of a pixel."""
    loops, store = nest_of(loop)
    added = getattr(getattr(store, "value", None), "b", None)
    load = getattr(added, "value", None)
    if not isinstance(store, BufferStore) or not isinstance(load, TensorLoad):
        raise wrong_loop(where)
    begin = starts.get(store.buffer.name)
    if not isinstance(begin, tirx.IntImm) or int(begin):
        raise wrong_loop(where)
    steps = {
        each.loop_var: tuple(step_of(p.indices[0], each.loop_var) for p in (store, load))
        for each in loops
        if int(each.extent) > 1
    }
    extents = {each.loop_var: int(each.extent) for each in loops}
    channel = [variable for variable, step in steps.items() if step == (1, 1)]
    summed = [variable for variable, step in steps.items() if step[0] == 0 and step[1]]
    if len(channel) != 1 or len(summed) > 2 or len(steps) != 1 + len(summed):
        raise wrong_loop(where)
    # (pixels, elements to the next) of rows and of columns.
    sides = [(1, 0)] * (2 - len(summed)) + [(extents[each], steps[each][1]) for each in summed]
    numbers = [number for side in sides for number in side] + [extents[channel[0]]]
    zeros = dict.fromkeys(extents, 0)
    operands = [address_of(place, zeros) for place in (store, load)]
    return call("htvm_pool_sums", *operands, *map(number, numbers))


def _in_blocks(
    loop: Any, row: Products, column: Column, pixels: int, channels: int, where: str
) -> Any:
    """Return a loop over blocks of channels with calls in it, behind the column that they read."""
    sums = Sums(_sums_in(loop, where), where)
    before, products = sums.block(row, column, pixels, channels, loop.loop_var)

    def called(inner: Any) -> Any:
        return products if SUMS in (inner.annotations or {}) else inner

    body = tvm_ffi.structural_map(loop.body, (For, called))
    return SeqStmt([*before, without_note(loop, PRODUCTS, body)])


def _scaled_block(loop: Any, core: CoreKernels, starts: Mapping[Any, Any], where: str) -> Any:
    """Return what a loop becomes whose sums are requantized by the call that computes them."""
    name, *numbers = str(loop.annotations[SCALED]).split(":")
    row, block = core.row(name), (int(numbers[0]), int(numbers[1]))
    sums = Sums(_sums_in(loop, where), where)
    loops, store = nest_of(list(statements_of(loop.body))[-1])
    found = Rescaling.of(store, SCALE)
    bias = sums.bias(starts)
    if found is None or found.bias is not None or not bias:
        raise wrong_loop(where)
    around = [loop] if isinstance(row, Depthwise) else []  # the loop over channels
    zeros = {each.loop_var: 0 for each in (*loops, *around)}
    factors = [address_of(load, zeros) for load in (found.multiplier, found.shift)]
    out, zero = address_of(store, zeros), tirx.const(found.zero_point)
    if isinstance(row, Depthwise) and row.band:
        pairs, x, weights, *sizes = sums.of_band(row, loop.loop_var, *block)
        operands = [out, x, first_of(pairs), weights, *bias, *factors, *sizes, zero]
        operands.append(number(numbers[2]))  # whether biases and shifts are small
        function = f"{row.name}{block[0] if row.lines else block[1]}"
        return SeqStmt([AllocBuffer(pairs), call(function, *operands)])
    if isinstance(row, Depthwise):
        x, weights, *sizes = sums.of_channel(loop.loop_var, *block)
        operands = [out, x, weights, *bias, *factors, *sizes]
        if not row.lines:
            return call(f"{row.name}{block[0]}_{block[1]}", *operands, zero)
        width, small = number(block[0]), number(numbers[2])  # small as above
        return call(f"{row.name}{block[1]}", *operands, width, zero, small)
    apart = [step_of(store.indices[0], each.loop_var) for each in loops]
    if row.column is None or len(apart) != (2 if block[0] > 1 else 1) or apart[-1] != 1:
        raise wrong_loop(where)
    channels = math.prod(axis.extent for axis in sums.channel)
    # Its words may have weights of two channels.
    paired = [way for way in row.column.scaled if way.paired and way.channels == block[1]]
    twos = 0 if not paired else block[0] // paired[0].pixels
    before, words, operands = sums.columns(row, row.column, block[0], channels, paired=twos > 0)
    sizes = [words, *map(number, (channels, *apart[:-1]))]
    ending, kind = PIXELS.get(block[0], ROW), "_alike" if found.alike else ""
    if twos and ending == ROW and sums.summed[-1].extent != row.width:
        ending = IMAGE
    elif twos:
        ending, kind = PIXELS[paired[0].pixels], PAIRED
        ending += "_dual" if row.column.dual else ""
        sizes.append(number(twos))
    function = f"{row.name}scaled_{ending}{kind}"
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
        raise wrong_loop(where)
    return found[0]
