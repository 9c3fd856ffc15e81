"""HTVM (DAC 2023), Table I: latency and size of the MLPerf Tiny networks on DIANA, and ours.

Three figures stand beside each other, all from runs of the generated C on the simulator:

* published: printed in the paper, measured on the chip;
* as published: `schedule="published"`, the host's kernels at the cost they have in the published
  runs by the fit.  The constants were fitted to the column "Peak" and to "HTVM" of the digital
  core, so agreement there shows a faithful schedule and no achievement; "HTVM" of the other columns
  (marked *) was not used and is the test;
* ours: `schedule="overlapped"`, the simulated host's own cycles included.  The digital core
  computes depthwise layers as convolutions over 16 channels with zero weights between them, which
  takes far fewer cycles and 2.8 times the bytes of their weights.

The networks have the published topologies and random weights; latency and size do not depend on
their values.  The CPU columns do not compare: the published CPU code uses SIMD instructions which
the simulated core lacks.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import htvm
from benchmarks.artefact import Artefact, main, write
from benchmarks.made_of import DIGESTS, RowSource, program
from benchmarks.measure import (
    CONFIGURATIONS,
    NETWORKS,
    Configuration,
    Measured,
    measure,
    measure_model,
    row_of,
)
from benchmarks.published import CPU, TABLE_I
from byoc_dory.errors import L2OverflowError
from byoc_dory.soc.diana.description import DIANA
from htvm import zoo
from htvm.inputs import seeded_inputs
from htvm.progress import Progress
from htvm.tools.report.table import Column, Table, milliseconds, ratio, text

__all__ = ["in_short", "made_of", "run"]

_MS = DIANA.clock_hz / 1000

LATENCY = (
    Column("network"),
    Column("configuration"),
    Column("Peak published", number=True),
    Column("as published", number=True),
    Column("ratio", number=True),
    Column("HTVM published", number=True),
    Column("as published", number=True),
    Column("ratio", number=True),
    Column("with our host", number=True),
    Column("ours", number=True),
    Column("ours / Peak", number=True),
    Column("= reference"),
)
CAUSES = (
    Column("network"),
    Column("configuration"),
    Column("schedule"),
    Column("array", number=True),
    Column("weights", number=True),
    Column("trigger", number=True),
    Column("DMA alone", number=True),
    Column("host alone", number=True),
    Column("sum", number=True),
    Column("waiting", number=True),
    Column("DMA in all", number=True),
    Column("bytes/calls/commands"),
)
SIZES = (
    Column("network"),
    Column("configuration"),
    Column("code B", number=True),
    Column("constants B", number=True),
    Column("kB", number=True),
    Column("published kB", number=True),
    Column("ratio", number=True),
    Column("arena B", number=True),
    Column("least arena B", number=True),
)
PLANS = (
    Column("network"),
    Column("all digital", number=True),
    Column("all analog", number=True),
    Column("published rule", number=True),
    Column("policy latency", number=True),
    Column("never slower"),
    Column("digital, dense in one trigger (assumed)", number=True),
)
PLANNED = (
    ("diana.digital", None),
    ("diana.analog", None),
    ("diana.mixed", None),
    ("diana", "latency"),
)
"""Targets and policies of the 8-bit networks."""
KERNELS: tuple[Literal["default", "scheduled"], ...] = ("default", "scheduled")
PADDING = (
    Column("network"),
    Column("configuration"),
    Column("of"),
    Column("payload B", number=True),
    Column("padding B", number=True),
    Column("why"),
)
BASELINE = (
    Column("network"),
    Column("CPU kernels"),
    Column("ms", number=True),
    Column("published ms", number=True),
    Column("code B", number=True),
    Column("kB", number=True),
    Column("published kB", number=True),
    Column("L2 B", number=True),
    Column("map of L2: code, constants, arena, stack, inputs and outputs, other"),
)


def made_of() -> Iterator[RowSource]:
    """Every program that the table is made of."""
    for network in NETWORKS:
        for configuration in CONFIGURATIONS:
            for schedule in ("published", "overlapped"):
                yield row_of(network, configuration, schedule)
        model = partial(zoo.build, network)
        for target, policy in PLANNED:
            yield program(network, model, target, schedule="overlapped", policy=policy)
        for kernels in KERNELS:
            yield program(network, model, "diana.cpu", cpu_kernels=kernels)


def run(folder: Path, progress: Progress | None = None) -> Artefact:
    """Put Table I, as published and ours, beside the published one."""
    progress = progress or Progress()
    rows: dict[str, list[tuple[str, ...]]] = {
        name: [] for name in ("latency", "causes", "plans", "sizes", "padding", "cpu")
    }
    data: list[dict[str, Any]] = []
    for network in NETWORKS:
        for configuration in CONFIGURATIONS:
            with progress.stage(f"{network}, {configuration.title}"):
                there = measure(network, configuration, "published")
                ours = measure(network, configuration, "overlapped")
            if there is None or ours is None:
                rows["latency"].append((network, configuration.title, "exceeds L2"))
                continue
            rows["latency"].append(_latency(network, configuration, there, ours))
            rows["causes"] += [
                _causes(network, configuration, "published", there),
                _causes(network, configuration, "overlapped", ours),
            ]
            rows["sizes"].append(_sizes(network, configuration, ours))
            rows["padding"] += [
                (
                    network, configuration.title, entry.what, f"{entry.payload:,}",
                    f"{entry.padding:,}", entry.why,
                )
                for entry in ours.padding
            ]  # fmt: skip
            data.append(_record(network, configuration, there, ours))
        with progress.stage(f"{network}, plans over both cores"):
            rows["plans"].append(_plans(network))
        with progress.stage(f"{network}, CPU"):
            rows["cpu"] += [_baseline(network, kernels) for kernels in KERNELS]
    artefact = Artefact(
        "table_i",
        "Table I: latency (ms at 260 MHz) and size on DIANA",
        "\n\n".join(
            [
                str(__doc__).strip(),
                text(Table(LATENCY, tuple(rows["latency"]), title="Latency, ms")),
                text(Table(CAUSES, tuple(rows["causes"]), title="What the cycles are spent on")),
                text(
                    Table(
                        PLANS,
                        tuple(rows["plans"]),
                        title="The 8-bit networks, planned over both cores and retargeted, in "
                        "cycles (overlapped).  The last column is an assumption: the chip is known "
                        "with up to 16 outputs of a dense layer per trigger",
                    )
                ),
                text(Table(SIZES, tuple(rows["sizes"]), title="Size, ours (code and constants)")),
                text(Table(PADDING, tuple(rows["padding"]), title="Padding that layouts force")),
                text(Table(BASELINE, tuple(rows["cpu"]), title="TVM on the CPU alone")),
            ]
        ),
        {"clock_hz": DIANA.clock_hz, "rows": data},
    )
    write(artefact, folder)
    return artefact


def in_short() -> str:
    """The committed latencies with the digital core, published and ours, as rows of Markdown."""
    entries = json.loads(DIGESTS.with_name("table_i.json").read_text(encoding="utf-8"))["rows"]
    found = {entry["network"]: entry for entry in entries if entry["configuration"] == "digital"}
    lines = {
        "HTVM, published, measured on the chip [5]": ("published", "total_ms"),
        "ours, simulated, their schedule and their host's cost (fitted)": (
            "as_published",
            "total_ms",
        ),
        "ours, simulated, own schedule": ("ours", "ms"),
    }
    rows = [["", *(network.removesuffix("_7x5") for network in found)], ["---"] * (1 + len(found))]
    for title, (part, key) in lines.items():
        rows.append([title, *(f"{entry[part][key]:.2f}" for entry in found.values())])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def _latency(
    network: str, configuration: Configuration, there: Measured, ours: Measured
) -> tuple[str, ...]:
    entry = TABLE_I[network][configuration.name]
    peak, total = there.published_peak / _MS, there.published_total / _MS
    unfitted = configuration.name != "digital"
    published = milliseconds(entry.total) or "-"
    if entry.derived:
        published += " (derived)"
    return (
        network,
        configuration.title,
        milliseconds(entry.peak),
        milliseconds(peak),
        ratio(peak, entry.peak, 3),
        published + ("*" if unfitted and entry.total else ""),
        milliseconds(total),
        ratio(total, entry.total, 3),
        milliseconds(there.cycles / _MS),
        milliseconds(ours.cycles / _MS),
        ratio(ours.cycles / _MS, entry.peak, 3),
        "yes" if there.exact and ours.exact else "NO",
    )


def _causes(
    network: str, configuration: Configuration, schedule: str, found: Measured
) -> tuple[str, ...]:
    causes = found.causes
    parts = (causes.array, causes.weights, causes.trigger, causes.dma_alone, causes.host_alone)
    moved = f"{found.moved:,}/{found.calls}/{found.commands:,}" if schedule == "published" else ""
    return (
        network,
        configuration.title,
        schedule,
        *(f"{part:,}" for part in (*parts, sum(parts), causes.waiting, causes.dma)),
        moved,
    )


def _plans(network: str) -> tuple[str, ...]:
    model = zoo.build(network)
    found = {
        target: measure_model(model, target, "overlapped", policy) for target, policy in PLANNED
    }
    cycles = [None if entry is None else entry.cycles for entry in found.values()]
    digital, analog, _, latency = cycles
    best = min(value for value in (digital, analog) if value is not None)
    whole = found["diana.digital"]
    relaxed = None if whole is None else whole.cycles - whole.dense_excess
    return (
        network,
        *("exceeds L2" if value is None else f"{value:,}" for value in cycles),
        "yes" if latency is not None and latency <= best else "NO",
        "" if relaxed is None else f"{relaxed:,}",
    )


def _sizes(network: str, configuration: Configuration, found: Measured) -> tuple[str, ...]:
    entry = TABLE_I[network][configuration.name]
    total = found.sizes.code + found.sizes.constants
    return (
        network,
        configuration.title,
        f"{found.sizes.code:,}",
        f"{found.sizes.constants:,}",
        f"{total / 1000:.0f}",
        str(entry.size),
        ratio(total / 1000, entry.size, 3),
        f"{found.arena:,}",
        f"{found.arena_bound:,}",
    )


def _baseline(network: str, kernels: Any) -> tuple[str, ...]:
    ms, size = CPU[network]
    beside = milliseconds(ms) or "out of memory"
    title = {"default": "as TVM makes them", "scheduled": "ours"}[kernels]
    try:
        module = htvm.build(zoo.build(network), "diana.cpu", cpu_kernels=kernels)
    except L2OverflowError:
        return (network, title, "exceeds 512,000 B", beside, "", "", str(size), "", "")
    found = module.run(seeded_inputs(module.model.inputs))
    sizes = module.sizes
    used = sizes.code + sizes.constants + sizes.arena + sizes.stack + sizes.io + sizes.other
    total = (sizes.code + sizes.constants) / 1000
    return (
        network, title, milliseconds(found.latency_ms), beside, f"{sizes.code:,}",
        f"{total:.0f}", str(size), f"{used:,}",
        " ".join(
            f"{part:,}"
            for part in (
                sizes.code, sizes.constants, sizes.arena, sizes.stack, sizes.io, sizes.other
            )
        ),
    )  # fmt: skip


def _record(
    network: str, configuration: Configuration, there: Measured, ours: Measured
) -> dict[str, Any]:
    entry = TABLE_I[network][configuration.name]
    return {
        "network": network,
        "configuration": configuration.name,
        "target": configuration.target,
        "published": {"peak_ms": entry.peak, "total_ms": entry.total, "size_kb": entry.size},
        "as_published": {
            "peak_ms": there.published_peak / _MS,
            "total_ms": there.published_total / _MS,
            "host_fitted_cycles": there.host_published,
            "host_cycles": there.host,
            "cycles": there.cycles,
        },
        "ours": {
            "cycles": ours.cycles,
            "ms": ours.cycles / _MS,
            "causes": {name: getattr(ours.causes, name) for name in ours.causes.__annotations__},
            "code_bytes": ours.sizes.code,
            "constant_bytes": ours.sizes.constants,
            "arena_bytes": ours.arena,
            "arena_bound_bytes": ours.arena_bound,
            "padding": [vars(entry) for entry in ours.padding],
        },
        "exact": there.exact and ours.exact,
    }


if __name__ == "__main__":
    sys.exit(main(run))
