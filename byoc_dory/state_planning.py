"""Which of the inputs that the caller keeps, such as caches, stay in L1 between runs.

They lie one after another at the end of L1, in every region of the program, and kernels read them
in place; everything else has the L1 before them.  That is a trade: no transfers for them, but
smaller tiles.  Both are planned, and predicted cycles decide.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from byoc_dory.codegen import generate
from byoc_dory.errors import TilingError
from byoc_dory.expansion import expand
from byoc_dory.layers import Tensor
from byoc_dory.memory.arena import ALIGNMENT
from byoc_dory.options import TilingOptions
from byoc_dory.region import Region, RegionCode
from byoc_dory.soc.base import Memory, Soc, round_up
from byoc_dory.state import StateInput, StatePlan

__all__ = ["generate_with_state"]

_LOG = logging.getLogger(__name__)

# Bytes behind the last input that kernels may read.
_BEHIND = 16
# Parts of the inputs that are tried, in quarters, the most first.
_QUARTERS = (4, 3, 2, 1)


def generate_with_state(
    regions: Mapping[str, Region],
    names: Sequence[str],
    read_elsewhere: Sequence[str],
    soc: Soc,
    options: TilingOptions,
    prefix: str,
    weights: Mapping[str, str],
) -> tuple[StatePlan, dict[str, RegionCode]]:
    """Generate the code of a network's regions, and decide which inputs stay in L1 between runs.

    Args:
        regions: the regions by the name of their function.
        names: names of the inputs that the caller keeps between runs.
        read_elsewhere: those that code outside of regions reads, which stay in L2.
        soc, options, prefix, weights: as for `byoc_dory.codegen.generate`.

    Raises:
        TilingError: no tile of a layer fits.
    """

    def code(plan: StatePlan) -> dict[str, RegionCode]:
        own = plan.options(options)
        offsets = plan.offsets
        return {
            symbol: generate(region, soc, own, prefix, weights=weights, held=_of(region, offsets))
            for symbol, region in regions.items()
        }

    search = _Search(regions, names, read_elsewhere, soc, options)
    loaded = code(search.apart())
    before = _cycles(loaded)
    for plan in search.plans():
        try:
            found = code(plan)
        except TilingError:
            search.obstacle = f"beside {plan.bytes:,} B of them, L1 has no room for the tiles"
            continue
        cycles = _cycles(found)
        if cycles < before:
            _LOG.info("%d B of inputs stay in L1: %d cycles, not %d", plan.bytes, cycles, before)
            return replace(plan, kept_cycles=cycles, loaded_cycles=before), found
        more = f"{cycles - before:,} cycles more" if cycles > before else "as many cycles"
        search.obstacle = f"beside {plan.bytes:,} B of them in L1, smaller tiles take {more}"
    return search.apart(), loaded


def _of(region: Region, offsets: Mapping[str, int]) -> dict[str, int]:
    return {each.name: offsets[each.name] for each in region.inputs if each.name in offsets}


def _cycles(code: Mapping[str, RegionCode]) -> int:
    plans = [each.plan for each in code.values() if each.plan is not None]
    return sum(plan.cycles - plan.beside for plan in plans)


class _Search:
    """The plans to be compared.

    Attributes:
        obstacle: what prevents more of the inputs from staying in L1, as far as it was tried.
    """

    def __init__(
        self,
        regions: Mapping[str, Region],
        names: Sequence[str],
        read_elsewhere: Sequence[str],
        soc: Soc,
        options: TilingOptions,
    ) -> None:
        self._regions, self._soc, self._options = regions, soc, options
        self._memory = _memory(regions, soc)
        self._sizes: dict[str, int] = {}
        self._refused: dict[str, str] = {}
        self.obstacle = "L1 has no room for them"
        for name in names:
            self._enter(name, name in read_elsewhere)

    def apart(self) -> StatePlan:
        """Return the plan with all of them in L2."""
        return StatePlan(tuple(self._in_l2(name) for name in self._sizes))

    def plans(self) -> Iterator[StatePlan]:
        """Yield plans with some in L1, those with most of them first."""
        memory = self._memory
        if memory is None:
            return
        able = [name for name in self._sizes if name not in self._refused]
        end = min(memory.size, self._options.l1_budget or memory.size) - _BEHIND
        end -= end % ALIGNMENT
        for count in dict.fromkeys(len(able) * part // _QUARTERS[0] for part in _QUARTERS):
            chosen = able[:count]
            first = end - self._bytes(chosen)
            if chosen and first > 0:
                yield self._plan(memory, chosen, first)
            elif chosen:
                self.obstacle = f"L1 has no room for {self._bytes(chosen):,} B of them"

    def _plan(self, memory: Memory, chosen: Sequence[str], first: int) -> StatePlan:
        found, offset = [], first
        for name, size in self._sizes.items():
            if name not in chosen:
                found.append(self._in_l2(name))
                continue
            found.append(StateInput(name, size, offset, f"stays in {memory.name} between runs"))
            offset += round_up(size, ALIGNMENT)
        return StatePlan(tuple(found), memory.name, first)

    def _in_l2(self, name: str) -> StateInput:
        return StateInput(name, self._sizes[name], None, self._refused.get(name, self.obstacle))

    def _bytes(self, names: Sequence[str]) -> int:
        return sum(round_up(self._sizes[name], ALIGNMENT) for name in names)

    def _enter(self, name: str, read_elsewhere: bool) -> None:
        """Note an input's size, and why it cannot be in L1, if so."""
        readers = [each for each in self._regions.values() if name in _names(each.inputs)]
        size = 0
        if read_elsewhere or not readers:
            self._refused[name] = "the host reads it"
        elif self._memory is None:
            self._refused[name] = "the host cannot access L1"
        elif self._options.schedule != "overlapped":
            self._refused[name] = f"the schedule '{self._options.schedule}' loads all inputs"
        for region in readers:
            size, obstacle = self._in_region(name, region)
            if obstacle:
                self._refused.setdefault(name, obstacle)
        self._sizes[name] = size

    def _in_region(self, name: str, region: Region) -> tuple[int, str]:
        """Return the bytes of an input, and what prevents a region from finding it in L1."""
        found = expand(region, self._soc, self._options)
        tensor = next(each for each in region.inputs if each.name == name)
        readers = [layer for layer in found.region.layers if name in _names(layer.inputs)]
        for layer in readers:
            home = found.homes[layer.name]
            layout = home.layout(self._soc)
            if not layout.native(tensor):
                return tensor.elements, "it is converted to another layout"
            problem = home.tiling_problem(layer, self._soc, self._options.l1_budget)
            if not problem.may_find or home.region_runner:
                return tensor.elements, f"layer '{layer.name}' loads it in parts"
        if name in {entry.source for entry in region.maps}:
            return tensor.elements, "a function of its bytes is computed first"
        return tensor.elements, ""


def _names(tensors: Sequence[Tensor]) -> set[str]:
    return {tensor.name for tensor in tensors}


def _memory(regions: Mapping[str, Region], soc: Soc) -> Memory | None:
    """Return the L1 of all regions, if there is one that the host can access."""
    homes = {name for region in regions.values() for name in region.homes}
    found = {soc.accelerator(name).l1 for name in homes}
    if len(found) != 1:
        return None
    memory = soc.memory(found.pop())
    return memory if memory.mapped else None
