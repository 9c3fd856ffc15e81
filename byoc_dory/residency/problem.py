"""The planning problem: which tile each layer of a region uses, and which tensors stay in L1.

Every layer has *choices*: a tile, the number of buffers, which operands are in L1 as a whole and
whether its result stays there, with the bytes and cycles of each choice.  A tensor stays for all of
its readers or for none.  At each layer, the bytes of its choice and all tensors that stay and are
live at that time must fit L1 together.  The sum of all cycles is to be minimised.

Nothing here depends on layers or accelerators; offsets are assigned later (`tensors`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from byoc_dory.errors import TilingError
from byoc_dory.tiling.problem import Tile


@dataclass(frozen=True)
class Choice:
    """One way to execute a layer.

    Attributes:
        tile: the tile.
        buffers: number of tiles in L1 of each tensor that moves.
        resident_inputs: for each operand, whether it is in L1 as a whole.
        resident_output: whether the result stays there.
        bytes: bytes of L1, not counting tensors that stay.
        cycles: predicted cycles.
        input_buffers: number of tiles of operands in L1, if other than ``buffers``; else 0.
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
        name: name of the tensor.
        bytes: size of the whole tensor in bytes.
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
        cycles: sum of the cycles of all layers.
        bound: lower bound of the cycles of any solution.
        method: the search that found it.
    """

    picks: tuple[int, ...]
    stays: tuple[str, ...]
    cycles: int
    bound: int
    method: str

    @property
    def gap(self) -> float:
        """Largest fraction of the cycles that a better solution could save; 0 if it is optimal."""
        return (self.cycles - self.bound) / self.cycles if self.cycles else 0.0


@dataclass(frozen=True)
class RegionProblem:
    """A region to be planned.

    Attributes:
        name: name of the region, for messages.
        limit: size of L1 in bytes.
        reads: for each layer, the names of its operands.
        writes: for each layer, the name of its result.
        choices: for each layer, its choices; at least one of them without residents and within the
            limit.
        stays: tensors that may stay, in the order in which they are written.
        together: sets of tensors that must not all stay.
        state_inputs: tensors that are in L1 before the first layer and after the last, outside the
            limit; all choices find them there.
        held: for each layer, the bytes of layers that are under way beside it; empty for none.
    """

    name: str
    limit: int
    reads: tuple[tuple[str, ...], ...]
    writes: tuple[str, ...]
    choices: tuple[tuple[Choice, ...], ...]
    stays: tuple[Stay, ...]
    together: tuple[frozenset[str], ...] = ()
    state_inputs: frozenset[str] = frozenset()
    held: tuple[int, ...] = ()

    def room(self, layer: int) -> int:
        """Return the bytes of L1 that a layer may use, with the tensors that stay."""
        return self.limit - (self.held[layer] if self.held else 0)

    @cached_property
    def alive(self) -> tuple[tuple[Stay, ...], ...]:
        """For each layer, the tensors that are in L1 during it if they stay."""
        return tuple(
            tuple(stay for stay in self.stays if stay.first <= layer <= stay.last)
            for layer in range(len(self.choices))
        )

    @property
    def floor(self) -> int:
        """Sum of the smallest cycles of each layer: a lower bound without the memory limit."""
        return sum(min(choice.cycles for choice in offered) for offered in self.choices)

    def resident(self, layer: int, choice: Choice) -> dict[str, bool]:
        """Return which tensors a choice requires to be in L1, and which not to be."""
        operands = zip(self.reads[layer], choice.resident_inputs, strict=True)
        demanded = {name: inside for name, inside in operands if name not in self.state_inputs}
        demanded[self.writes[layer]] = choice.resident_output
        return demanded

    def part(self, first: int, end: int) -> RegionProblem:
        """Return the layers first..end-1 as a problem; tensors that cross its ends do not stay."""
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
            held=self.held[first:end],
        )

    def decision(
        self, picks: Sequence[int], stays: Sequence[str], bound: int, method: str
    ) -> Decision:
        """A decision after checking it: cycles are added up here, and every limit is checked.

        Raises:
            TilingError: it contradicts itself or breaks a limit (a defect of the search that found
                it).
        """
        staying = set(stays)
        cycles = 0
        for layer, pick in enumerate(picks):
            choice = self.choices[layer][pick]
            cycles += choice.cycles
            for name, resident in self.resident(layer, choice).items():
                if resident != (name in staying):
                    raise self._contradiction(f"'{name}' is taken to be in L1 by one layer only")
            used = choice.bytes + sum(s.bytes for s in self.alive[layer] if s.name in staying)
            if used > self.room(layer):
                raise self._contradiction(
                    f"layer {layer} takes {used} B of L1, the limit is {self.room(layer)}"
                )
        if any(group <= staying for group in self.together):
            raise self._contradiction("tensors stay together that must not")
        order = tuple(stay.name for stay in self.stays if stay.name in staying)
        return Decision(tuple(picks), order, cycles, min(bound, cycles), method)

    def _contradiction(self, what: str) -> TilingError:
        return TilingError(
            f"the joint plan is unusable: {what}",
            where=f"region '{self.name}'",
            hint="use schedule='published' for this model and report the case",
        )
