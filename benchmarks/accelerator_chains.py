"""What chains of rows on accelerators would save by the cycle model, without building them.

On a CPU target, consecutive operators may advance together by rows (`htvm/aot/chains`).  On an
accelerator, a map between two layers is in L1 as a whole, or goes to L2 and back, tile by tile.  In
a chain, it would be a strip in L1: the rows that are still read, each computed once.  This computes
how many predicted cycles chains would save: the region's integer program again, in which a run of
two to four layers, each the only reader of the one before, may also be a chain of so many rows at a
time.  All its strips and all its layers' constants are in L1 together.

Two things are left out that chains would cost: rows move to the beginning of a strip for nothing,
and going from layer to layer costs no more than from tile to tile.  One is left out that they could
save: each layer hides its transfers behind its own computation, not behind that of the others.

Layouts without contiguous rows have no chains.  What is saved after the search (sums beside an
engine, constants, last tiles) is in neither figure.  *Moved* is what goes between L2 and L1 without
constants.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import pulp

import htvm
from benchmarks.large_networks import NETWORKS, write
from byoc_dory.cost import Cost
from byoc_dory.emit.layout import RowLayout
from byoc_dory.layers import Add, Convolution, Layer
from byoc_dory.options import TilingOptions
from byoc_dory.region import RegionCode
from byoc_dory.residency.choices import LayerChoices
from byoc_dory.residency.problem import Stay
from byoc_dory.soc.base import Accelerator, round_up
from byoc_dory.solver import solve_program
from byoc_dory.tileloop.cycles import traffic_of
from byoc_dory.tiling import Tile
from byoc_dory.tiling.problem import solution_of
from htvm.tools.cli.arguments import open_model

__all__ = ["Saving", "saving_of", "main"]

_LONGEST = 4  # layers of a chain
_ROWS = (*range(1, 13), *range(18, 121, 6))  # of a chain's result at a time


@dataclass(frozen=True)
class Column:
    """One way to execute some layers: one layer by itself, or a chain.

    Attributes:
        first, last: the layers.
        finds: the maps in L1 as a whole that they read, by name; and those that they read from L2.
        leaves: whether their result stays in L1 as a whole.
        bytes: of L1, without maps that stay as a whole.
        cycles: predicted cycles.
        moved: bytes between L2 and L1, without constants.
    """

    first: int
    last: int
    finds: Mapping[str, bool]
    leaves: bool
    bytes: int
    cycles: int
    moved: int


@dataclass(frozen=True)
class Saving:
    """The regions of a network as they are planned, and with chains.

    Attributes:
        cycles, with_chains: predicted cycles as planned; with chains.
        moved, moved_with_chains: bytes between L2 and L1, likewise.
        chains: first and last layer of each chain.
        proven: whether no other chains take fewer cycles.
    """

    cycles: int = 0
    with_chains: int = 0
    moved: int = 0
    moved_with_chains: int = 0
    chains: tuple[str, ...] = ()
    proven: bool = True


class _Region:
    """The layers of a region, and all ways to execute them."""

    def __init__(self, code: RegionCode, cost: Cost) -> None:
        kernels = [each for each in code.kernels if each.layer is not None]
        self.cost = cost
        self.layers: list[Layer] = [each.layer for each in kernels if each.layer is not None]
        self.homes: list[Accelerator] = [cost.soc.accelerator(each.accelerator) for each in kernels]
        self.readers: dict[str, list[int]] = {}
        for number, layer in enumerate(self.layers):
            for tensor in layer.inputs:
                self.readers.setdefault(tensor.name, []).append(number)
        outputs = {tensor.name for tensor in code.outputs}
        self.stays = {
            layer.output.name: Stay(
                layer.output.name,
                round_up(home.layout(cost.soc).stored_bytes(layer.output), 16),
                first,
                max(self.readers[layer.output.name]),
            )
            for first, (home, layer) in enumerate(zip(self.homes, self.layers, strict=True))
            if layer.output.name in self.readers and layer.output.name not in outputs
        }
        self.tilers = [cost.tiler(*pair) for pair in zip(self.homes, self.layers, strict=True)]
        self.choices = [
            LayerChoices(
                tiler,
                tuple(tensor.name for tensor in layer.inputs),
                tuple(tensor.name in self.stays for tensor in layer.inputs),
                layer.output.name in self.stays,
                0,
            )
            for tiler, layer in zip(self.tilers, self.layers, strict=True)
        ]
        self.limit = min(tiler.problem.l1_limit for tiler in self.tilers)

    # ------------------------------------------------------------------ columns

    def columns(self) -> Iterator[Column]:
        """Yield every way to execute some layers."""
        for number, offered in enumerate(self.choices):
            for choice in offered.choices:
                residents = choice.resident_inputs, choice.resident_output
                found = self._layer(number, choice.tile, choice.buffers, *residents)
                yield from (found,) if found is not None else ()
        for first in range(len(self.layers)):
            for last in range(first + 1, min(first + _LONGEST, len(self.layers))):
                if not self._follows(last):
                    break
                yield from self._chains(first, last)

    def _follows(self, number: int) -> bool:
        """Whether a layer can be in a chain with the one before."""
        for each in (number - 1, number):
            maps = isinstance(self.layers[each], Convolution | Add)
            if not maps or not isinstance(self.homes[each].layout(self.cost.soc), RowLayout):
                return False
        return self.readers.get(self.layers[number - 1].output.name) == [number]

    def _layer(
        self, number: int, tile: Tile, buffers: int, finds: tuple[bool, ...], leaves: bool
    ) -> Column | None:
        """Return one layer as a column; None if it does not fit L1."""
        choice = self.choices[number].choice(tile, buffers, finds, leaves)
        if choice is None:
            return None
        layer, tiler = self.layers[number], self.tilers[number]
        plan = tiler.plan(solution_of(tiler.problem, tile), buffers, finds, leaves)
        options = self.cost.options
        moved = traffic_of(self.homes[number].tile_program(self.cost.soc, layer, plan, options))
        where = {t.name: found for t, found in zip(layer.inputs, finds, strict=True)}
        size = moved.read + moved.written
        return Column(number, number, where, leaves, choice.bytes, choice.cycles, size)

    def _chains(self, first: int, last: int) -> Iterator[Column]:
        """Yield the chains of some layers."""
        inside = {self.layers[number].output.name for number in range(first, last)}
        borders = {
            tensor.name: (False, True) if tensor.name in self.stays else (False,)
            for layer in self.layers[first : last + 1]
            for tensor in layer.inputs
            if tensor.name not in inside
        }
        leaves = (False, True) if self.layers[last].output.name in self.stays else (False,)
        for rows in (rows for rows in _ROWS if rows < self.layers[last].oy):
            for *finds, leave in itertools.product(*borders.values(), leaves):
                where = dict(zip(borders, finds, strict=True))
                for buffers in (1, 2):
                    found = self._chain(first, last, rows, buffers, where, leave)
                    yield from (found,) if found is not None else ()

    def _chain(
        self, first: int, last: int, rows: int, buffers: int, where: dict[str, bool], leave: bool
    ) -> Column | None:
        """Return a chain that makes so many rows of its result at a time."""
        parts, strips, made = [], 0, rows
        for number in range(last, first - 1, -1):
            layer = self.layers[number]
            whole = self.tilers[number].problem.whole
            tile = Tile(whole.k, whole.c, min(made, layer.oy), whole.x)
            finds = tuple(where.get(tensor.name, True) for tensor in layer.inputs)
            part = self._layer(number, tile, buffers, finds, leave if number == last else True)
            if part is None:
                return None
            parts.append(part)
            if number > first:
                before, kept = self.layers[number - 1], 0
                if isinstance(layer, Convolution):
                    made *= layer.stride[0]
                    kept = max(0, layer.fy - layer.stride[0])
                strips += min(before.oy, made + kept) * before.ox * before.K
        size = strips + sum(part.bytes for part in parts)
        if size > self.limit:
            return None
        cycles, moved = sum(part.cycles for part in parts), sum(part.moved for part in parts)
        return Column(first, last, where, leave, size, cycles, moved)

    # ------------------------------------------------------------------ the program

    def best(self, node_limit: int) -> tuple[list[Column], bool]:
        """Return the columns with fewest cycles, and whether that is proven."""
        columns = _undominated(self.columns())
        program = pulp.LpProblem("chains", pulp.LpMinimize)
        picks = [
            program.add_variable(f"z{number}", cat=pulp.LpBinary) for number in range(len(columns))
        ]
        whole = {
            name: program.add_variable(f"w{number}", cat=pulp.LpBinary)
            for number, name in enumerate(self.stays)
        }
        chosen = list(zip(picks, columns, strict=True))
        for number, layer in enumerate(self.layers):
            here = [(z, each) for z, each in chosen if each.first <= number <= each.last]
            program += pulp.lpSum(z for z, _ in here) == 1
            name = layer.output.name
            if name in whole:
                made = [z for z, each in here if each.last == number and each.leaves]
                program += pulp.lpSum(made) == whole[name]
            for tensor in {tensor.name for tensor in layer.inputs} & set(whole):
                read = [z for z, each in here if each.finds.get(tensor, False)]
                program += pulp.lpSum(read) == whole[tensor]
            alive = [stay for stay in self.stays.values() if stay.first <= number <= stay.last]
            held = pulp.lpSum(stay.bytes * whole[stay.name] for stay in alive)
            program += pulp.lpSum(each.bytes * z for z, each in here) + held <= self.limit
        program.setObjective(pulp.lpSum(each.cycles * z for z, each in chosen))
        outcome = solve_program(program, node_limit)
        return [each for z, each in chosen if z.value() > 0.5], outcome.proven


def _undominated(columns: Iterator[Column]) -> list[Column]:
    """Return the columns that no other of the same ends beats in both bytes and cycles."""
    kept: dict[tuple[object, ...], list[Column]] = {}
    for column in sorted(columns, key=lambda each: (each.cycles, each.bytes)):
        ends = (column.first, column.last, *column.finds.items(), column.leaves)
        rivals = kept.setdefault(ends, [])
        if not rivals or column.bytes < rivals[-1].bytes:
            rivals.append(column)
    return list(itertools.chain.from_iterable(kept.values()))


def saving_of(regions: Mapping[str, RegionCode], cost: Cost) -> Saving:
    """Return what chains would save in all regions of a network."""
    cycles = moved = 0
    best: list[Column] = []
    chains: list[str] = []
    proven = True
    for code in regions.values():
        assert code.plan is not None
        cycles += code.plan.cycles
        programs = [kernel.program for kernel in code.kernels if kernel.program is not None]
        moved += sum(each.read + each.written for each in map(traffic_of, programs))
        region = _Region(code, cost)
        columns, found = region.best(cost.options.node_limit)
        best, proven = [*best, *columns], proven and found
        for each in columns:
            if each.first < each.last:
                names = (region.layers[number].name for number in (each.first, each.last))
                chains.append(" to ".join(names))
    with_chains, moved_with_chains = (
        sum(each.cycles for each in best),
        sum(each.moved for each in best),
    )
    return Saving(cycles, with_chains, moved, moved_with_chains, tuple(chains), proven)


def model_of(network: str) -> htvm.Model:
    """Return a file, a network of the zoo, or one of `large_networks` for images of so many rows.

    The latter are named like ``mobilenet_v2:96``.
    """
    name, _, side = network.partition(":")
    if name not in NETWORKS:
        return open_model(network)
    with tempfile.TemporaryDirectory() as folder:
        write(name, Path(folder) / "network.onnx", int(side))
        return htvm.load(Path(folder) / "network.onnx")


def line(network: str, target: str, kib: int) -> str:
    """Return the saving of a network on a target with so much L1, 0 for all of it."""
    tiling = TilingOptions(l1_budget=kib * 1024) if kib else TilingOptions()
    compiled = htvm.build(model_of(network), target=target, tiling=tiling).compiled
    found = saving_of(compiled.regions, compiled.cost)
    saved = 1 - found.with_chains / found.cycles
    return (
        f"{network:22} {target:16} {kib or 'all':>4} KiB "
        f"{found.cycles:>10,} -> {found.with_chains:>10,} cycles, {saved:5.1%} saved, "
        f"{found.moved:>10,} -> {found.moved_with_chains:>10,} B moved"
        f"{'' if found.proven else ', not proven'}; {', '.join(found.chains) or 'no chains'}"
    )


@click.command(help=__doc__)
@click.argument("networks", nargs=-1, required=True)
@click.option("-t", "--target", "targets", multiple=True, default=("siracusa",))
@click.option("--kib", type=int, multiple=True, help="KiB of L1; 0, the default: all of it.")
def main(networks: Sequence[str], targets: Sequence[str], kib: Sequence[int]) -> None:
    """Print a line for each network, target and size of L1."""
    for network, target, size in itertools.product(networks, targets, kib or (0,)):
        click.echo(line(network, target, size))


if __name__ == "__main__":
    main()
