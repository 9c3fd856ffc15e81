"""Blocks of rows: layers split such that the cores and an engine compute at the same time.

Where each row of a result depends on one row of each operand (of the queries, in attention), a run
of layers may be executed for the upper half of the rows and for the lower one.  While the cores
compute a layer of one half, the core in control drives the engine through layers of the other.  The
order is a list schedule of the halves on the two units: what reads the layer before goes first, as
that may still be in L1; then what has the longest way to the end.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from byoc_dory.emit import StartingEmitter
from byoc_dory.layers import Add, Attend, Gemm, Layer, Rows, Tensor, TensorPart
from byoc_dory.soc.base import Accelerator, Soc

BLOCKS = 2


@dataclass(frozen=True, eq=False)
class Schedule:
    """Layers in the order in which they are done.

    Attributes:
        layers: the layers.
        starts: layers that are started before their turn: name of each, and number of the layer
            before which it is started.
        cycles: estimated cycles of a run of layers.
        reason: why nothing is started, if so; empty for a layer alone.
    """

    layers: tuple[Layer, ...]
    starts: Mapping[str, int] = field(default_factory=dict[str, int])
    cycles: float = 0
    reason: str = ""


def schedule_blocks(
    layers: Sequence[Layer],
    homes: Mapping[str, Accelerator],
    outputs: Sequence[str],
    soc: Soc,
    cycles: Callable[[Accelerator, Layer], float],
) -> tuple[Schedule, dict[str, Accelerator]]:
    """Return the layers in blocks of rows where that is quicker, and the home of each.

    Args:
        layers: layers in execution order.
        homes: the accelerator of each, by the layer's name.
        outputs: names of the tensors that are needed afterwards.
        soc: their SoC.
        cycles: returns the predicted cycles of a layer by itself.
    """
    splitter = _Splitter(layers, homes, outputs, soc, cycles)
    result: list[Layer] = []
    starts: dict[str, int] = {}
    position = 0
    for first, end in splitter.runs():
        best = splitter.in_turn(first, end)
        for begin, stop in splitter.cuts(first, end):
            found = splitter.split(first, begin, stop, end)
            best = found if found.cycles < best.cycles else best
        result += layers[position:first]
        starts |= {name: at + len(result) for name, at in best.starts.items()}
        result += best.layers
        position = end
    result += layers[position:]
    reason = "" if starts else splitter.reason
    return Schedule(tuple(result), starts, reason=reason), splitter.homes


def held_back(soc: Soc, home: Accelerator, layer: Layer) -> str:
    """Return why a layer cannot be started before others are done; empty if it can."""
    reason = home.held_back(soc, layer)
    if not reason and not isinstance(home.emitter(soc), StartingEmitter):
        return f"the C of '{home.name}' starts no layers"
    return reason


class _Splitter:
    """Splits runs of a region's layers."""

    def __init__(
        self,
        layers: Sequence[Layer],
        homes: Mapping[str, Accelerator],
        outputs: Sequence[str],
        soc: Soc,
        cycles: Callable[[Accelerator, Layer], float],
    ) -> None:
        self.layers, self.outputs, self.soc = layers, set(outputs), soc
        self.homes = dict(homes)
        self._cycles = cycles
        self._readers: dict[str, list[int]] = {}
        for number, layer in enumerate(layers):
            for tensor in layer.inputs:
                self._readers.setdefault(tensor.name, []).append(number)

    # ------------------------------------------------------------------ runs

    def runs(self) -> Iterator[tuple[int, int]]:
        """Yield (first, end) of the runs of layers that can be split, on the cores and others."""
        numbers = range(len(self.layers))
        for rows, together in itertools.groupby(numbers, lambda n: self._rows(self.layers[n])):
            run = list(together)
            if rows and len({self._starts(self.layers[number]) for number in run}) > 1:
                yield run[0], run[-1] + 1

    def _rows(self, layer: Layer) -> int:
        """Return the number of rows of a layer that can be split, else 0."""
        rows = layer.output.elements // layer.output.shape[0]
        plain = isinstance(layer, Add | Rows | Attend) or (
            isinstance(layer, Gemm) and not layer.transposed
        )
        alike = all(each.elements // each.shape[0] == rows for each in _by_rows(layer))
        step = BLOCKS * self.homes[layer.name].rows_together
        return rows if plain and alike and rows % step == 0 else 0

    def _starts(self, layer: Layer) -> bool:
        return not self._held_back(layer)

    def _held_back(self, layer: Layer) -> str:
        return held_back(self.soc, self.homes[layer.name], layer)

    @property
    def reason(self) -> str:
        """Why no layer is started: nobody could, there is nobody beside, or nothing is gained."""
        if len(self.layers) < 2:
            return ""
        if any(True for _ in self.runs()):
            return "halves of their rows take no less"
        found = dict.fromkeys(map(self._held_back, self.layers))
        if "" not in found:
            return "; ".join(found)
        names = " and ".join(dict.fromkeys(self.homes[layer.name].name for layer in self.layers))
        if len(found) == 1:
            return f"nobody computes beside '{names}'"
        return f"no layers of {names} follow each other whose rows have halves for both"

    def cuts(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the parts of a run to split: from before its first layer on the cores, to the end.

        Layers in front of and behind those between layers on the cores may be left as they are.
        What a layer reads as a whole is not split.
        """
        cores = [number for number in range(first, end) if self._starts(self.layers[number])]
        for begin in range(first, cores[0] + 1):
            for stop in range(min(cores[-1] + 1, end), end + 1):
                written = {layer.output.name for layer in self.layers[begin:stop]}
                read = {each.name for layer in self.layers[begin:stop] for each in _whole(layer)}
                if not written & read:
                    yield begin, stop

    # ------------------------------------------------------------------ schedules

    def in_turn(self, first: int, end: int) -> Schedule:
        """Return layers one after another, as they are."""
        layers = tuple(self.layers[first:end])
        return Schedule(layers, cycles=sum(map(self._time, layers)))

    def split(self, first: int, begin: int, stop: int, end: int) -> Schedule:
        """Return a run of which the layers from ``begin`` until ``stop`` are in blocks."""
        before, behind = self.in_turn(first, begin), self.in_turn(stop, end)
        parts = [
            self._part(layer, block, (begin, stop))
            for layer in self.layers[begin:stop]
            for block in range(BLOCKS)
        ]
        order, starts, cycles = self._listed(parts)
        return Schedule(
            (*before.layers, *order, *behind.layers),
            {name: at + len(before.layers) for name, at in starts.items()},
            before.cycles + cycles + behind.cycles,
        )

    def _time(self, layer: Layer) -> float:
        return self._cycles(self.homes[layer.name], layer)

    def _part(self, layer: Layer, block: int, split: tuple[int, int]) -> Layer:
        """Return a layer of one block of rows."""
        part = replace(
            layer,
            name=_name(layer.name, block),
            inputs=(
                *(self._tensor(tensor, block, split) for tensor in _by_rows(layer)),
                *_whole(layer),
            ),
            output=self._tensor(layer.output, block, split),
        )
        self.homes[part.name] = self.homes[layer.name]
        return part

    def _tensor(self, tensor: Tensor, block: int, split: tuple[int, int]) -> Tensor:
        """Return a block of a tensor; its bytes are the whole's in L2 if others need that."""
        columns = tensor.shape[0]
        rows = tensor.elements // columns // BLOCKS
        inside = range(*split)
        written = any(self.layers[number].output.name == tensor.name for number in inside)
        inner = (
            written
            and tensor.name not in self.outputs
            and all(number in inside for number in self._readers[tensor.name])
        )
        return TensorPart(
            _name(tensor.name, block),
            (columns, rows, 1),
            tensor.dtype,
            tensor.layout,
            whole=tensor,
            first=block * rows * columns,
            inside=not inner,
        )

    def _listed(self, parts: Sequence[Layer]) -> tuple[list[Layer], dict[str, int], float]:
        """Return the order in which layers are done, what is started before, and the cycles."""
        written = {part.output.name for part in parts}
        way = self._ways(parts)
        waiting = list(parts)
        order: list[Layer] = []
        starts: dict[str, int] = {}
        running: tuple[Layer, float] | None = None
        last = ""
        now = 0.0
        while waiting or running:
            done = {part.output.name for part in order}
            ready = sorted(
                (
                    part
                    for part in waiting
                    if all(each.name in done or each.name not in written for each in part.inputs)
                ),
                key=lambda part, last=last: (  # type: ignore[misc]
                    last not in (each.name for each in part.inputs),
                    -way[part.name],
                ),
            )
            cores = [part for part in ready if self._starts(part)]
            engine = [part for part in ready if not self._starts(part)]
            # A layer that is done is waited for late: when the cores have another, or ITA has none.
            if running and (not engine or (cores and running[1] <= now)):
                now = max(now, running[1])
                order.append(running[0])
                running = None
            elif running is None and cores and engine:
                running = cores[0], now + self._beside(cores[0])
                starts[cores[0].name] = len(order)
                waiting.remove(cores[0])
            else:
                (following, *_) = engine or cores
                now += self._time(following)
                order.append(following)
                last = following.output.name
                waiting.remove(following)
        return order, starts, now

    def _beside(self, part: Layer) -> float:
        """Return the cycles of a layer on the cores without the one in control."""
        cores = self.soc.cluster.cores if self.soc.cluster is not None else 1
        return self._time(part) * cores / max(1, cores - 1)

    def _ways(self, parts: Sequence[Layer]) -> dict[str, float]:
        """Return the cycles from the start of each layer to the end of all that depend on it."""
        way: dict[str, float] = {}
        for part in reversed(parts):
            behind = [
                way[other.name]
                for other in parts
                if part.output.name in (each.name for each in other.inputs)
            ]
            way[part.name] = self._time(part) + max(behind, default=0.0)
        return way


def _by_rows(layer: Layer) -> tuple[Tensor, ...]:
    """Return the operands, the first ones, of which each row of the result needs one row."""
    return layer.inputs[:1] if isinstance(layer, Attend) else layer.inputs


def _whole(layer: Layer) -> tuple[Tensor, ...]:
    """Return the other operands: keys and values."""
    return layer.inputs[len(_by_rows(layer)) :]


def _name(name: str, block: int) -> str:
    return f"{name}.rows{block}"
