"""MLPerf Tiny's networks on Siracusa, L2 to L2: published, ours, and the cores at work.

Ours come from runs of the generated C on the simulator: all transfers, drivers and host code
included, input and output in L2, at 360 MHz (assumed; the publication does not say its clock).
Weights are seeded; times do not depend on their values.  Where a published figure exists it is that
of eight cores without N-EUREKA.  The difference is schedule and kernels, not faster hardware: the
published stack copies windows (im2col) for kernels of four channels by two pixels and moves every
layer through L2; ours multiply blocks of four by four in place, and keep results in L1 where they
fit.  Our cores have the published cores' operations in another encoding; conflicts in the banks of
L1 are simulated, instruction misses and other users of L2 are not.

Energy is an estimate: the only published average power (490 uJ a token at 340 tokens/s, which is
167 mW, of the language model with the engine at work) times our time, whoever works.  The engine's
published 8.84 TOp/J is its best efficiency, at fewer bits, without L2, cores and transfers: an
inference's operations at that rate are a floor, which no system reaches.  GAP9's are measured.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import htvm
from benchmarks.artefact import Artefact, main, write
from benchmarks.made_of import RowSource, program
from benchmarks.siracusa_published import CLUSTER_MS, ENGINE_TOPJ, GAP9
from byoc_dory.soc.registry import resolve
from htvm import zoo
from htvm.inputs import seeded_inputs
from htvm.progress import Progress
from htvm.result import RunResult
from htvm.tools.report.table import Column, Table, text

__all__ = ["made_of", "run"]

TARGETS = ("siracusa.cluster", "siracusa")
TITLES = {"siracusa.cluster": "eight cores", "siracusa": "with N-EUREKA"}

TABLE = (
    Column("network"),
    Column("target"),
    Column("MACs", number=True),
    Column("Mcycles", number=True),
    Column("MAC/cycle", number=True),
    Column("ms", number=True),
    Column("published ms", number=True),
    Column("ratio", number=True),
    Column("GAP9 ms, measured", number=True),
    Column("uJ", number=True),
    Column("GAP9 uJ", number=True),
    Column("= reference"),
)
ENERGY = (
    Column("network"),
    Column("uJ, cores", number=True),
    Column("uJ, with N-EUREKA", number=True),
    Column("uJ, floor: published 8.84 TOp/J", number=True),
    Column("GAP9 uJ, measured", number=True),
    Column("ours / GAP9", number=True),
    Column("mW, GAP9", number=True),
    Column("mW, published average", number=True),
)
BUSY = (
    Column("network"),
    Column("target"),
    Column("cycles", number=True),
    Column("cores at work", number=True),
    Column("N-EUREKA at work", number=True),
    Column("both", number=True),
    Column("DMA alone", number=True),
    Column("host alone", number=True),
)


@dataclass(frozen=True)
class Run:
    """A network on a target.

    Attributes:
        network, target: names.
        macs, cycles: of an inference.
        result: what was run.
        exact: whether all outputs equal the integer definition.
    """

    network: str
    target: str
    macs: int
    cycles: int
    result: RunResult
    exact: bool


def measure(network: str, target: str) -> Run:
    """Build a network, run it on the simulator, and compare with the integer definition."""
    model = zoo.build(network)
    inputs = seeded_inputs(model.inputs)
    module = htvm.build(model, target=target)
    result = module.run(*inputs)
    assert result.cycles is not None
    pairs = zip(result.outputs, module.reference(inputs), strict=True)
    exact = all(np.array_equal(a, b) for a, b in pairs)
    macs = sum(layer.macs for layer in result.layers)
    return Run(network, target, macs, result.cycles, result, exact)


def made_of() -> Iterator[RowSource]:
    """Every program that the table is made of."""
    for network in CLUSTER_MS:
        for target in TARGETS:
            yield program(network, partial(zoo.build, network), target)


def run(folder: Path, progress: Progress | None = None) -> Artefact:
    """Put the published latencies on Siracusa beside ours."""
    progress = progress or Progress()
    runs = []
    for network in CLUSTER_MS:
        for target in TARGETS:
            with progress.stage(f"{network} on {target}"):
                runs.append(measure(network, target))
    artefact = Artefact(
        "siracusa",
        "Siracusa: MLPerf Tiny's networks on eight cores, and with N-EUREKA",
        "\n\n".join(
            [
                str(__doc__).strip(),
                _worse(runs),
                text(Table(TABLE, tuple(_row(each) for each in runs), title="Inferences")),
                text(Table(ENERGY, _energy(runs), title=_energy_title(runs))),
                text(Table(BUSY, tuple(_busy(each) for each in runs), title="Who is at work")),
            ]
        ),
        [_record(each) for each in runs],
    )
    write(artefact, folder)
    return artefact


def _ms(found: Run) -> float:
    return resolve(found.target).soc.cycles_to_ms(found.cycles)


def _published(found: Run) -> float | None:
    return CLUSTER_MS[found.network] if found.target == "siracusa.cluster" else None


def _uj(found: Run) -> float:
    power = resolve(found.target).soc.power("cluster")
    assert power is not None
    return power.milliwatts * _ms(found)


def _worse(runs: list[Run]) -> str:
    """In words, where ours is worse than published; first the worst."""
    found = []
    for each in runs:
        published = _published(each)
        if published is not None and _ms(each) > published:
            found.append((published / _ms(each), f"{each.network} on {TITLES[each.target]}"))
        if each.target == "siracusa" and _ms(each) > GAP9[each.network].ms:
            found.append((GAP9[each.network].ms / _ms(each), f"{each.network} than GAP9"))
    exact = "yes" if all(each.exact for each in runs) else "NO"
    heading = "Ours is slower:" if found else "Ours is nowhere slower."
    lines = [f"* {share:.2f} of what is published: {words}" for share, words in sorted(found)]
    return "\n".join([f"All outputs as defined: {exact}. {heading}", "", *lines]).strip()


def _row(found: Run) -> tuple[str, ...]:
    published, measured = _published(found), GAP9[found.network]
    return (
        found.network,
        TITLES[found.target],
        f"{found.macs:,}",
        f"{found.cycles / 1e6:.3f}",
        f"{found.macs / found.cycles:.1f}",
        f"{_ms(found):.3f}",
        "" if published is None else f"{published:g}",
        "" if published is None else f"{_ms(found) / published:.2f}",
        f"{measured.ms:g}",
        f"{_uj(found):.0f}",
        f"{measured.uj:g}",
        "yes" if found.exact else "NO",
    )


def _energy_title(runs: list[Run]) -> str:
    """Return the title, with the networks for which the estimate is worse than GAP9's energy."""
    more = [
        each.network
        for each in runs
        if each.target == "siracusa" and _uj(each) > GAP9[each.network].uj
    ]
    worse = f"; more than GAP9's measured for {', '.join(more)}" if more else ""
    return f"Energy of an inference, estimated{worse}"


def _energy(runs: list[Run]) -> tuple[tuple[str, ...], ...]:
    """Return a row for each network: estimates, published figures, and what they are of."""
    found = {(each.network, each.target): each for each in runs}
    rows = []
    for network, measured in GAP9.items():
        cores, engine = (found[network, target] for target in TARGETS)
        power = resolve(engine.target).soc.power("neureka", "cluster")
        assert power is not None
        numbers = (
            f"{_uj(cores):.0f}",
            f"{_uj(engine):.0f}",
            f"{2 * engine.macs / ENGINE_TOPJ * 1e-6:.2f}",
            f"{measured.uj:g}",
            f"{_uj(engine) / measured.uj:.2f}",
            f"{measured.uj / measured.ms:.0f}",
            f"{power.milliwatts:g}",
        )
        rows.append((network, *numbers))
    return tuple(rows)


def _busy(found: Run) -> tuple[str, ...]:
    units, causes = dict(found.result.units), found.result.causes
    assert causes is not None
    cores, engine = units.get("cluster", 0), units.get("neureka", 0)
    at_work = causes.array + causes.weights + causes.trigger
    return (
        found.network,
        TITLES[found.target],
        f"{found.cycles:,}",
        f"{cores:,}",
        f"{engine:,}",
        f"{max(0, cores + engine - at_work):,}",
        f"{causes.dma_alone:,}",
        f"{causes.host_alone:,}",
    )


def _record(found: Run) -> dict[str, Any]:
    causes = found.result.causes
    return {
        "network": found.network,
        "target": found.target,
        "macs": found.macs,
        "cycles": found.cycles,
        "ms": _ms(found),
        "published_ms": _published(found),
        "exact": found.exact,
        "units": dict(found.result.units),
        "causes": None if causes is None else vars(causes),
    }


if __name__ == "__main__":
    sys.exit(main(run))
