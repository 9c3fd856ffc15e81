"""A layer's use of L1, per tensor, and offsets in L1 for a decided region.

While a result that stays in L1 is being written, the accelerator may overwrite maps behind it
(`Tensors.surplus`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from byoc_dory.memory.arena import ALIGNMENT, BufferUse, MemoryPlan, plan_memory
from byoc_dory.plan import PlacedBuffer
from byoc_dory.residency.problem import Decision, RegionProblem
from byoc_dory.soc.base import round_up
from byoc_dory.tiling import Tile, TilingProblem


@dataclass(frozen=True)
class Tensors:
    """A layer's use of L1 per tensor, in bytes, aligned.

    Attributes:
        inputs: bytes of the buffers of each operand; 0 if it is resident.
        output: bytes of the buffers of the result; 0 if it is resident.
        weights: bytes of the buffers of the weights, if they are in L1, and scratch.
        surplus: bytes after a resident result that are overwritten with it.
    """

    inputs: tuple[int, ...]
    output: int
    weights: int
    surplus: int

    @property
    def bytes(self) -> int:
        """Sum of all bytes."""
        return sum(self.inputs) + self.output + self.weights + self.surplus


def tensors_in_l1(
    problem: TilingProblem,
    tile: Tile,
    buffers: int,
    resident_inputs: tuple[bool, ...],
    resident_output: bool,
    loop_order: str,
    input_buffers: int = 0,
) -> Tensors:
    """Return a layer's use of L1 with this tile and these residents.

    A tensor of which only one tile is moved has a single buffer.  ``input_buffers`` is the number
    of buffers of operands, if other than ``buffers``.
    """
    one_in, one_out, one_weights = problem.memory(tile)
    channels = -(-problem.k.size // tile.k)
    rows = -(-problem.y.size // tile.y)
    columns = -(-problem.x.size // tile.x)
    tiles = channels * rows * columns
    loads = rows * columns
    if problem.channels_follow_k or (loop_order == "kyx" and loads > 1):
        loads = tiles
    operand = min(input_buffers or buffers, loads) * one_in // problem.copies
    operands = (operand,) * problem.copies + problem.fixed.operands
    weights = min(buffers, channels) * one_weights if problem.weights.in_l1 else 0
    return Tensors(
        tuple(
            [
                0 if resident else round_up(size, ALIGNMENT)
                for size, resident in zip(operands, resident_inputs, strict=True)
            ]
        ),
        0 if resident_output else round_up(min(buffers, tiles) * one_out, ALIGNMENT),
        round_up(weights + problem.scratch_bytes(tile.x), ALIGNMENT),
        _surplus(problem, tile) if resident_output else 0,
    )


def _surplus(problem: TilingProblem, tile: Tile) -> int:
    """The bytes after a whole result that are written with its last channels, or hold its sums."""
    starts = range(0, problem.k.size, tile.k)
    whole = round_up(problem.k.size * _map_bytes(problem), ALIGNMENT)
    ends = (
        start
        + round_up(min(tile.k, problem.k.size - start), problem.rounding.k)
        + problem.rounding.extra_maps
        for start in starts
    )
    maps = max(0, max(ends) * _map_bytes(problem) - whole)
    sums = problem.sums * round_up(tile.k, problem.rounding.k) * _map_bytes(problem)
    return round_up(maps, ALIGNMENT) + round_up(sums, ALIGNMENT)


def _map_bytes(problem: TilingProblem) -> int:
    return round_up(problem.y.size, problem.rounding.y) * round_up(
        problem.x.size, problem.rounding.x
    )


@dataclass(frozen=True)
class L1Placement:
    """The offsets of everything in L1.

    Attributes:
        inputs: for each layer, the byte offset of each operand: of the whole tensor if it stays,
            else of its first buffer.
        outputs: for each layer, the byte offset of its result, likewise.
        weights: for each layer, the byte offset of its weights and scratch; 0 without any.
        plan: peak, bound and offsets by name.
        map: the contents of L1 over time.
        crowded: if the peak exceeds L1, the sets of tensors that stay at the times when it does.
    """

    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[int, ...]
    weights: tuple[int, ...]
    plan: MemoryPlan
    map: tuple[PlacedBuffer, ...]
    crowded: tuple[frozenset[str], ...]


def place(
    problem: RegionProblem,
    decision: Decision,
    layer_tensors: Sequence[Tensors],
    begins: Mapping[int, int] | None = None,
    in_place: Collection[int] = (),
    state_offsets: Mapping[str, int] | None = None,
    preloaded: Mapping[int, int] | None = None,
) -> L1Placement:
    """Assign offsets to everything.

    Args:
        problem: the region.
        decision: the choices of its layers.
        layer_tensors: for each layer, the bytes of its tensors.
        begins: layers that begin before their turn, each with the layer beside which it does.
        in_place: layers whose result, if it does not stay, is written over their only operand.
        state_offsets: byte offset of each tensor that is in L1 in any case, outside the limit.
        preloaded: layers whose constants are loaded by one before, each with that.

    Returns:
        The placement; its peak may exceed the limit if no offsets without gaps were found.
    """
    staying = {stay.name: stay for stay in problem.stays if stay.name in decision.stays}
    uses, tensors = [], []
    begins = {} if begins is None else begins
    for layer, parts in enumerate(layer_tensors):
        first = begins.get(layer, layer)
        for operand, size in enumerate(parts.inputs):
            if size:
                uses.append(BufferUse(_buffer_name(layer, operand), size, first, layer))
                tensors.append(problem.reads[layer][operand])
        if parts.weights:
            begin = first if preloaded is None else preloaded.get(layer, first)
            uses.append(BufferUse(_weights_name(layer), parts.weights, begin, layer))
            tensors.append(f"weights of {problem.writes[layer]}")
        name = problem.writes[layer]
        if name in staying:
            stay = staying[name]
            uses.append(BufferUse(_whole_name(name), stay.bytes, first, stay.last, parts.surplus))
        elif layer in in_place:
            continue
        else:
            uses.append(BufferUse(_buffer_name(layer, -1), parts.output, first, layer))
        tensors.append(name)
    plan = plan_memory(uses, memory=f"L1 of region '{problem.name}'", enough=problem.limit)
    offsets = dict(plan.offsets)
    places = {} if state_offsets is None else state_offsets
    inputs, outputs = [], []
    for layer, name in enumerate(problem.writes):
        inputs.append(
            tuple(
                places[read]
                if read in places
                else offsets.get(
                    _whole_name(read) if read in staying else _buffer_name(layer, operand), 0
                )
                for operand, read in enumerate(problem.reads[layer])
            )
        )
        result = _whole_name(name) if name in staying else _buffer_name(layer, -1)
        outputs.append(offsets[result] if result in offsets else inputs[layer][0])
    steps = _steps_beyond(uses, offsets, problem.limit)
    groups = {
        step: frozenset(stay.name for stay in staying.values() if stay.first <= step <= stay.last)
        for step in sorted(steps)
    }
    crowded = tuple(dict.fromkeys(group for group in groups.values() if group))
    l1_map = tuple(
        PlacedBuffer(
            tensor=tensor,
            offset=offsets[use.name],
            bytes=use.bytes,
            first=use.first,
            last=use.last,
            resident=tensor in staying,
        )
        for use, tensor in zip(uses, tensors, strict=True)
    )
    weights = tuple(offsets.get(_weights_name(layer), 0) for layer in range(len(layer_tensors)))
    return L1Placement(tuple(inputs), tuple(outputs), weights, plan, l1_map, crowded)


def _steps_beyond(uses: Sequence[BufferUse], offsets: dict[str, int], limit: int) -> set[int]:
    """Return the layers during which something lies beyond the limit."""
    layers = set()
    for use in uses:
        if offsets[use.name] + use.bytes > limit:
            layers |= set(range(use.first, use.last + 1))
        elif offsets[use.name] + use.bytes + use.surplus > limit:
            layers.add(use.first)
    return layers


def _buffer_name(layer: int, operand: int) -> str:
    return f"layer {layer} " + ("out" if operand < 0 else f"in {operand}")


def _weights_name(layer: int) -> str:
    return f"layer {layer} weights"


def _whole_name(tensor: str) -> str:
    return f"tensor {tensor}"
