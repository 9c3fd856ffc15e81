"""`TileProgram`: the tile-by-tile execution of one layer, as one value.

The author of an accelerator specifies the axes along which a layer is tiled, the tile of each
operand (an offset in L2, a block to move, a place in L1), the computation, and the order of the
actions (`byoc_dory.tileloop.pipeline`).  Everything else is derived: when an operand is loaded
again (`TileProgram.depth`), the predicted cycles (`cycles`), the bytes moved (also `cycles`), which
tile an element belongs to (`elements`), and the C (`byoc_dory.emit.staged`).

An author specifies where a tile of a tensor lies in L2 and which block is moved; the plan
determines the rest, and whether the whole tensor stays in L1.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from byoc_dory.errors import TileProgramError
from byoc_dory.plan import LayerPlan, Left, Preload
from byoc_dory.tileloop.axes import Span, TileAxis
from byoc_dory.tileloop.pipeline import Block, Call, Pipeline, Trigger
from byoc_dory.tileloop.values import (
    Entry,
    Value,
    axes_of,
    evaluate,
    evaluated,
    places_of,
    values_of,
)


@dataclass(frozen=True)
class Operand:
    """A tensor that tiles read, or the one they write.

    When it is moved is derived: a tile of it is loaded whenever its offset or block may have
    changed since the previous tile, that is once for each combination of the axes that these depend
    on, in the order of the loops.

    Attributes:
        name: name of its argument in C, or of the C array of packed constants.
        offset: byte offset of the tile in L2, from the start of the tensor.
        block: the block that is moved.
        l1: byte offset in L1: of the whole tensor if it is resident, else of its first buffer.
        l1_bytes: bytes of one buffer; for a resident tensor, of all of it.
        buffers: number of tiles for which there is room in L1.  They are used in turn if transfers
            overlap with computation and several tiles are moved; otherwise only the first is used.
        resident: whether the whole tensor is in L1, so that nothing is moved.
        inside: byte offset of the tile in a resident tensor.
        constant: whether it holds the layer's packed weights and tables.
        reloaded: whether every tile loads it, even if unchanged.
        title: description of a tile of it, for a comment; empty for its name.
        preloaded: whether the layer before loads its first tile.
        beside: name of the operand in whose buffers it lies, each of its rows behind one of that
            operand's, so that the device reads both as one row; empty for buffers of its own.
        over: of the result of a single tile, name of the operand whose bytes it takes; empty for
            bytes of its own.
    """

    name: str
    offset: Value
    block: Block[Value]
    l1: int
    l1_bytes: int
    buffers: int = 1
    resident: bool = False
    inside: Value = 0
    constant: bool = False
    reloaded: bool = False
    title: str = ""
    preloaded: bool = False
    beside: str = ""
    over: str = ""

    @cached_property
    def axes(self) -> frozenset[str]:
        """The axes that its tile depends on."""
        values = (self.inside,) if self.resident else (self.offset, *self.block.values)
        return axes_of(*values)


@dataclass(frozen=True)
class Compute:
    """The computation that an accelerator performs for one tile.

    Attributes:
        kind: class of its triggers, which takes the numbers of all fields for one tile by name;
            or the name of its `Call`s.
        fields: values of the fields.
        fetched: number of bytes per tile that the accelerator itself reads from L2, such as
            weights.
        several: whether it may take more than one start, so that its registers are free only after
            the last.
        struct: C type of the fields; empty if the accelerator's own text has several calls.
        function: C function that takes them: its name, or a call with a placeholder ``{}`` for the
            name of the struct.
        given: what the class takes besides: numbers that the C function is not given.
        beside: operands that nobody touches before a tile is finished, as only others read or write
            them.
        copied: operands that nobody reads any more when a tile is started, as they were copied.
    """

    kind: type[Trigger] | str
    fields: Mapping[str, Entry]
    fetched: Value = 0
    several: bool = False
    struct: str = ""
    function: str = ""
    given: Mapping[str, int | tuple[int, ...]] = field(default_factory=dict)
    beside: frozenset[str] = frozenset()
    copied: frozenset[str] = frozenset()


class LoopTile:
    """A tile of a program: its number in the order of execution, and its index along each axis."""

    __slots__ = ("_program", "indices", "number", "spans")

    def __init__(self, program: TileProgram, number: int, indices: tuple[int, ...]) -> None:
        self._program = program
        self.number = number
        self.indices = indices
        axes = zip(program.axes, indices, strict=True)
        self.spans = {axis.name: axis.spans[index] for axis, index in axes}

    def index(self, axis: str) -> int:
        """Return the index of its range along an axis."""
        return self.indices[self._program.position[axis]]

    def span(self, axis: str) -> Span:
        """Return its range along an axis."""
        return self.spans[axis]

    def place(self, operand: str) -> int:
        """Return the place in L1 of the tile of an operand, or of the result, as a byte offset."""
        program, tensor = self._program, self._program.tensor[operand]
        if tensor.resident:
            return tensor.l1 + evaluate(tensor.inside, self)
        number = program.moves_before(tensor, self.indices)
        return tensor.l1 + number % program.buffers(tensor) * tensor.l1_bytes


@dataclass(frozen=True)
class TileProgram:
    """The tile-by-tile execution of one layer.

    A search makes thousands of programs, so constructing one checks nothing: planning checks one
    program per layer, and generating C checks the one it is generated from
    (`byoc_dory.tileloop.checks.check`).

    Attributes:
        layer: name of the layer, for messages.
        axes: axes of the loops, outermost first.
        operands: tensors that tiles read: inputs in the layer's order, then constants.
        result: the tensor that tiles write; stored once per tile.
        compute: the computation.
        in_turn: order of the actions if tiles are executed one after another.
        overlapped: order of the actions if transfers overlap with computation; None if they never
            do. It is used if there is more than one tile, and anything to move.
        preload: the next layer's constants, loaded while the last tile is computed.
        leaves: whether the last tile is left to the next layer, which waits for it and completes
            it.
        left: what the layer before has left to this one.
        position: index of each axis in the loops, by name.
        tensor: the operands and the result, by name.
        tiles: number of tiles.
        loaded: the operands that are moved, without those that the layer before loads.
    """

    layer: str
    axes: tuple[TileAxis, ...]
    operands: tuple[Operand, ...]
    result: Operand
    compute: Compute
    in_turn: Pipeline
    overlapped: Pipeline | None = None
    preload: Preload | None = None
    leaves: bool = False
    left: Left | None = None
    position: Mapping[str, int] = field(init=False, repr=False, compare=False)
    tensor: Mapping[str, Operand] = field(init=False, repr=False, compare=False)
    tiles: int = field(init=False, repr=False, compare=False)
    loaded: tuple[Operand, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        position = {axis.name: number for number, axis in enumerate(self.axes)}
        tensor = {operand.name: operand for operand in (*self.operands, self.result)}
        object.__setattr__(self, "position", position)
        object.__setattr__(self, "tensor", tensor)
        object.__setattr__(self, "tiles", prod([axis.count for axis in self.axes]))
        loaded = [operand for operand in self.operands if not operand.resident]
        if any([operand.preloaded for operand in loaded]):
            loaded = [each for each in loaded if not each.preloaded or self.moves(each) > 1]
        object.__setattr__(self, "loaded", tuple(loaded))

    def error(self, what: str, hint: str) -> TileProgramError:
        """Return the error for an inconsistent program."""
        return TileProgramError(what, where=f"tile program of layer '{self.layer}'", hint=hint)

    # ------------------------------------------------------------------ tiles

    def order(self) -> Iterator[LoopTile]:
        """Yield all tiles in the order of execution."""
        ranges = (range(axis.count) for axis in self.axes)
        for number, indices in enumerate(itertools.product(*ranges)):
            yield LoopTile(self, number, indices)

    def at(self, indices: tuple[int, ...]) -> LoopTile:
        """Return the tile with these indices, one per axis."""
        number = 0
        for axis, index in zip(self.axes, indices, strict=True):
            number = number * axis.count + index
        return LoopTile(self, number, indices)

    # ------------------------------------------------------------------ when operands move

    @cached_property
    def pipelined(self) -> bool:
        """Whether transfers run while a tile is computed."""
        moves = not all([operand.resident for operand in (*self.operands, self.result)])
        return self.overlapped is not None and self.tiles > 1 and moves

    @cached_property
    def pipeline(self) -> Pipeline:
        """The order of the actions."""
        return self.overlapped if self.pipelined and self.overlapped else self.in_turn

    def depth(self, operand: Operand) -> int:
        """Return the number of loops around the transfer of an operand's tile.

        A tile is moved whenever one of these advances; the loops inside find it in L1.  Loops with
        a single tile do not count.
        """
        if operand.reloaded or operand is self.result:
            return len(self.axes)
        return self._depth[operand.name]

    @cached_property
    def _depth(self) -> dict[str, int]:
        depths = dict.fromkeys(self.tensor, 0)
        divided_axes = [
            (depth, axis.name) for depth, axis in enumerate(self.axes, 1) if axis.count > 1
        ]
        if divided_axes:
            for operand in self.operands:
                axes = operand.axes
                for depth, name in divided_axes:
                    if name in axes:
                        depths[operand.name] = depth
        return depths

    def moved_at(self, operand: Operand, indices: tuple[int, ...]) -> bool:
        """Whether a tile is the first of those that use the same tile of an operand."""
        return not any(indices[self.depth(operand) :])

    def moves_before(self, operand: Operand, indices: tuple[int, ...]) -> int:
        """Return how many tiles of an operand were moved before the one that a tile uses."""
        number = 0
        for axis, index in zip(self.axes[: self.depth(operand)], indices, strict=False):
            number = number * axis.count + index
        return number

    def moves(self, operand: Operand) -> int:
        """Return how many tiles of an operand are moved in total; 0 if it is resident."""
        if operand.resident:
            return 0
        return prod(axis.count for axis in self.axes[: self.depth(operand)])

    def buffers(self, operand: Operand) -> int:
        """Return the number of buffers of an operand; 1 if only one of its tiles is moved."""
        return min(operand.buffers, max(1, self.moves(operand))) if self.pipelined else 1

    def waits_for_readers(self, operand: Operand) -> bool:
        """Whether an operand's next tile overwrites the last one, whose readers must be done."""
        return self.pipelined and self.buffers(operand) == 1 and self.moves(operand) > 1

    @cached_property
    def loads_every_tile(self) -> bool:
        """Whether every tile has something to load."""
        return any(self.moves(operand) == self.tiles for operand in self.loaded)

    @property
    def waits_for_stores(self) -> bool:
        """Whether a tile waits for the last store from its result's buffer.

        If every tile has something to load, waiting for that is enough: the DMA executes transfers
        in order.
        """
        return self.tiles > 1 and not self.result.resident and not self.loads_every_tile

    # ------------------------------------------------------------------ one tile

    def block(self, operand: Operand, tile: LoopTile) -> Block[int]:
        """Return the block of an operand, or of the result, that is moved for a tile."""
        block = operand.block
        return Block(*[evaluate(value, tile) for value in block.values], by_rows=block.by_rows)

    def call(self, tile: LoopTile) -> Trigger:
        """Return the accelerator's call for a tile."""
        compute, numbers = self.compute, evaluated(self.compute.fields, tile)
        if isinstance(compute.kind, str):
            return Call(compute.kind, numbers)
        return compute.kind(**numbers, **compute.given)

    # ------------------------------------------------------------------ bytes

    def end(self, operand: Operand) -> int:
        """Return the first byte of L1 after an operand's buffers, or after the whole operand."""
        return operand.l1 + operand.l1_bytes * (1 if operand.resident else self.buffers(operand))

    def reads(self) -> frozenset[str]:
        """Return the operands whose places the accelerator is given, and those beside them."""
        read = places_of(*values_of(*self.compute.fields.values()))
        return read | {operand.name for operand in self.operands if operand.beside in read}


def input_of(
    plan: LayerPlan,
    number: int,
    name: str,
    offset: Value,
    block: Block[Value],
    whole: int,
    buffer: int,
    *,
    every_tile: bool = False,
    title: str = "",
) -> Operand:
    """Return an input of a layer; if resident, it has the same layout as in L2.

    Args:
        plan: of the layer.
        number: index of the input among the layer's inputs.
        name, offset, block, title: as for `Operand`.
        whole: bytes of the whole tensor.
        buffer: bytes of one tile in L1.
        every_tile: whether every tile reads all of it, so that one buffer is enough.
    """
    resident = plan.resident_inputs[number]
    return Operand(
        name,
        offset,
        block,
        plan.l1_inputs[number],
        whole if resident else buffer,
        buffers=1 if every_tile else plan.input_buffers or plan.buffers,
        resident=resident,
        inside=offset,
        title=title,
    )


def weights_of(plan: LayerPlan, offset: Value, block: Block[Value], buffer: int) -> Operand:
    """Packed weights that are loaded into L1; ``buffer`` is the bytes of one tile of them."""
    return Operand(
        "weights",
        offset,
        block,
        plan.l1_weights,
        buffer,
        buffers=plan.buffers,
        constant=True,
        preloaded=plan.preloaded,
    )


def result_of(
    plan: LayerPlan, offset: Value, block: Block[Value], whole: int, buffer: int, *, title: str = ""
) -> Operand:
    """Return the result of a layer, ``out``; arguments as for `input_of`."""
    return Operand(
        "out",
        offset,
        block,
        plan.l1_output,
        whole if plan.resident_output else buffer,
        buffers=plan.buffers,
        resident=plan.resident_output,
        inside=offset,
        title=title,
    )
