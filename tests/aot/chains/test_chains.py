"""Chains by themselves: rows in order, strips as small as they can be, and guards that notice."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from byoc_dory.emit.text import Symbols
from byoc_dory.errors import SimulationError
from htvm.aot.chains.chain import Chain, chain_of
from htvm.aot.chains.kernels import RowCompiler
from htvm.aot.chains.network import Network, network_of
from htvm.aot.chains.places import places_of
from htvm.aot.chains.planning import _Planner
from htvm.aot.chains.segment import Segment
from htvm.aot.chains.whole import Whole
from htvm.aot.program import assemble
from htvm.build_options import BuildOptions, Input
from htvm.compiled import Compiled
from htvm.firmware.build import build_host
from htvm.sim.runner import run
from tests.aot.chains.networks import chained_network, inputs_of

MUTANTS = 200

WORK = 24
"""Bytes that the kernels of each unit need beside its rows, for `play`."""


def planned(seed: int, way: Input = "kept") -> tuple[Compiled, Network]:
    """A network and its units."""
    compiled = Compiled(chained_network(seed), "generic.cpu", BuildOptions(input=way))
    network = network_of(compiled.retargeted.model.graph, compiled._assembly)
    assert network is not None
    return compiled, network


def chains_of(network: Network) -> list[Chain]:
    """Every chain of at least two units, and those of one that read padding."""
    count = len(network.units)
    found = [
        chain_of(network, first, behind)
        for first in range(count)
        for behind in range(first + 1, count + 1)
    ]
    return [chain for chain in found if chain is not None and chain.strips]


def banded_chains_of(network: Network) -> list[Chain]:
    """The same, where every second unit whose rows allow it makes two or three at once."""
    found = []
    for chain in chains_of(network):
        bands: dict[int, int] = {}
        for number in range(*chain.units):
            rows = network.tensors[network.units[number].result].rows
            sizes = [size for size in (2, 3) if rows % size == 0 and rows > size]
            if sizes and number % 2 and network.units[number].of_sums is None:
                bands[number] = sizes[0]
        banded = chain_of(network, *chain.units, bands=bands) if bands else None
        if banded is not None:
            found.append(banded)
    return found


def play(network: Network, chain: Chain) -> Counter[str]:
    """Follow the order of a chain with numbers of rows only; return how often each was made.

    Raises:
        AssertionError: a row is read that is not there, or dropped while it is still read.
    """
    held: dict[tuple[str, bool], list[int]] = {}
    following: dict[int, int] = {}
    made: Counter[str] = Counter()
    places = places_of(chain, dict.fromkeys(range(*chain.units), WORK))
    for name in chain.inputs:
        held[name, False] = list(range(network.tensors[name].rows))
    for number in chain.order:
        stage = chain.stages[number]
        strip = chain.strips[stage.name] if stage.strip else None
        y = following.get(number, -strip.top if strip else 0)
        rows = strip.tensor.rows if strip else network.tensors[stage.name].rows
        count = stage.band if 0 <= y < rows else 1
        if 0 <= y < rows:
            made[f"{stage.name} {stage.unit}"] += count
            for taken in (places.rows.get(stage.name), places.work.get(number)):
                for name, place in places.rows.items():
                    if taken is not None and name != stage.name and set(taken) & set(place):
                        held[name, True] = []
            for source in stage.sources:
                window = source.window
                first = y * window.stride - window.top
                there = held.get((source.tensor, source.strip), [])
                assert set(range(first, first + window.size)) <= set(there), (stage, y, there)
        target = held.setdefault((stage.name, stage.strip), [])
        if strip is not None and not strip.summed:
            assert count <= strip.rows
            # The oldest rows; more may go, but none needs to stay.
            del target[: max(len(target) + count - strip.rows, 0)]
        target += range(y, y + count)
        following[number] = y + count
    return made


@pytest.mark.parametrize("seed", [1, 3, 7])
def test_each_row_is_made_once_and_is_there_when_it_is_read(seed: int) -> None:
    _, network = planned(seed)
    chains, banded = chains_of(network), banded_chains_of(network)
    assert chains and banded
    for chain in (*chains, *banded):
        made = play(network, chain)
        for stage in chain.stages:
            strip = chain.strips.get(stage.name)
            rows = strip.tensor.rows if stage.strip and strip else network.tensors[stage.name].rows
            count = made[f"{stage.name} {stage.unit}"]
            # Rows that no stride reaches need not be made.
            assert count <= rows if stage.strip else count == rows, stage


def test_a_strip_has_no_row_too_many() -> None:
    _, network = planned(3)
    for chain in (*chains_of(network), *banded_chains_of(network)):
        for name, strip in chain.strips.items():
            if strip.summed or strip.rows == 1:
                continue
            with pytest.raises(AssertionError):
                play(network, chain.with_room(name, strip.rows - 1))


@pytest.mark.parametrize("way", ["kept", "overwritten", "streamed"])
@pytest.mark.parametrize("seed", [1, 3, 7])
def test_no_chain_takes_less_than_its_estimate(seed: int, way: Input) -> None:
    planner = Mutants(seed, "kept" if way == "streamed" else way).planner
    if way == "streamed":
        planner.network = replace(planner.network, streamed=planner.network.inputs[0])
        planner.costs.network = planner.network
    for chain in chains_of(planner.network):
        found = Segment.of(chain, planner.costs)
        least = planner._estimated(*chain.units, planner.costs.alive(chain.units[0]))
        assert least.bytes <= found.bytes
        assert least.cost <= found.cost


class Mutants:
    """Chains of a network, built natively with one thing wrong."""

    def __init__(self, seed: int, way: Input = "kept") -> None:
        self.compiled, self.network = planned(seed, way)
        self.inputs = inputs_of(self.compiled.source, seed)
        soc = self.compiled.target.soc
        self.compiler = RowCompiler(
            self.compiled.source.name, soc.host.simd, "scheduled", scarce=True,
            symbols=self.compiled._symbols, pool=self.compiled._pool,
        )  # fmt: skip
        given = self.compiled._assembly
        self.planner = _Planner(self.network, Whole(given), self.compiler)
        self.count = 0

    def program(self, chain: Chain) -> Any:
        """The program in which a chain takes the place of its units."""
        first, behind = chain.units
        count = len(self.network.units)
        alone = [self.planner._single(number) for number in range(count)]
        self.planner.compiler = replace(
            self.compiler, symbols=Symbols(f"{self.compiled.source.name}_{self.count}")
        )
        self.count += 1
        cuts = [*alone[:first], Segment.of(chain, self.planner.costs), *alone[behind:]]
        self.planner._compiled(cuts)
        for band in chain.bands.items():
            self.planner.costs.rows |= self.planner.compiler.rows(self.network, [band])
        return assemble(self.planner._assembly(cuts))

    def outputs(self, program: Any) -> list[np.ndarray]:
        return run(build_host(program, self.compiled.target.soc), self.inputs).outputs

    def small(self) -> list[tuple[Chain, Chain]]:
        """Chains, each also with one of its strips a row too small."""
        return [
            (chain, chain.with_room(name, strip.rows - 1))
            for chain in (*chains_of(self.network), *banded_chains_of(self.network))
            for name, strip in chain.strips.items()
            if not strip.summed and strip.rows > 1
        ]

    def in_one_place(self) -> list[Chain]:
        """Chains, some of whose rows are at once in the same place."""
        return [
            replace(chain, together=())
            for chain in chains_of(self.network)
            if any(len(names) > 1 for _, names in chain.together)
        ]

    def early(self, chain: Chain) -> Any:
        """The program whose output begins one row too late, over an input that is still read."""
        program = self.program(chain)
        uses = {use.name: use for use in program.buffers}
        for use in program.buffers:
            if (
                use.over
                and use.below < uses[use.over].bytes
                and "_rows" in program.steps[use.first].symbol
            ):
                row = -(-self.network.tensors[chain.outputs[0]].row // 16) * 16
                # All others are far away, so that it meets nothing else.
                far = program.plan.peak + -(-use.bytes // 16) * 16 + row
                offsets = {name: offset + far for name, offset in program.plan.offsets}
                offsets[use.over] -= far
                offsets[use.name] = offsets[use.over] - use.below // 16 * 16 + row
                if offsets[use.name] < 0:
                    offsets = {name: offset + far for name, offset in offsets.items()}
                peak = program.plan.peak + 3 * far
                plan = replace(program.plan, offsets=tuple(offsets.items()), peak=peak)
                return replace(program, plan=plan)
        return None


@pytest.mark.parametrize("seed", [3])
def test_a_strip_one_row_too_small_is_found(seed: int) -> None:
    mutants = Mutants(seed)
    whole, small = mutants.small()[-1]
    found = mutants.outputs(mutants.program(whole))
    np.testing.assert_array_equal(found[0], mutants.outputs(mutants.compiled.program)[0])
    with pytest.raises(SimulationError, match=r"-16|-17"):
        mutants.outputs(mutants.program(small))


@pytest.mark.parametrize("seed", [1, 7])
def test_bands_compute_what_single_rows_do(seed: int) -> None:
    mutants = Mutants(seed)
    wanted = mutants.outputs(mutants.compiled.program)
    for banded in banded_chains_of(mutants.network)[::4]:
        np.testing.assert_array_equal(mutants.outputs(mutants.program(banded))[0], wanted[0])


@pytest.mark.parametrize("seed", [2])
def test_rows_that_are_needed_at_once_in_one_place_are_found(seed: int) -> None:
    mutants = Mutants(seed)
    wrong = mutants.in_one_place()[-1]
    with pytest.raises(SimulationError, match="-17"):
        mutants.outputs(mutants.program(wrong))


@pytest.mark.slow
def test_all_mutants_are_found() -> None:
    count, late, seed = 0, 0, 0
    while count < MUTANTS:
        seed += 1
        mutants = Mutants(seed)
        for _, small in mutants.small()[:: max(len(mutants.small()) // 8, 1)]:
            with pytest.raises(SimulationError, match=r"-16|-17"):
                mutants.outputs(mutants.program(small))
            count += 1
        for wrong in mutants.in_one_place()[:2]:
            with pytest.raises(SimulationError, match="-17"):
                mutants.outputs(mutants.program(wrong))
            count += 1
        for chain in chains_of(mutants.network):
            wrong = mutants.early(chain) if chain.below and late < count // 4 else None
            if wrong is not None:
                try:
                    found = mutants.outputs(wrong)
                except SimulationError as error:
                    assert "-18" in str(error)
                    count, late = count + 1, late + 1
                else:  # the input was read by then: no mutant
                    right = mutants.outputs(mutants.compiled.program)
                    np.testing.assert_array_equal(found[0], right[0])
    assert late >= 5
