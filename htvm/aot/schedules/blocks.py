"""What schedules share: the blocks, inlining, layouts, and names of loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import tvm_ffi
from tvm import s_tir
from tvm.ir import TensorLoad
from tvm.s_tir import SBlockRealize
from tvm.s_tir.schedule import ScheduleError

from htvm.aot.lanes import FOUR, LANES
from htvm.aot.loops import changed_block
from htvm.aot.lower import NAME, UNROLL

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import numpy.typing as npt
    from tvm.tirx import PrimFunc

    from htvm.aot.native import NativeConv
    from htvm.aot.schedules.packing import Packing

Constants: TypeAlias = "Mapping[int, Sequence[npt.NDArray[Any]]]"
"""Values of a PrimFunc's parameters that are constants, one for each of its calls."""

_REDUCE = 2  # tirx.IterVar.CommReduce
_LARGEST_EXPRESSION = 512  # loads
_FEW_PIXELS = 6  # to unroll


@dataclass(frozen=True, eq=False)
class Scheduled:
    """A scheduled PrimFunc.

    Attributes:
        func: the PrimFunc.
        note: short description for readers of the C code.
        packing: how its weights, a constant, must be packed; ``None``: as they are.
        plain: whether its loops are TVM's, because no schedule is for its operators.
        native: what the host platform calls instead, if it has that.
        biased: whether its sums may begin with the bias.
    """

    func: PrimFunc
    note: str
    packing: Packing | None = None
    plain: bool = False
    native: NativeConv | None = None
    biased: bool = True


def start(func: PrimFunc) -> s_tir.Schedule:
    """Return a schedule of one PrimFunc, under the name ``main``; the PrimFunc does not change.

    TVM changes statements in place where it takes nobody else to hold them, and it does not look
    above the root block, which this PrimFunc shares with those that it was copied from, the user's
    among them: so the schedule gets a root of its own.
    """
    realize = func.body
    root = changed_block(realize.block, realize.block.body)
    own = func.with_body(SBlockRealize(realize.iter_values, realize.predicate, root))
    return s_tir.Schedule(own.without_attr("global_symbol"), error_render_level="none")


def has_blocks(func: PrimFunc) -> bool:
    """Whether a PrimFunc's loops are around blocks, which is what schedules change.

    A PrimFunc that somebody wrote may have plain loops, and so do TVM's scans and scatters.
    """
    if not isinstance(func.body, SBlockRealize) or func.body.block.name_hint != "root":
        return False
    blocks: list[Any] = []
    tvm_ffi.structural_walk(func.body.block.body, (SBlockRealize, blocks.append))
    return bool(blocks)


def blocks_of(sch: s_tir.Schedule) -> list[Any]:
    """Return all blocks, in the order in which they are written."""
    return list(sch.get_child_blocks(sch.get_sblock("root")))


def is_reduction(sch: s_tir.Schedule, block: Any) -> bool:
    """Whether the block sums (or otherwise reduces) over an axis."""
    return any(int(axis.iter_type) == _REDUCE for axis in sch.get(block).iter_vars)


def extent(sch: s_tir.Schedule, loop: Any) -> int:
    """Return the number of iterations."""
    return int(sch.get(loop).extent)


def weights_of(
    sch: s_tir.Schedule, block: Any, func: PrimFunc, constants: Collection[int]
) -> int | None:
    """Return which parameter has the weights of a product of int8 tensors, if it is a constant.

    The schedule must not have changed the function's parameters yet.
    """
    data, weight = (region.source for region in sch.get(block).reads)
    if {str(data.ty.dtype), str(weight.ty.dtype)} != {"int8"}:
        return None
    places = [at for at, buffer in enumerate(func.params) if buffer.same_as(weight)]
    if len(places) != 1 or places[0] not in constants or not any(map(data.same_as, func.params)):
        return None
    return places[0]


def loops_of(sch: s_tir.Schedule, block: Any) -> list[Any]:
    """Return the loops around a block, outermost first."""
    return list(sch.get_loops(block))


def name_loop(sch: s_tir.Schedule, loop: Any, name: str, unroll: int = 0) -> None:
    """Give a loop its name in the C code, and the number of iterations to unroll."""
    if extent(sch, loop) == 1:
        return  # a loop without a note is removed
    sch.annotate(loop, NAME, name)
    if unroll > 1:
        sch.annotate(loop, UNROLL, unroll)


def _is_copy(sch: s_tir.Schedule, block: Any) -> bool:
    return isinstance(getattr(sch.get(block).body, "value", None), TensorLoad)


def _domain(sch: s_tir.Schedule, block: Any) -> int:
    size = 1
    for axis in sch.get(block).iter_vars:
        if int(axis.iter_type) != _REDUCE:
            size *= int(axis.dom.extent)
    return size


def _inlined_size(sch: s_tir.Schedule, block: Any, consumer: Any) -> int:
    """Return the number of loads in the consumer's expression after inlining a block into it."""
    made = sch.get(block)
    if _is_copy(sch, block):
        return 0
    buffer = made.writes[0].source
    inner: list[Any] = []
    outer: list[Any] = []
    tvm_ffi.structural_walk(made.body, (TensorLoad, inner.append))
    tvm_ffi.structural_walk(sch.get(consumer).body, (TensorLoad, outer.append))
    uses = sum(load.source.same_as(buffer) for load in outer)
    return len(outer) + int(uses) * len(inner)


def inline_all(sch: s_tir.Schedule) -> None:
    """Inline every element-wise block into its consumers, so that no intermediate remains.

    A block whose elements are each used several times is kept, because inlining would repeat its
    computation; so is one whose consumer would become too long for TVM's passes, which take time
    that grows with the square of it.  A mere copy is always inlined.
    """
    for block in blocks_of(sch)[:-1]:
        if is_reduction(sch, block):
            continue
        consumers = sch.get_consumers(block)
        grows = any(_domain(sch, consumer) > _domain(sch, block) for consumer in consumers)
        if not _is_copy(sch, block) and (len(consumers) != 1 or grows):
            continue
        if len(consumers) == 1 and _inlined_size(sch, block, consumers[0]) > _LARGEST_EXPRESSION:
            continue
        try:
            sch.compute_inline(block)
        except ScheduleError:
            # Some blocks cannot be inlined (opaque access, output); they are kept.
            continue


def anchor(sch: s_tir.Schedule, loops: int, output_loops: int) -> tuple[Any, Any] | None:
    """Return (sum, output) if the function has just these two blocks, with this many loops."""
    blocks = blocks_of(sch)
    if len(blocks) != 2 or not is_reduction(sch, blocks[0]) or is_reduction(sch, blocks[1]):
        return None
    if len(loops_of(sch, blocks[0])) != loops or len(loops_of(sch, blocks[1])) != output_loops:
        return None
    return blocks[0], blocks[1]


def is_nchw(sch: s_tir.Schedule, block: Any) -> bool:
    """Whether a convolution has channels before rows and columns."""
    return "nchw" in str(sch.get(block).name_hint)


def channels_last(sch: s_tir.Schedule, conv: Any, out: Any) -> Any:
    """Turn an NCHW convolution into one of NHWC; return the block that copies its input.

    The copy has channels last; it should be made where few rows of it are needed.
    """
    copy = sch.cache_read(conv, 0, "global")
    sch.transform_layout(copy, ("write", 0), lambda n, c, y, x: (n, y, x, c))
    sch.transform_block_layout(copy, lambda n, c, y, x: (n, y, x, c))
    sch.transform_layout(conv, ("read", 1), lambda k, c, ry, rx: (ry, rx, c, k))
    sch.transform_layout(conv, ("write", 0), lambda n, k, y, x: (n, y, x, k))
    sch.transform_block_layout(conv, lambda n, k, y, x, rc, ry, rx: (n, y, x, k, ry, rx, rc))
    sch.transform_block_layout(out, lambda n, k, y, x: (n, y, x, k))
    return copy


def is_pointwise(sch: s_tir.Schedule, conv: Any, func: PrimFunc) -> bool:
    """Whether an NHWC convolution is a product of matrices: 1x1, with each pixel used once."""
    _, y, x, _, ry, rx, _ = (extent(sch, loop) for loop in loops_of(sch, conv))
    _, iy, ix, _ = (int(size) for size in func.params[0].ty.shape)
    return (ry, rx) == (1, 1) and (iy, ix) == (y, x)


def flatten(sch: s_tir.Schedule, conv: Any, out: Any, *, taps: bool) -> None:
    """Merge rows and columns of pixels into one axis, so that a block may span two rows.

    Args:
        sch: schedule of an NHWC convolution.
        conv, out: blocks of its sums and of its output.
        taps: whether its sums keep the axes of a filter's taps; without, it must be pointwise.
    """
    width, first = extent(sch, loops_of(sch, out)[2]), 0 if taps else 2
    sch.transform_layout(conv, ("write", 0), lambda n, y, x, k: (y * width + x, k))
    sch.transform_block_layout(
        conv, lambda n, y, x, k, ry, rx, rc: (y * width + x, k, *(ry, rx, rc)[first:])
    )
    sch.transform_block_layout(out, lambda n, y, x, k: (y * width + x, k))


def name_block(
    sch: s_tir.Schedule, zero: Any, out: Any, inner: tuple[Any, ...], update: tuple[Any, ...]
) -> None:
    """Name and unroll the loops of a register block in all three places."""
    for loops in (inner, update):
        for loop, name in zip(loops, ("px", "ki"), strict=True):
            name_loop(sch, loop, name, extent(sch, loop))
    # The block that zeroes the sums has the register block's loops innermost, including unit loops.
    tile = len(loops_of(sch, out)) - len(inner)
    for loop, name in zip(loops_of(sch, zero)[tile:], "ijkl", strict=False):
        name_loop(sch, loop, name, extent(sch, loop))


def _together(number: int, lanes: int) -> int:
    """Return how many of a loop's iterations to compute at once: rather fewer than overlap."""
    if lanes == FOUR:
        return FOUR  # at once, or not at all
    best = max(each for each in range(1, lanes + 1) if number % each == 0)
    return best if 2 * best >= lanes else min(number, lanes)


def lanes_over(sch: s_tir.Schedule, lanes: int, loop: Any, *inner: Any) -> Any | None:
    """Compute several iterations of a loop at once, inside of the loops ``inner``, from four on.

    Incomplete last ones overlap their neighbours (`overlap_tiles`).

    Args:
        sch: the schedule.
        lanes: most iterations, as of `CoreKernels`.
        loop, inner: the loops.

    Returns:
        The loop around them; ``None`` if there are not four.
    """
    if extent(sch, loop) < 4:
        return None
    outer, some = sch.split(loop, [None, _together(extent(sch, loop), lanes)])
    sch.reorder(outer, *inner, some)
    name_loop(sch, outer, "k")
    for other in inner:
        few = extent(sch, other) <= _FEW_PIXELS
        name_loop(sch, other, "px", extent(sch, other) if few else 1)
    sch.annotate(some, LANES, 1)
    return outer
