"""N-EUREKA or the cores, layer by layer: what the planner expects of both, and what both take.

Each layer of MLPerf Tiny's networks that N-EUREKA accepts is predicted for both, alone in L1 and
single-buffered, as the placement compares them; and simulated on both, in the network: once built
with everything on the cores, once with all layers on the engine that it accepts.  Layers take less
in a network than alone where their tensors stay in L1.  Cycles of a convolution on N-EUREKA include
those of an add that the cores compute beside it.

The last table estimates what it would save to share depthwise layers between both: whole blocks of
six rows (of maps with one block: of channels) on the engine, the rest on the cores, which lose time
to the engine's banks; each takes its share of the simulated cycles, and what starting it takes.
Not counted: that the cores would not be free to drop pixels where the engine computes all of them
for a stride of 2, and the records of the same weights for the cores in L1.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import htvm
from benchmarks.artefact import Artefact, main, write
from benchmarks.made_of import RowSource, computed
from benchmarks.siracusa_published import CLUSTER_MS
from byoc_dory.soc.siracusa.description import CLUSTER_CORES
from byoc_dory.soc.siracusa.neureka import NEUREKA
from htvm import zoo
from htvm.inputs import seeded_inputs
from htvm.progress import Progress
from htvm.tools.report.table import Column, Table, text

__all__ = ["made_of", "run"]

COLUMNS = (
    Column("layer"),
    Column("shape"),
    Column("N-EUREKA, predicted", number=True),
    Column("cores, predicted", number=True),
    Column("N-EUREKA, simulated", number=True),
    Column("cores, simulated", number=True),
    Column("chosen"),
    Column("was faster"),
)


_KERNEL_CALL = 700  # cycles of a depthwise kernel on a core before its first channel


@dataclass(frozen=True)
class Row:
    """A layer on both: predicted and simulated cycles, the unit chosen."""

    network: str
    layer: str
    shape: str
    engine_predicted: int
    cores_predicted: int
    engine: int
    cores: int
    chosen: str

    @property
    def faster(self) -> str:
        """The unit that took fewer cycles."""
        return "neureka" if self.engine < self.cores else "cluster"


def rows_of(network: str) -> list[Row]:
    """Build a network for both, run it, and return the layers that both take."""
    model = zoo.build(network)
    inputs = seeded_inputs(model.inputs)
    planned = htvm.build(model, target="siracusa").compiled.planned
    offers = {
        name: {offer.name: offer for offer in found} for name, found in planned.candidates.items()
    }
    both = [
        name for name, found in offers.items() if "neureka" in found and found["neureka"].accepted
    ]
    runs, shapes = {}, {}
    for unit, places in (
        ("neureka", dict.fromkeys(both, "neureka")),
        ("cluster", dict.fromkeys(both, "cluster")),
    ):
        module = htvm.build(model, target="siracusa", policy=places)
        module.run(*inputs)
        report = module.report()
        runs[unit] = {row.name: row.cycles or 0 for row in report.layers}
        shapes = {row.name: row.shape for row in report.layers}
    return [
        Row(
            network,
            name,
            shapes[name],
            offers[name]["neureka"].cycles or 0,
            offers[name]["cluster"].cycles or 0,
            runs["neureka"][name],
            runs["cluster"][name],
            planned.places[name],
        )
        for name in both
    ]


def shared_cycles(row: Row) -> int:
    """The estimated cycles of a depthwise layer on both, at most those of the faster one."""
    result = row.shape.split("-> ")[1].split(",")[0]
    channels, height, _ = (int(size) for size in result.split("x"))
    core = NEUREKA
    single = height <= core.block
    parts = -(-channels // core.output_channels[1]) if single else -(-height // core.block)
    starts = CLUSTER_CORES.fork_cycles + _KERNEL_CALL
    best = min(row.engine, row.cores)
    for own in range(1, parts):  # of the cores
        engine = core.program_cycles + (row.engine - core.program_cycles) * (parts - own) / parts
        cores = (row.cores - starts) * own / parts * (1 + core.beside_percent / 100)
        best = min(best, round(max(engine, starts + cores)))
    return best


def shared(rows: list[Row]) -> str:
    """The table of depthwise layers on both, with the sums."""
    cells, sums = [], [0, 0]
    for row in rows:
        if row.layer.startswith("depthwise"):
            quickest, both = min(row.engine, row.cores), shared_cycles(row)
            sums[0] += quickest
            sums[1] += both
            cells.append((row.network, row.layer, row.shape, f"{quickest:,}", f"{both:,}"))
    cells.append(("all", "", "", f"{sums[0]:,}", f"{sums[1]:,}"))
    columns = (
        Column("network"), Column("layer"), Column("shape"), Column("faster one", number=True),
        Column("both, estimated", number=True),
    )  # fmt: skip
    return text(Table(columns, tuple(cells), title="Depthwise layers, if shared"))


def made_of() -> Iterator[RowSource]:
    """The layers of each network, on both."""
    for network in CLUSTER_MS:
        yield computed(f"layers of {network} on siracusa", partial(rows_of, network))


def run(folder: Path, progress: Progress | None = None) -> Artefact:
    """Compare N-EUREKA and the cores on every layer that both take."""
    progress = progress or Progress()
    found: dict[str, list[Row]] = {}
    for network in CLUSTER_MS:
        with progress.stage(network):
            found[network] = rows_of(network)
    rows = [row for each in found.values() for row in each]
    right = sum(row.chosen == row.faster for row in rows)
    lost = sum(
        min(0, (row.engine - row.cores) * (1 if row.chosen == "cluster" else -1)) for row in rows
    )
    words = (
        f"For {right} of {len(rows)} layers the faster one was chosen; the others cost "
        f"{-lost:,} cycles together."
    )
    tables = [
        text(Table(COLUMNS, tuple(_cells(row) for row in each), title=network))
        for network, each in found.items()
    ]
    artefact = Artefact(
        "siracusa_units",
        "Siracusa: N-EUREKA or the cores, layer by layer",
        "\n\n".join([str(__doc__).strip(), words, *tables, shared(rows)]),
        [{**asdict(row), "faster": row.faster} for row in rows],
    )
    write(artefact, folder)
    return artefact


def _cells(row: Row) -> tuple[str, ...]:
    numbers = (row.engine_predicted, row.cores_predicted, row.engine, row.cores)
    return (row.layer, row.shape, *(f"{cycles:,}" for cycles in numbers), row.chosen, row.faster)


if __name__ == "__main__":
    sys.exit(main(run))
