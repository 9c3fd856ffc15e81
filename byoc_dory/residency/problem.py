"""Which tile each layer of a region takes, and which tensors stay in L1: the problem.

Every layer offers *choices*: a tile, how often it is buffered, which operands it finds in L1 as a
whole and whether it leaves its result there, with the bytes and cycles of that.  A tensor stays for
all its readers or for none.  At each layer, what its choice takes and all tensors that stay and are
alive then must fit L1 together.  The sum of all cycles shall be least.

Nothing here knows layers or accelerators; offsets come later (`placement`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from byoc_dory.errors import TilingError
from byoc_dory.tiling.problem import Tile

__all__ = ["Choice", "Decision", "RegionProblem", "Stay"]


@dataclass(frozen=True)
class Choice:
    """One way to execute a layer.

    Attributes:
        tile: the tile.
        buffers: how many tiles of each tensor that moves L1 holds.
        resident_inputs: for each operand, whether it is in L1 as a whole.
        resident_output: whether the result stays there.
        bytes: of L1, besides the tensors that stay.
        cycles: predicted.
        input_buffers: how many tiles of operands L1 holds, where it is not ``buffers``; else 0.
    """

    tile: Tile
    buffers: int
    resident_inputs: tuple[bool, ...]
    resident_output: bool
    bytes: int
    cycles: int
    input_buffers: int = 0


@dataclass(frozen=True)
class Stay:
    """A tensor that may stay in L1.

    Attributes:
        name: the tensor.
        bytes: the whole of it.
        first: index of the layer that writes it.
        last: index of the last layer that reads it.
    """

    name: str
    bytes: int
    first: int
    last: int


@dataclass(frozen=True)
class Decision:
    """A solution.

    Attributes:
        picks: for each layer, the index of its choice.
        stays: names of the tensors that stay, in the problem's order.
        cycles: sum over all layers.
        bound: no solution has fewer cycles.
        method: what found it.
    """

    picks: tuple[int, ...]
    stays: tuple[str, ...]
    cycles: int
    bound: int
    method: str

    @property
    def gap(self) -> float:
        """By which part of the cycles a better solution could at most be quicker; 0 is optimal."""
        return (self.cycles - self.bound) / self.cycles if self.cycles else 0.0


@dataclass(frozen=True)
class RegionProblem:
    """A region to be planned.

    Attributes:
        name: of the region, for messages.
        limit: bytes of L1.
        reads: for each layer, the names of its operands.
        writes: for each layer, the name of its result.
        choices: for each layer; at least one of them with nothing resident, within the limit.
        stays: tensors that may stay, in the order in which they are written.
        together: sets of tensors of which at least one must not stay.
    """

    name: str
    limit: int
    reads: tuple[tuple[str, ...], ...]
    writes: tuple[str, ...]
    choices: tuple[tuple[Choice, ...], ...]
    stays: tuple[Stay, ...]
    together: tuple[frozenset[str], ...] = ()

    @cached_property
    def alive(self) -> tuple[tuple[Stay, ...], ...]:
        """For each layer, the tensors that are in L1 while it runs if they stay."""
        return tuple(
            tuple(stay for stay in self.stays if stay.first <= layer <= stay.last)
            for layer in range(len(self.choices))
        )

    @property
    def floor(self) -> int:
        """Cycles if memory did not matter: a lower bound."""
        return sum(min(choice.cycles for choice in offered) for offered in self.choices)

    def resident(self, layer: int, choice: Choice) -> dict[str, bool]:
        """What a choice demands of the tensors it touches: to be in L1, or not to be."""
        demanded = dict(zip(self.reads[layer], choice.resident_inputs, strict=True))
        demanded[self.writes[layer]] = choice.resident_output
        return demanded

    def part(self, first: int, end: int) -> RegionProblem:
        """The layers first..end-1 as a problem of its own: what crosses its ends does not stay."""
        stays = [stay for stay in self.stays if first <= stay.first and stay.last < end]
        names = {stay.name for stay in stays}
        choices = []
        for layer in range(first, end):
            choices.append(
                tuple(
                    choice
                    for choice in self.choices[layer]
                    if all(
                        name in names
                        for name, inside in self.resident(layer, choice).items()
                        if inside
                    )
                )
            )
        return replace(
            self,
            reads=self.reads[first:end],
            writes=self.writes[first:end],
            choices=tuple(choices),
            stays=tuple(
                replace(stay, first=stay.first - first, last=stay.last - first) for stay in stays
            ),
            together=tuple(group for group in self.together if group <= names),
        )

    def decided(
        self, picks: Sequence[int], stays: Sequence[str], bound: int, method: str
    ) -> Decision:
        """A decision, replayed: its cycles are counted here, and every limit is checked.

        Raises:
            TilingError: it contradicts itself or breaks a limit (a defect of whoever made it).
        """
        kept = set(stays)
        cycles = 0
        for layer, pick in enumerate(picks):
            choice = self.choices[layer][pick]
            cycles += choice.cycles
            names = (*self.reads[layer], self.writes[layer])
            inside = (*choice.resident_inputs, choice.resident_output)
            for name, resident in zip(names, inside, strict=True):
                if resident != (name in kept):
                    raise self._wrong(f"'{name}' is taken to be in L1 by one layer only")
            used = choice.bytes + sum(s.bytes for s in self.alive[layer] if s.name in kept)
            if used > self.limit:
                raise self._wrong(f"layer {layer} takes {used} B of L1, the limit is {self.limit}")
        if any(group <= kept for group in self.together):
            raise self._wrong("tensors stay together that must not")
        order = tuple(stay.name for stay in self.stays if stay.name in kept)
        return Decision(tuple(picks), order, cycles, min(bound, cycles), method)

    def _wrong(self, what: str) -> TilingError:
        return TilingError(
            f"the joint plan is unusable: {what}",
            where=f"region '{self.name}'",
            hint="use schedule='published' for this model and report the case",
        )
