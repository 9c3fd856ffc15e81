"""Assigning offsets in L1 for a decided region: tile buffers and tensors that stay."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from byoc_dory.memory.arena import BufferUse, MemoryPlan, plan_memory
from byoc_dory.plan import PlacedBuffer
from byoc_dory.residency.problem import Decision, RegionProblem
from byoc_dory.residency.tensors import Tensors


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
    taken: Sequence[Tensors],
    ahead: Collection[int] = (),
    held: Mapping[str, int] | None = None,
) -> L1Placement:
    """Assign offsets to everything.

    Args:
        problem: the region.
        decision: the choices of its layers.
        taken: for each layer, the bytes of its tensors.
        ahead: layers that the layer before computes, so that their results are there with it.
        held: byte offset of each tensor that is in L1 in any case, outside the limit.

    Returns:
        The placement; its peak may exceed the limit if no offsets without gaps were found.
    """
    kept = {stay.name: stay for stay in problem.stays if stay.name in decision.stays}
    uses, tensors = [], []
    for layer, parts in enumerate(taken):
        for operand, size in enumerate(parts.inputs):
            if size:
                uses.append(BufferUse(_buffer(layer, operand), size, layer, layer))
                tensors.append(problem.reads[layer][operand])
        if parts.weights:
            uses.append(BufferUse(_weights(layer), parts.weights, layer, layer))
            tensors.append(f"weights of {problem.writes[layer]}")
        name, first = problem.writes[layer], layer - (layer in ahead)
        if name in kept:
            stay = kept[name]
            uses.append(BufferUse(_whole(name), stay.bytes, first, stay.last, parts.surplus))
        else:
            uses.append(BufferUse(_buffer(layer, -1), parts.output, first, layer))
        tensors.append(name)
    plan = plan_memory(uses, memory=f"L1 of region '{problem.name}'", enough=problem.limit)
    offsets = dict(plan.offsets)
    places = {} if held is None else held
    inputs, outputs = [], []
    for layer, name in enumerate(problem.writes):
        inputs.append(
            tuple(
                places[read]
                if read in places
                else offsets.get(_whole(read) if read in kept else _buffer(layer, operand), 0)
                for operand, read in enumerate(problem.reads[layer])
            )
        )
        outputs.append(offsets[_whole(name) if name in kept else _buffer(layer, -1)])
    steps = _steps_beyond(uses, offsets, problem.limit)
    groups = {
        step: frozenset(stay.name for stay in kept.values() if stay.first <= step <= stay.last)
        for step in sorted(steps)
    }
    crowded = tuple(dict.fromkeys(group for group in groups.values() if group))
    placed = tuple(
        PlacedBuffer(
            tensor=tensor,
            offset=offsets[use.name],
            bytes=use.bytes,
            first=use.first,
            last=use.last,
            resident=tensor in kept,
        )
        for use, tensor in zip(uses, tensors, strict=True)
    )
    weights = tuple(offsets.get(_weights(layer), 0) for layer in range(len(taken)))
    return L1Placement(tuple(inputs), tuple(outputs), weights, plan, placed, crowded)


def _steps_beyond(uses: Sequence[BufferUse], offsets: dict[str, int], limit: int) -> set[int]:
    """Return the layers during which something lies beyond the limit."""
    beyond = set()
    for use in uses:
        if offsets[use.name] + use.bytes > limit:
            beyond |= set(range(use.first, use.last + 1))
        elif offsets[use.name] + use.bytes + use.surplus > limit:
            beyond.add(use.first)
    return beyond


def _buffer(layer: int, operand: int) -> str:
    return f"layer {layer} " + ("out" if operand < 0 else f"in {operand}")


def _weights(layer: int) -> str:
    return f"layer {layer} weights"


def _whole(tensor: str) -> str:
    return f"tensor {tensor}"
