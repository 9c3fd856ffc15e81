"""A Snitch cluster with ITA: Table I of its paper (cores alone, cores with ITA), and ours.

Operations are those of the products that were really executed, two for each multiply-accumulate;
norms, sums, softmax and activations are no operations here, their elements stand apart.  Ours come
from runs of the generated C on the simulator, all transfers and host code included, at 425 MHz.
The network is zoo:encoder: 24 layers, four feed-forward networks each, seeded weights; times do not
depend on their values.  The cores alone run one layer, whose cycles count 24 times (the paper
summed measured layers, too).

Energy is the published average power times our time: an estimate where our code is about as quick
as the paper's, and too low where it is much quicker, as on the cores alone, because cores that
compute more in a second need more power.

The microbenchmarks calibrated ITA's cycle model, so they are no achievement: what remains of the
published utilization when data begin and end in L2 is to be seen.  Nothing was fitted to the
network.  Snitch's latencies are assumed.  A ratio is ours over published; for the figures of
Table I more is better, but for energy.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import htvm
from benchmarks.artefact import Artefact, main, write
from benchmarks.made_of import RowSource, program
from benchmarks.snitch_published import GEMM, INCONSISTENCIES, OPERATIONS, SHA, TABLE_I, Micro
from byoc_dory.soc.base import Soc
from byoc_dory.soc.snitch_ita.description import soc as snitch_ita
from byoc_dory.soc.snitch_ita.ita_core import Ita
from htvm import zoo
from htvm.inputs import seeded_inputs
from htvm.model import Model
from htvm.progress import Progress
from htvm.result import RunResult
from htvm.tools.report.table import Column, Table, ratio, text
from htvm.tools.zoo.transformers import LAYERS

__all__ = ["made_of", "run"]

STACKED = 4
ITA, CLUSTER = "snitch_ita", "snitch_ita.cluster"
PRODUCTS = (64, 128, 192, 256, 384, 512)
SEQUENCES = (64, 128, 256, 384, 512)

TABLE = (
    Column("figure"),
    Column("multi-core", number=True),
    Column("published", number=True),
    Column("ratio", number=True),
    Column("+ ITA", number=True),
    Column("published", number=True),
    Column("ratio", number=True),
    Column("+ ITA / multi-core", number=True),
    Column("published", number=True),
)
WHERE = (
    Column("run"),
    Column("cycles", number=True),
    Column("array", number=True),
    Column("weights", number=True),
    Column("trigger", number=True),
    Column("DMA alone", number=True),
    Column("host alone", number=True),
    Column("waiting", number=True),
    Column("of it for transfers", number=True),
    Column("DMA in all", number=True),
    Column("DMA hidden", number=True),
)
BY_KIND = (
    Column("run"),
    Column("runs on"),
    Column("layers", number=True),
    Column("MACs", number=True),
    Column("cycles", number=True),
    Column("% of all", number=True),
    Column("MAC/cycle", number=True),
)
MICRO = (
    Column("benchmark"),
    Column("MACs", number=True),
    Column("cycles", number=True),
    Column("utilization of the whole, %", number=True),
    Column("while ITA works, %", number=True),
    Column("published, %", number=True),
    Column("difference, points", number=True),
    Column("GOp/s of the whole", number=True),
    Column("= reference"),
)


@dataclass(frozen=True)
class Measured:
    """A run.

    Attributes:
        name: of the network, and how often it counts.
        macs: executed, in all.
        cycles: in all.
        times: how often what was run counts.
        run: what was run.
        elements: results of layers without products, on the cores, in all.
        exact: whether it computes what the network is defined to.
    """

    name: str
    macs: int
    cycles: int
    times: int
    run: RunResult
    elements: int
    exact: bool

    def per_second(self, soc: Soc) -> float:
        """Inferences per second."""
        return soc.clock_hz / self.cycles

    def gops(self, soc: Soc) -> float:
        """Operations per second, 1e9."""
        return 2 * self.macs * self.per_second(soc) / 1e9


def measure(name: str, model: Model, target: str, times: int = 1) -> Measured:
    """Build a model, run it on the simulator, and compare with the integer definition."""
    inputs = seeded_inputs(model.inputs)
    module = htvm.build(model, target=target)
    ran = module.run(*inputs)
    expected = module.reference(inputs)
    exact = all(np.array_equal(a, b) for a, b in zip(ran.outputs, expected, strict=True))
    assert ran.cycles is not None
    macs = sum(layer.macs for layer in ran.layers)
    kernels = [kernel for code in module.compiled.regions.values() for kernel in code.kernels]
    others = [kernel.layer for kernel in kernels if kernel.layer and not kernel.layer.macs]
    elements = sum(layer.output.elements for layer in others)
    return Measured(name, macs * times, ran.cycles * times, times, ran, elements * times, exact)


def made_of() -> Iterator[RowSource]:
    """Every program that the tables are made of."""
    yield program("one layer", partial(zoo.encoder, layers=1, stacked=STACKED), CLUSTER)
    yield program("24 layers", partial(zoo.encoder, stacked=STACKED), ITA)
    for size in PRODUCTS:
        yield program(f"product of {size}", partial(zoo.gemm, size, size, size), ITA)
    for size in SEQUENCES:
        model = partial(zoo.single_head_attention, sequence=size)
        yield program(f"attention over {size}", model, ITA)


def run(folder: Path, progress: Progress | None = None) -> Artefact:
    """Put Table I of the Snitch cluster with ITA, and the microbenchmarks, beside ours."""
    progress = progress or Progress()
    soc = snitch_ita()
    with progress.stage("encoder, one layer on the cores"):
        one = zoo.encoder(layers=1, stacked=STACKED)
        cores = measure("one layer, 24 times", one, CLUSTER, LAYERS)
    with progress.stage("encoder with ITA"):
        ita = measure("24 layers", zoo.encoder(stacked=STACKED), ITA)
    micro: list[tuple[Measured, Micro | None]] = []
    for size in PRODUCTS:
        with progress.stage(f"product of {size}"):
            found = measure(f"product {size}x{size}x{size}", zoo.gemm(size, size, size), ITA)
            micro.append((found, GEMM if size == 512 else None))
    for size in SEQUENCES:
        with progress.stage(f"attention over {size}"):
            model = zoo.single_head_attention(sequence=size)
            found = measure(f"attention S={size} E=128 P=64", model, ITA)
            micro.append((found, SHA if size == 128 else None))
    runs = [(f"multi-core, {cores.name}", cores), (f"+ ITA, {ita.name}", ita)]
    artefact = Artefact(
        "snitch_table_i",
        "Snitch with ITA, Table I: MobileBERT's encoder, and microbenchmarks",
        "\n\n".join(
            [
                str(__doc__).strip(),
                _worse(cores, ita, micro, soc),
                text(Table(TABLE, tuple(_rows(cores, ita, soc)), title="Table I")),
                _elements(cores, ita),
                text(Table(BY_KIND, tuple(_by_kind(runs)), title="What runs where")),
                text(
                    Table(
                        WHERE,
                        tuple(_where(name, found) for name, found in runs)
                        + tuple(_where(found.name, found) for found, _ in micro),
                        title="What the cycles are spent on, and what waits for what",
                    )
                ),
                text(
                    Table(
                        MICRO,
                        tuple(_micro(found, wanted, soc) for found, wanted in micro),
                        title="Microbenchmarks, by size (published: calibration)",
                    )
                ),
                "What the paper prints does not all agree:\n\n"
                + "\n".join(f"* {line}" for line in INCONSISTENCIES),
            ]
        ),
        _data(cores, ita, micro, soc),
    )
    write(artefact, folder)
    return artefact


# ---------------------------------------------------------------------- Table I


@dataclass(frozen=True)
class _Figure:
    """A line of Table I: ours and published, of both configurations."""

    title: str
    ours: tuple[float, float]
    published: tuple[float, float]
    less_is_better: bool = False
    is_size: bool = False

    @property
    def ratios(self) -> tuple[float, float]:
        """Ours over published."""
        return (self.ours[0] / self.published[0], self.ours[1] / self.published[1])

    @property
    def gains(self) -> tuple[float, float]:
        """What ITA gains: ours, published."""
        ours, published = self.ours[1] / self.ours[0], self.published[1] / self.published[0]
        return (1 / ours, 1 / published) if self.less_is_better else (ours, published)


def _figures(cores: Measured, ita: Measured, soc: Soc) -> list[_Figure]:
    published = (TABLE_I[CLUSTER], TABLE_I[ITA])
    powers = (soc.power("cluster"), soc.power("ita", "cluster"))
    both = (cores, ita)
    gops = (cores.gops(soc), ita.gops(soc))
    rates = (cores.per_second(soc), ita.per_second(soc))
    watts = [power.milliwatts / 1000 for power in powers if power is not None]
    energy = (1000 * watts[0] / rates[0], 1000 * watts[1] / rates[1])
    efficiency = (gops[0] / watts[0], gops[1] / watts[1])
    done = (2 * both[0].macs / 1e9, 2 * both[1].macs / 1e9)
    return [
        _Figure("GOp/s", gops, (published[0].gops, published[1].gops)),
        _Figure("inferences/s", rates, (published[0].per_second, published[1].per_second)),
        _Figure("GOp an inference", done, (OPERATIONS, OPERATIONS), is_size=True),
        _Figure(
            "mJ an inference (published power)",
            energy,
            (published[0].millijoules, published[1].millijoules),
            less_is_better=True,
        ),
        _Figure(
            "GOp/J (published power)",
            efficiency,
            (published[0].gop_per_joule, published[1].gop_per_joule),
        ),
    ]


def _rows(cores: Measured, ita: Measured, soc: Soc) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for line in _figures(cores, ita, soc):
        (ours, with_ita), (known, known_with) = line.ours, line.published
        gain, published = line.gains
        rows.append(
            (
                line.title,
                f"{ours:.3g}", f"{known:g}", f"{line.ratios[0]:.2f}",
                f"{with_ita:.3g}", f"{known_with:g}", f"{line.ratios[1]:.2f}",
                f"{gain:.3g}", f"{published:.3g}",
            )
        )  # fmt: skip
    return rows


def _elements(cores: Measured, ita: Measured) -> str:
    """What is no operation here."""
    found = [
        f"{name}: {measured.elements / 1e6:.1f} M of {2 * measured.macs / 1e9:.2f} GOp"
        for name, measured in (("multi-core", cores), ("with ITA", ita))
    ]
    return (
        "Elements that norms, sums and softmax on the cores compute beside these operations "
        f"(ITA's own softmax is in its products): {', '.join(found)}."
    )


def _worse(
    cores: Measured, ita: Measured, micro: list[tuple[Measured, Micro | None]], soc: Soc
) -> str:
    """In words, where ours is worse than published; first the worst."""
    found = []
    for line in _figures(cores, ita, soc):
        if line.is_size:
            continue
        for name, value in zip(("multi-core", "with ITA"), line.ratios, strict=True):
            share = 1 / value if line.less_is_better else value
            found.append((share, f"{line.title}, {name}"))
        ours, known = line.gains
        found.append((ours / known, f"{line.title}, what ITA gains ({ours:.3g} for {known:.3g})"))
    for measured, wanted in micro:
        if wanted is not None:
            share = _utilizations(measured, soc)[0] / wanted.utilization
            found.append((share, f"utilization of the whole, {measured.name}"))
    lines = [f"* {share:.2f} of what is published: {words}" for share, words in sorted(found)]
    lines = [line for (share, _), line in zip(sorted(found), lines, strict=True) if share < 0.995]
    every = (cores, ita, *(measured for measured, _ in micro))
    exact = "yes" if all(measured.exact for measured in every) else "NO"
    heading = "Ours is worse in:" if lines else "Ours is nowhere worse."
    return "\n".join([f"All outputs as defined: {exact}. {heading}", "", *lines]).strip()


# ---------------------------------------------------------------------- where the cycles go


def _by_kind(runs: list[tuple[str, Measured]]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name, found in runs:
        cycles: Counter[str] = Counter()
        macs: Counter[str] = Counter()
        layers: Counter[str] = Counter()
        for layer in found.run.layers:
            place = layer.accelerator if layer.kind != "cpu" else "cores, kernels of TVM"
            cycles[place] += layer.cycles or 0
            macs[place] += layer.macs
            layers[place] += 1
        for place, spent in cycles.most_common():
            rows.append(
                (
                    name, place, f"{layers[place] * found.times:,}",
                    f"{macs[place] * found.times:,}", f"{spent * found.times:,}",
                    f"{100 * spent * found.times / found.cycles:.1f}",
                    ratio(macs[place], spent) if macs[place] else "",
                )
            )  # fmt: skip
    return rows


def _where(name: str, found: Measured) -> tuple[str, ...]:
    causes, times = found.run.causes, found.times
    assert causes is not None
    values = (
        causes.array, causes.weights, causes.trigger, causes.dma_alone, causes.host_alone,
        causes.waiting, causes.starved, causes.dma, causes.dma_hidden,
    )  # fmt: skip
    return (name, f"{found.cycles:,}", *(f"{value * times:,}" for value in values))


# ---------------------------------------------------------------------- microbenchmarks


def _utilizations(found: Measured, soc: Soc) -> tuple[float, float]:
    """Percent of ITA's array, of the whole run and while ITA is busy."""
    core, causes = soc.accelerator("ita"), found.run.causes
    assert isinstance(core, Ita) and causes is not None
    least = found.macs / core.peak_macs
    busy = dict(found.run.units).get("ita", 0)
    return 100 * least / found.cycles, 100 * least / busy if busy else 0.0


def _micro(found: Measured, wanted: Micro | None, soc: Soc) -> tuple[str, ...]:
    whole, busy = _utilizations(found, soc)
    return (
        found.name,
        f"{found.macs:,}",
        f"{found.cycles:,}",
        f"{whole:.1f}",
        f"{busy:.1f}",
        "" if wanted is None else f"{wanted.utilization}",
        ""
        if wanted is None
        else f"{whole - wanted.utilization:+.1f}, {busy - wanted.utilization:+.1f}",
        f"{found.gops(soc):.0f}",
        "yes" if found.exact else "NO",
    )


def _data(
    cores: Measured, ita: Measured, micro: list[tuple[Measured, Micro | None]], soc: Soc
) -> dict[str, Any]:
    def record(found: Measured) -> dict[str, Any]:
        causes = found.run.causes
        return {
            "name": found.name,
            "macs": found.macs,
            "cycles": found.cycles,
            "exact": found.exact,
            "causes": None if causes is None else vars(causes),
        }

    return {
        "clock_hz": soc.clock_hz,
        "table_i": [
            {"figure": line.title, "ours": line.ours, "published": line.published}
            for line in _figures(cores, ita, soc)
        ],
        "runs": [record(cores), record(ita)],
        "micro": [
            {
                **record(found),
                "utilization": _utilizations(found, soc),
                "published": None if wanted is None else wanted.utilization,
            }
            for found, wanted in micro
        ],
    }


if __name__ == "__main__":
    sys.exit(main(run))
