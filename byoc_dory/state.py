"""Inputs that the caller keeps between runs, such as caches, and which of them stay in L1.

They lie one after another at the end of L1, in every region of the program, and kernels read them
in place; everything else has the L1 before them.  That is a trade: no transfers for them, but
smaller tiles.  Both are planned, and predicted cycles decide.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from byoc_dory.codegen import RegionGenerator
from byoc_dory.cost import Cost
from byoc_dory.emit.text import Symbols
from byoc_dory.errors import TilingError
from byoc_dory.layers import Tensor
from byoc_dory.memory.arena import ALIGNMENT
from byoc_dory.options import TilingOptions
from byoc_dory.planning import expand
from byoc_dory.region import Region, RegionCode
from byoc_dory.soc.base import Memory, Soc, round_up


@dataclass(frozen=True)
class StateInput:
    """An input that the caller keeps between runs.

    Attributes:
        name: name of the tensor.
        bytes: its size.
        offset: byte offset in L1; None if it is in L2, and loaded in each run.
        reason: why it is there.
    """

    name: str
    bytes: int
    offset: int | None
    reason: str


@dataclass(frozen=True)
class StatePlan:
    """Where the inputs are that the caller keeps between runs.

    Attributes:
        inputs: these inputs, in order.
        memory: name of the memory with an offset; empty if all are in L2.
        l1_budget: bytes of it that everything else may use; None for what the options say.
        kept_cycles, loaded_cycles: predicted cycles of all layers with this plan, and with all of
            them in L2; None if there was nothing to decide.
    """

    inputs: tuple[StateInput, ...] = ()
    memory: str = ""
    l1_budget: int | None = None
    kept_cycles: int | None = None
    loaded_cycles: int | None = None

    @property
    def offsets(self) -> dict[str, int]:
        """Byte offset in L1 of each input that is there, by name."""
        return {each.name: each.offset for each in self.inputs if each.offset is not None}

    @property
    def bytes(self) -> int:
        """Bytes of L1 that they take."""
        return sum(each.bytes for each in self.inputs if each.offset is not None)

    @property
    def text(self) -> str:
        """Where they are, and why, as a sentence; empty if there are none."""
        if not self.inputs:
            return ""
        kept, all_ = len(self.offsets), len(self.inputs)
        loaded = [each for each in self.inputs if each.offset is None]
        reasons = "; ".join(dict.fromkeys(each.reason for each in loaded))
        if not kept:
            size = sum(each.bytes for each in self.inputs)
            return (
                f"{all_} inputs that the caller keeps between runs, {size:,} B, are in L2 and "
                f"loaded in each run: {reasons}."
            )
        others = f", the others in L2: {reasons}" if loaded else ""
        return (
            f"{kept} of {all_} inputs that the caller keeps between runs, {self.bytes:,} B, stay "
            f"in {self.memory}: {self.kept_cycles:,} cycles predicted, {self.loaded_cycles:,} with "
            f"all of them in L2{others}."
        )

    def options(self, options: TilingOptions) -> TilingOptions:
        """Return the options of the tiler with the L1 that is left."""
        return options if self.l1_budget is None else replace(options, l1_budget=self.l1_budget)


_LOG = logging.getLogger(__name__)

# Bytes behind the last input that kernels may read.
_BEHIND = 16
# The inputs are tried in this many steps first.
_STEPS = 4


def generate_with_state(
    regions: Mapping[str, Region],
    sizes: Mapping[str, int],
    read_elsewhere: Collection[str],
    cost: Cost,
    weights: Mapping[str, str],
    symbols: Symbols,
) -> tuple[StatePlan, dict[str, RegionCode]]:
    """Generate the code of a network's regions, and decide which inputs stay in L1 between runs.

    Args:
        regions: the regions by the name of their function.
        sizes: bytes of each input that the caller keeps between runs, by name.
        read_elsewhere: those that code outside of regions reads, which stay in L2.
        cost, weights, symbols: as for `byoc_dory.codegen.generate`.

    Raises:
        TilingError: no tile of a layer fits.
    """

    places = _Places(regions, sizes, read_elsewhere, cost)

    def plan_regions(plan: StatePlan) -> dict[str, RegionGenerator]:
        state_cost, offsets = cost.with_options(plan.options(cost.options)), plan.offsets
        return {
            symbol: RegionGenerator(
                region,
                state_cost,
                symbols,
                weights=weights,
                state_offsets=_region_offsets(region, offsets),
            )
            for symbol, region in regions.items()
        }

    plan, generators = _Search(places, plan_regions).run()
    return plan, {symbol: region.code() for symbol, region in generators.items()}


class _Search:
    """The search for how many of the inputs should be in L1.

    With more of them there, less is loaded, until tiles become small: fewer and fewer are tried
    until that takes more cycles, and then numbers beside the best one, closer and closer to it.

    Args:
        places: the inputs that may be there.
        plan_regions: plans the regions; their cycles raise `TilingError` if no tile of a layer
            fits.
    """

    def __init__(
        self, places: _Places, plan_regions: Callable[[StatePlan], dict[str, RegionGenerator]]
    ) -> None:
        self._places, self._plan_regions = places, plan_regions
        self._best_count = 0
        self._best_regions = plan_regions(places.plan(0))
        self._cycles: dict[int, int] = {}
        self._no_room: dict[int, str] = {}

    def run(self) -> tuple[StatePlan, dict[str, RegionGenerator]]:
        """Return the quickest plan of the inputs, and the regions planned with it."""
        candidates = len(self._places.candidates)
        if not candidates:
            return self._places.plan(0), self._best_regions
        self._cycles[0] = _cycles(self._best_regions)
        step = max(1, -(-candidates // _STEPS))
        for count in range(candidates, 0, -step):
            previous_best = self._best_count
            self._try(count)
            if previous_best and self._best_count == previous_best:
                break
        while step > 1:
            step //= 2
            best = self._best_count
            for count in (best + step, best - step):
                if 0 < count <= candidates:
                    self._try(count)
        plan = self._places.plan(self._best_count, self._obstacle())
        if not self._best_count:
            return plan, self._best_regions
        kept, loaded = self._cycles[self._best_count], self._cycles[0]
        _LOG.info("%d B of inputs stay in L1: %d cycles, not %d", plan.bytes, kept, loaded)
        return replace(plan, kept_cycles=kept, loaded_cycles=loaded), self._best_regions

    def _try(self, count: int) -> None:
        """Plan with this many inputs in L1, and keep the plan if it is the quickest so far."""
        if count in self._cycles or count in self._no_room:
            return
        size = self._places.bytes(count)
        if size >= self._places.end:
            self._no_room[count] = f"L1 has no room for {size:,} B of them"
            return
        try:
            regions = self._plan_regions(self._places.plan(count))
            cycles = _cycles(regions)
        except TilingError:
            self._no_room[count] = f"beside {size:,} B of them, L1 has no room for the tiles"
            return
        self._cycles[count] = cycles
        if cycles < self._cycles[self._best_count]:
            self._best_count, self._best_regions = count, regions

    def _obstacle(self) -> str:
        """Return why no more of the inputs are in L1."""
        larger_counts = [
            count for count in (*self._cycles, *self._no_room) if count > self._best_count
        ]
        if not larger_counts:
            return ""
        next_count = min(larger_counts)
        if next_count in self._no_room:
            return self._no_room[next_count]
        cycles = self._cycles[next_count] - self._cycles[self._best_count]
        words = f"{cycles:,} cycles more" if cycles else "as many cycles"
        return (
            f"beside {self._places.bytes(next_count):,} B of them in L1, smaller tiles take {words}"
        )


def _region_offsets(region: Region, offsets: Mapping[str, int]) -> dict[str, int]:
    return {each.name: offsets[each.name] for each in region.inputs if each.name in offsets}


def _cycles(regions: Mapping[str, RegionGenerator]) -> int:
    return sum(region.cycles for region in regions.values())


class _Places:
    """The inputs that the caller keeps, and their places in L1.

    Attributes:
        candidates: names of those that may be there, the first to be there first.
        end: offset in L1 at which the last one ends.
    """

    def __init__(
        self,
        regions: Mapping[str, Region],
        sizes: Mapping[str, int],
        read_elsewhere: Collection[str],
        cost: Cost,
    ) -> None:
        self._regions, self._cost, options = regions, cost, cost.options
        self._memory, self._sizes = _memory(regions, cost.soc), sizes
        self._refused: dict[str, str] = {}
        for name in sizes:
            obstacle = self._obstacle(name, name in read_elsewhere)
            if obstacle:
                self._refused[name] = obstacle
        self.candidates = [name for name in sizes if name not in self._refused]
        size = 0 if self._memory is None else self._memory.size
        self.end = (min(size, options.l1_budget or size) - _BEHIND) // ALIGNMENT * ALIGNMENT

    def bytes(self, count: int) -> int:
        """Return the bytes of L1 that the first ``count`` take."""
        return sum(round_up(self._sizes[name], ALIGNMENT) for name in self.candidates[:count])

    def plan(self, count: int, obstacle: str = "") -> StatePlan:
        """Return the plan with the first ``count`` in L1, and why the others are not there."""
        first = self.end - self.bytes(count)
        inputs, offset = [], first
        for name, size in self._sizes.items():
            if self._memory is None or name not in self.candidates[:count]:
                inputs.append(StateInput(name, size, None, self._refused.get(name, obstacle)))
                continue
            reason = f"stays in {self._memory.name} between runs"
            inputs.append(StateInput(name, size, offset, reason))
            offset += round_up(size, ALIGNMENT)
        if self._memory is None or not count:
            return StatePlan(tuple(inputs))
        return StatePlan(tuple(inputs), self._memory.name, first)

    def _obstacle(self, name: str, read_elsewhere: bool) -> str:
        """Return why an input cannot be in L1; empty if it can."""
        readers = [each for each in self._regions.values() if name in _names(each.inputs)]
        if read_elsewhere or not readers:
            return "the host reads it"
        if self._memory is None:
            return "the host cannot access L1"
        schedule = self._cost.options.schedule
        if schedule != "overlapped":
            return f"the schedule '{schedule}' loads all inputs"
        obstacles = (self._in_region(name, region) for region in readers)
        return next(filter(None, obstacles), "")

    def _in_region(self, name: str, region: Region) -> str:
        """Return what prevents a region from finding an input in L1."""
        expanded = expand(self._cost, region)
        tensor = next(each for each in region.inputs if each.name == name)
        for layer in expanded.region.layers:
            if name not in _names(layer.inputs):
                continue
            accelerator = expanded.homes[layer.name]
            if not accelerator.layout(self._cost.soc).native(tensor):
                return "it is converted to another layout"
            problem = accelerator.problem(self._cost.soc, layer, self._cost.options)
            if not problem.may_find or accelerator.region_runner:
                return f"layer '{layer.name}' loads it in parts"
        if name in {entry.source for entry in region.maps}:
            return "a function of its bytes is computed first"
        return ""


def _names(tensors: Sequence[Tensor]) -> set[str]:
    return {tensor.name for tensor in tensors}


def _memory(regions: Mapping[str, Region], soc: Soc) -> Memory | None:
    """Return the L1 of all regions, if there is one that the host can access."""
    homes = {name for region in regions.values() for name in region.homes}
    memories = {soc.accelerator(name).l1 for name in homes}
    if len(memories) != 1:
        return None
    memory = soc.memory(memories.pop())
    return memory if memory.mapped else None
