"""Plans of a region's layers: their tiles, and the offsets of everything in L1."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

from byoc_dory.layers import Layer
from byoc_dory.memory.arena import ALIGNMENT
from byoc_dory.tiling.problem import Solution, TilingProblem


@dataclass(frozen=True)
class Follower:
    """The next layer, if it is computed tile by tile together with a layer that it reads.

    Attributes:
        layer: the next layer.
        plan: its plan.
    """

    layer: Layer
    plan: LayerPlan


@dataclass(frozen=True)
class Preload:
    """The first block of constants of the next layer in turn, loaded during the last tile.

    Attributes:
        bytes: its size.
        l1: byte offset in L1.
        array: C name of the next layer's constants; empty until C is generated.
    """

    bytes: int
    l1: int = 0
    array: str = ""


@dataclass(frozen=True)
class Left:
    """The last tile of the layer before, which this layer waits for and completes.

    Attributes:
        tiles: own tiles that are started before that, as they do not depend on it: 0 or 1.
        cycles: predicted cycles from this layer's begin until the device has computed it.
        after: predicted cycles of the cores that complete it then.
    """

    tiles: int
    cycles: int = 0
    after: int = 0


@dataclass(frozen=True)
class LayerPlan:
    """The plan of one layer, on which scheduling and code generation are based.

    A resident tensor stays in L1 as a whole, in the accelerator's layout, from the layer that
    writes it to those that read it; only layers with untiled rows and columns may have one.

    Attributes:
        accelerator: name of the accelerator that runs the layer.
        solution: the tile, with the solver's information about it.
        buffers: number of tiles in L1 of each tensor that is not resident: 1, or 2 so that
            transfers overlap with computation.
        resident_inputs: for each operand, whether it is already in L1.
        resident_output: whether the result stays in L1 (and is then not stored to L2).
        l1_inputs: byte offset in L1 of each operand: of the whole tensor if resident, else of its
            first tile buffer; the others follow directly.  A tensor of which only one tile is moved
            has a single buffer.
        l1_output: byte offset in L1 of the result, likewise.
        l1_weights: byte offset in L1 of the weights, if they are there; scratch follows them.
        input_buffers: number of tiles of operands in L1, if other than ``buffers``; else 0.
        follower: the next layer, if its tiles are computed here, each beside the next tile.
        ahead: whether the layer before computes the tiles, so that only the result is stored.
        preload: constants of the next layer to load here, if any.
        preloaded: whether the layer before loads the first block of constants.
        leaves: whether the next layer waits for the last tile, and completes it.
        left: what the layer before leaves to this one.
        hidden: predicted cycles of it that others hide, if it is started before these, and only
            waited for in its turn. None: it is computed in its turn.
    """

    accelerator: str
    solution: Solution
    buffers: int
    resident_inputs: tuple[bool, ...]
    resident_output: bool
    l1_inputs: tuple[int, ...]
    l1_output: int
    l1_weights: int = 0
    input_buffers: int = 0
    follower: Follower | None = None
    ahead: bool = False
    preload: Preload | None = None
    preloaded: bool = False
    leaves: bool = False
    left: Left | None = None
    hidden: int | None = None

    @property
    def started(self) -> bool:
        """Whether the layer is started before others, and only waited for in its turn."""
        return self.hidden is not None


@dataclass(frozen=True)
class PlacedBuffer:
    """A range of bytes of L1, and the layers during which it is in use.

    Attributes:
        tensor: name of the tensor that is there, as tiles or as a whole.
        offset: offset of the first byte.
        bytes: size in bytes of all tile buffers together, or of the whole tensor.
        first, last: indices of the first and the last layer of the region, both inclusive.
        resident: whether it is a whole tensor that stays between layers.
    """

    tensor: str
    offset: int
    bytes: int
    first: int
    last: int
    resident: bool


@dataclass(frozen=True)
class RegionPlan:
    """The plans of all layers of a region, and their quality as a whole.

    Attributes:
        layers: plans in execution order.
        resident: names of the tensors that stay in L1, in the order in which they are written.
        l1_limit: size of L1 in bytes.
        l1_peak: bytes in use.
        l1_live: largest sum of simultaneously live bytes: a lower bound for any placement.
        l1_used: for each layer, bytes of L1 in use while it runs.
        cycles: predicted cycles of all layers.
        cycles_alone: predicted cycles with the best plan of each layer alone, without residents.
        bound: lower bound of the cycles of any plan with the same tiles.
        method: the search that found the plan.
        l1_map: the contents of L1 over time.
        saved_cycles: predicted cycles saved by layers that are computed, or whose constants are
            loaded, beside the one before.  They are found after the search: ``cycles`` and
            ``bound`` are of layers one after another.
        starts: the layers that are started before their turn, each with the layer before which it
            is; numbers of layers.
        in_turn: why all layers are computed in their turn, if some might be started before it.
    """

    layers: tuple[LayerPlan, ...]
    resident: tuple[str, ...]
    l1_limit: int
    l1_peak: int
    l1_live: int
    l1_used: tuple[int, ...]
    cycles: int
    cycles_alone: int
    bound: int
    method: str
    l1_map: tuple[PlacedBuffer, ...] = ()
    saved_cycles: int = 0
    starts: Mapping[int, int] = field(default_factory=dict[int, int])
    in_turn: str = ""

    @property
    def gap(self) -> float:
        """Largest fraction of the cycles that another plan could save; 0 if it is optimal."""
        return (self.cycles - self.bound) / self.cycles if self.cycles else 0.0


def plan_alone(
    layer: Layer, solution: Solution, accelerator: str, problem: TilingProblem | None = None
) -> LayerPlan:
    """Return the plan of a layer that has L1 to itself, single-buffered, without residents.

    ``problem`` is needed if L1 holds more than one tile of each operand and of the result.
    """
    operands = len(layer.inputs)
    further = () if problem is None else problem.fixed.operands
    tiled = operands - len(further)
    sizes = [solution.l1_in // tiled] * tiled + [_aligned(size) for size in further]
    ends = list(itertools.accumulate(sizes))
    return LayerPlan(
        accelerator=accelerator,
        solution=solution,
        buffers=1,
        resident_inputs=(False,) * operands,
        resident_output=False,
        l1_inputs=(0, *ends[:-1]),
        l1_output=ends[-1],
        l1_weights=_aligned(ends[-1] + solution.l1_out),
    )


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
