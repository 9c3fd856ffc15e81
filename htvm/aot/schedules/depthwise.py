"""Depthwise convolutions: several pixels of a channel, or with vectors all channels of a pixel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from htvm.aot.calls import PRODUCTS, RESCALED, SCALED, START, SUMS, WINDOWS
from htvm.aot.loops import bytes_of, factors_of, step_of
from htvm.aot.native import native_conv
from htvm.aot.rescale import Rescaling, ends_scaled
from htvm.aot.schedules.blocks import (
    Constants,
    Scheduled,
    anchor,
    extent,
    inline_all,
    is_nchw,
    lanes_over,
    loops_of,
    name_loop,
    start,
    weights_of,
)
from htvm.aot.schedules.packing import WeightColumns, WeightTaps, are_small
from htvm.aot.schedules.tiles import overlap_tiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tvm import s_tir
    from tvm.tirx import PrimFunc

    from htvm.aot.intrinsics import Depthwise


def schedule_depthwise(
    func: PrimFunc,
    constants: Constants,
    how: Depthwise,
    lanes: int,
    room: int | None = None,
    grows: bool = True,
) -> Scheduled | None:
    """Schedule a depthwise convolution without padding; ``None`` for any other function.

    Args:
        func: any function.
        constants: its parameters that are constants.
        how: the core computes it.
        lanes: elements that the core requantizes at once.
        room: bytes that its larger tensor and a workspace may take; ``None``: any.
        grows: whether what is computed from its output next is larger.
    """
    sch = start(func)
    inline_all(sch)
    blocks = anchor(sch, 7, 4)
    if blocks is None:
        return None
    if how.band:
        return _in_bands(sch, *blocks, func, constants, how, room, grows)
    if how.lines:
        return _line(sch, *blocks, func, constants, how)
    if how.scaled:
        return _requantized(sch, *blocks, func, constants, how)
    if how.window is not None:
        return _whole_rows(sch, *blocks, func, constants, how, room)
    if how.name:
        return _all_channels(sch, *blocks, func, constants, how, lanes)
    return _some_pixels(sch, *blocks, func, how)


def _whole_rows(
    sch: s_tir.Schedule,
    conv: Any,
    out: Any,
    func: PrimFunc,
    constants: Constants,
    how: Depthwise,
    room: int | None,
) -> Scheduled | None:
    """Schedule two rows of the output at a time at stride 1, one at stride 2: int8, NHWC.

    ``None`` for another filter, if the rows are not only requantized, or without room for the rows
    of the input.
    """
    if is_nchw(sch, conv):
        return None
    weights = weights_of(sch, conv, func, constants)
    _, y, x, c = loops_of(sch, out)
    *_, ry, rx, one = loops_of(sch, conv)
    window = extent(sch, ry), extent(sch, rx)
    height, width, channels = (extent(sch, loop) for loop in (y, x, c))
    pitch, made = int(func.params[0].ty.shape[-2]), Rescaling.of(sch.get(out).body)
    if weights is None or made is None or made.bias is None or window != how.window:
        return None
    if extent(sch, one) != 1 or int(func.params[0].ty.shape[-1]) != channels:
        return None
    stride = _stride(sch, conv)
    rows, span = {1: 2, 2: 1}.get(stride, 0), (width - 1) * stride + window[1]
    if not rows or height < rows or width < how.narrowest[stride] or span > pitch:
        return None
    quads = 4 * (width * stride + 2) * channels
    largest = max(bytes_of(func.params[at]) for at in (0, -1))
    if span * channels < 16 or (room is not None and largest + quads > room):
        return None
    if not made.is_unlimited:
        return None
    yb, yi = sch.split(y, [None, rows])
    sch.compute_at(conv, yb, preserve_unit_loops=True)
    sums = loops_of(sch, conv)[-7]
    zero = sch.decompose_reduction(conv, sums)
    sch.annotate(sums, PRODUCTS, f"{how.name}:{stride}:{channels}")
    sch.annotate(loops_of(sch, zero)[2], START, 1)
    sch.annotate(yi if rows > 1 else x, WINDOWS, stride)
    name_loop(sch, yb, "y")
    note = f"sums of {'2 x 2' if rows > 1 else '1 x 4'} pixels of a channel in registers"
    packing = WeightColumns(weights)
    return Scheduled(overlap_tiles(sch.mod["main"]), note, packing, biased=False)


def _stride(sch: s_tir.Schedule, conv: Any) -> int:
    """Return the stride of an NHWC convolution without dilation; 0 if there are several."""
    block = sch.get(conv)
    loads = factors_of(block.body)
    if loads is None:
        return 0
    (_, y, x, _), (_, ay, ax, _, ty, tx, _) = loads[0].indices, block.iter_vars
    pixels = [(y, ay), (x, ax)]
    steps = {step_of(index, it.var) for index, it in pixels if int(it.dom.extent) > 1}
    dilation = {step_of(y, ty.var), step_of(x, tx.var)}
    return steps.pop() or 0 if len(steps) == 1 and dilation == {1} else 0


def _some_pixels(
    sch: s_tir.Schedule, conv: Any, out: Any, func: PrimFunc, how: Depthwise
) -> Scheduled | None:
    """Schedule one channel at a time, NHWC or NCHW, for several neighbouring pixels.

    Their windows share most loads.

    Args:
        sch: schedule of the function.
        conv, out: blocks of its sums and of its output.
        func: the function.
        how: for how many pixels the core has registers.
    """
    nchw = is_nchw(sch, conv)
    native = native_conv(sch, conv, out, func, how) if nchw else None
    _, *axes = loops_of(sch, out)
    c, y, x = axes if nchw else (axes[2], axes[0], axes[1])
    px = _pixels(extent(sch, x), range(1, min(extent(sch, x), how.pixels) + 1))
    xb, xi = sch.split(x, [None, px])
    sch.reorder(*((c, y, xb) if nchw else (y, xb, c)), xi)
    sch.compute_at(conv, xb if nchw else c, preserve_unit_loops=True)
    tile, taps = loops_of(sch, conv)[-7:-3], loops_of(sch, conv)[-3:]
    xj = tile[3] if nchw else tile[2]
    one, ry, rx = taps if nchw else (taps[2], taps[0], taps[1])
    if extent(sch, one) != 1:
        return None  # groups of several channels
    sch.reorder(one, ry, rx, xj)
    zero = sch.decompose_reduction(conv, one)
    for loop, name in ((y, "y"), (xb, "xb"), (c, "c")):
        name_loop(sch, loop, name)
    for loop, name in ((ry, "fy"), (rx, "fx")):
        name_loop(sch, loop, name, extent(sch, loop))
    for loop in (xi, xj, *loops_of(sch, zero)[4:]):
        name_loop(sch, loop, "px", extent(sch, loop))
    note = f"{px} pixels of a channel at a time"
    return Scheduled(overlap_tiles(sch.mod["main"]), note, native=native)


def _requantized_there(
    sch: s_tir.Schedule, conv: Any, out: Any, func: PrimFunc, constants: Constants
) -> tuple[int, int] | None:
    """Return which parameter has the weights, and the stride, of what one call may also requantize.

    ``None`` unless the filter is 3x3, data are NHWC, and each channel has its own filter, bias and
    factor.
    """
    found = ends_scaled(sch, out)
    if is_nchw(sch, conv) or found is None or found.alike:
        return None
    weights = weights_of(sch, conv, func, constants)
    filters = [extent(sch, loop) for loop in loops_of(sch, conv)[-3:]]
    channels = extent(sch, loops_of(sch, out)[-1])
    if weights is None or filters != [3, 3, 1] or int(func.params[0].ty.shape[-1]) != channels:
        return None
    return weights, _stride(sch, conv)


def _mark_requantized(sch: s_tir.Schedule, conv: Any, over: Any, start: int, mark: str) -> None:
    """Compute the sums in a loop, and mark it for one call that also requantizes them.

    Args:
        sch: the schedule.
        conv: block of the sums.
        over: the loop, over channels or groups of them.
        start: how many loops are around the first one that sets sums to their biases.
        mark: the value of `SCALED`.
    """
    sch.compute_at(conv, over, preserve_unit_loops=True)
    sums = loops_of(sch, conv)[-7]
    zero = sch.decompose_reduction(conv, sums)
    sch.annotate(over, SCALED, mark)
    sch.annotate(sums, SUMS, 1)
    sch.annotate(loops_of(sch, zero)[start], START, 1)


def _requantized(
    sch: s_tir.Schedule, conv: Any, out: Any, func: PrimFunc, constants: Constants, how: Depthwise
) -> Scheduled | None:
    """Schedule one channel at a time of some pixels, which one call also requantizes.

    ``None`` unless both strides are 1 or 2, and as `_requantized_there` says.
    """
    found = _requantized_there(sch, conv, out, func, constants)
    if found is None or found[1] not in (1, 2):
        return None
    weights, stride = found
    _, y, x, c = loops_of(sch, out)
    channels, widths = extent(sch, c), [px for px in how.scaled if px <= extent(sch, x)]
    shape = [int(size) for size in func.params[0].ty.shape]
    if not widths:
        return None
    px = _pixels(extent(sch, x), widths)
    farthest = ((px - 1) * stride + 2) * channels
    if farthest > how.distance or 2 * shape[2] * channels > how.two_rows:
        return None
    xb, xi = sch.split(x, [None, px])
    sch.reorder(y, xb, c, xi)
    _mark_requantized(sch, conv, c, 4, f"{how.name}:{px}:{stride}")
    for loop, name in ((y, "y"), (xb, "xb")):
        name_loop(sch, loop, name)
    note = f"{px} pixels of a channel at a time, requantized there"
    return Scheduled(overlap_tiles(sch.mod["main"]), note, WeightTaps(weights, 1))


def _line(
    sch: s_tir.Schedule, conv: Any, out: Any, func: PrimFunc, constants: Constants, how: Depthwise
) -> Scheduled | None:
    """Schedule all channels of a single row, which one call also requantizes.

    ``None`` as `_requantized_there` says, for other rows, and if elements are too far apart.
    """
    found = _requantized_there(sch, conv, out, func, constants)
    if found is None or found[1] not in how.strides:
        return None
    weights, stride = found
    _, y, x, c = loops_of(sch, out)
    height, width, channels = (extent(sch, loop) for loop in (y, x, c))
    if not how.is_of(height, width, int(func.params[0].ty.shape[2]) * channels, channels):
        return None
    small = _has_small_numbers(sch, out, func, constants)
    sch.reorder(y, c, x)
    _mark_requantized(sch, conv, c, 3, f"{how.name}:{width}:{stride}:{small:d}")
    note = "a channel of a row at a time, requantized there"
    return Scheduled(overlap_tiles(sch.mod["main"]), note, WeightTaps(weights, 1))


def _in_bands(
    sch: s_tir.Schedule,
    conv: Any,
    out: Any,
    func: PrimFunc,
    constants: Constants,
    how: Depthwise,
    room: int | None,
    grows: bool,
) -> Scheduled | None:
    """Schedule some rows of all channels, which one call also requantizes.

    ``None`` as `_requantized_there` says, for channels that are no multiple of a group, if blocks
    of pixels take fewer cycles, or without room for the rows of the input.
    """
    found = _requantized_there(sch, conv, out, func, constants)
    if found is None or found[1] not in how.strides:
        return None
    weights, stride = found
    _, y, x, c = loops_of(sch, out)
    shape = [extent(sch, loop) for loop in (y, x, c)]
    if shape[-1] % how.band:
        return None
    rows = _band_rows(shape, stride, how, bytes_of(func.params[0]), room, grows)
    if rows is None:
        return None
    small = _has_small_numbers(sch, out, func, constants)
    yb, yi = sch.split(y, [None, rows])
    cb, ci = sch.split(c, [None, how.band])
    sch.reorder(yb, cb, yi, x, ci)
    _mark_requantized(sch, conv, cb, 3, f"{how.name}:{rows}:{stride}:{small:d}")
    name_loop(sch, yb, "y")
    note = f"bands of {rows} rows, requantized there"
    return Scheduled(overlap_tiles(sch.mod["main"]), note, WeightTaps(weights, 1))


def _has_small_numbers(sch: s_tir.Schedule, out: Any, func: PrimFunc, constants: Constants) -> bool:
    """Return whether the biases and shifts of a block that `ends_scaled` `are_small`."""
    made = ends_scaled(sch, out)
    sources = [] if made is None or made.bias is None else [made.bias.source, made.shift.source]
    values = [
        constants.get(at)
        for source in sources
        for at, buffer in enumerate(func.params)
        if buffer.same_as(source)
    ]
    return len(values) == 2 and all(one is not None and all(map(are_small, one)) for one in values)


_PIXEL_CYCLES = 30
"""Of an output in blocks of pixels."""


def _band_rows(
    shape: Sequence[int],
    stride: int,
    how: Depthwise,
    before: int,
    room: int | None,
    grows: bool,
) -> int | None:
    """Return how many rows to compute at once; ``None`` if blocks of pixels are better.

    Cycles are estimated from the function's instructions.

    Args:
        shape: rows, columns and channels of the output.
        stride: of the convolution.
        how: the core computes it.
        before: bytes of the input.
        room: bytes that there should be for tensors and pairs together; ``None``: any.
        grows: whether what is computed from the output next is larger.
    """
    height, width, channels = shape
    twos, single = divmod(width, 2)
    if how.lines and (height not in how.lines or width % how.lines[height]):
        return None

    def cycles(rows: int) -> int:
        transposed = 17 * how.pairs(rows, width, stride) // how.band
        channel = 60 + twos * (20 + 80 * -(-rows // 2)) + single * (20 + 86 * -(-rows // 4))
        return -(-height // rows) * (transposed + how.band * channel)

    def taken(rows: int) -> int:
        """Return the bytes of the input, the pairs, and the output before all is read."""
        return before + rows * width * channels + 4 * how.pairs(rows, width, stride)

    if how.lines:
        return height if room is None or taken(height) <= room else None
    several = [
        rows
        for rows in range(4 if single else 2, height + 1)
        if twos and (room is None or taken(rows) <= room)
    ]
    best = min(several, key=lambda rows: (cycles(rows), rows), default=None)
    if best is None or cycles(best) >= _PIXEL_CYCLES * height * width * how.band:
        return None
    if room is None or not grows or taken(best) + (height - best) * width * channels <= room:
        return best
    # The output has to lie over the input, and so far behind that what comes next lies over both:
    # the fewer rows, the closer.
    return next(rows for rows in several if cycles(rows) <= 1.2 * cycles(best))


def _pixels(width: int, of: Sequence[int]) -> int:
    """Return how many pixels to compute at once: more share more loads, but overlap more."""
    return min(of, key=lambda px: (-(-width // px) * (px + 0.7), -px))


def _all_channels(
    sch: s_tir.Schedule,
    conv: Any,
    out: Any,
    func: PrimFunc,
    constants: Constants,
    how: Depthwise,
    lanes: int,
) -> Scheduled | None:
    """Schedule all channels of a pixel or a row at a time: of int8, NHWC, in whole groups.

    ``None`` also if a weight is too small for the row.
    """
    if is_nchw(sch, conv):
        return None
    weights = weights_of(sch, conv, func, constants)
    _, y, x, c = loops_of(sch, out)
    channels = extent(sch, c)
    if weights is None or int(func.params[0].ty.shape[-1]) != channels:
        return None
    if how.group and channels % 8:
        return None
    if any(values.min() < how.least for values in constants[weights]):
        return None
    pixels = 1 if how.group else extent(sch, x)
    sch.compute_at(conv, x if how.group else y, preserve_unit_loops=True)
    sums = loops_of(sch, conv)[-7]
    zero = sch.decompose_reduction(conv, sums)
    sch.annotate(sums, PRODUCTS, f"{how.name}:{pixels}:{channels}")
    sch.annotate(loops_of(sch, zero)[-4], START, 1)
    if not how.group:
        some = lanes_over(sch, lanes, c, x)
        if some is not None:
            sch.annotate(some, RESCALED, pixels)
        return Scheduled(overlap_tiles(sch.mod["main"]), "sums of a row in vectors of channels")
    lanes_over(sch, lanes, c)
    group = 8 if channels % how.group else how.group
    note = f"sums of {group} channels of a pixel in registers"
    return Scheduled(sch.mod["main"], note, WeightTaps(weights, group))
