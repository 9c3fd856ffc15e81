"""The common start of all schedules: the blocks, and inlining."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import tvm_ffi
from tvm import s_tir
from tvm.ir import TensorLoad
from tvm.s_tir import SBlock, SBlockRealize
from tvm.s_tir.schedule import ScheduleError

from htvm.aot.lower import NAME, UNROLL

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import numpy.typing as npt
    from tvm.tirx import PrimFunc

    from htvm.aot.native import NativeConv

__all__ = [
    "Constants",
    "Scheduled",
    "WeightRows",
    "WeightTaps",
    "WeightWords",
    "extent",
    "inline_all",
    "is_reduction",
    "loops_of",
    "name_loop",
    "start",
    "weights_of",
]

Constants: TypeAlias = "Mapping[int, Sequence[npt.NDArray[Any]]]"
"""Values of a PrimFunc's parameters that are constants, one for each of its calls."""

_REDUCE = 2  # tirx.IterVar.CommReduce
_LARGEST_EXPRESSION = 512  # loads


@dataclass(frozen=True)
class WeightWords:
    """Weights (fy, run, K) packed as [K / channels][fy][run / 4][channels][4].

    The run has the elements of a filter's row, (fx, C), or of a row of a matrix, where fy is 1.

    Attributes:
        parameter: the PrimFunc's parameter with the weights.
        channels: output channels whose words are interleaved.
        lifted: whether 128 is added to all of them, which are then unsigned bytes.
        first: whether the weights come as (K, C, fy, fx).
    """

    parameter: int
    channels: int
    lifted: bool = False
    first: bool = False

    def apply(self, weight: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the packed weights."""
        weight = weight.transpose(2, 3, 1, 0) if self.first else weight
        fy, k = weight.shape[0] if weight.ndim > 2 else 1, weight.shape[-1]
        split = weight.reshape(fy, -1, 4, k // self.channels, self.channels)
        packed = np.asarray(split.transpose(3, 0, 1, 4, 2), order="C")
        return packed ^ np.int8(-128) if self.lifted else packed


@dataclass(frozen=True)
class WeightRows:
    """Weights (..., K) packed as [K / channels][steps][channels][16].

    The elements of a channel, in order, are followed by zeros up to a multiple of 16.

    Attributes:
        parameter: the PrimFunc's parameter with the weights.
        channels: output channels whose vectors are interleaved.
        first: whether the weights come as (K, C, fy, fx).
    """

    parameter: int
    channels: int
    first: bool = False

    def apply(self, weight: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the packed weights."""
        weight = weight.transpose(2, 3, 1, 0) if self.first else weight
        k = weight.shape[-1]
        rows = weight.reshape(-1, k)
        filled = np.pad(rows, ((0, -len(rows) % 16), (0, 0)))
        split = filled.reshape(-1, 16, k // self.channels, self.channels)
        return np.asarray(split.transpose(2, 0, 3, 1), order="C")


@dataclass(frozen=True)
class WeightTaps:
    """Depthwise weights (fy, fx, C) packed as [C / group][fy * fx][group].

    Attributes:
        parameter: the PrimFunc's parameter with the weights.
        group: channels that are side by side.
    """

    parameter: int
    group: int

    def apply(self, weight: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the packed weights."""
        taps = weight.shape[0] * weight.shape[1]
        split = weight.reshape(taps, -1, self.group)
        return np.asarray(split.transpose(1, 0, 2), order="C")


@dataclass(frozen=True, eq=False)
class Scheduled:
    """A scheduled PrimFunc.

    Attributes:
        func: the PrimFunc.
        note: short description for readers of the C code.
        packing: how its weights, a constant, must be packed; ``None``: as they are.
        plain: whether its loops are TVM's, because no schedule is for its operators.
        native: what the host platform calls instead, if it has that.
    """

    func: PrimFunc
    note: str
    packing: WeightWords | WeightRows | WeightTaps | None = None
    plain: bool = False
    native: NativeConv | None = None


def start(func: PrimFunc) -> s_tir.Schedule:
    """Return a schedule of one PrimFunc, under the name ``main``; the PrimFunc does not change.

    TVM changes statements in place where it takes nobody else to hold them, and it does not look
    above the root block, which this PrimFunc shares with those that it was copied from, the user's
    among them: so the schedule gets a root of its own.
    """
    realize = func.body
    block = realize.block
    root = SBlock(
        block.iter_vars,
        block.reads,
        block.writes,
        block.name_hint,
        block.body,
        block.init,
        block.alloc_buffers,
        block.match_buffers,
        block.annotations,
    )
    own = func.with_body(SBlockRealize(realize.iter_values, realize.predicate, root))
    return s_tir.Schedule(own.without_attr("global_symbol"), error_render_level="none")


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
