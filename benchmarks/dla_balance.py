"""What the accelerator gains over the published one: fused pipelines, rows, kept registers.

Every figure is from executed command streams whose results are the reference's byte for byte;
cycles are those of the accelerator, transfers included (16 B per cycle, 50 cycles each), the host's
not.  Designs have 64 PEs over output channels.

* fused: convolutions requantize their sums themselves.  Split ones write int32, which a second
  instruction requantizes; int32 results take four bytes each, so that tiles are smaller.  Here
  both happen in SRAM, so that the bytes moved are equal; between the published subgraphs the sums
  cross the bus as well, 8 B more for each result (stated below, derived, not executed).
* kept: results stay in SRAM until their last reader where they have room; the published runtime
  moves each back to system memory.
* rows: bands of rows are tiles, too, not only output channels.
* native: OP_DEPTH_CONV instead of OP_CONV one filter at a time.
* unchanged: register writes that are left out because the register has the value already.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.artefact import Artefact, main, write
from benchmarks.dla_runs import Ran, Workload, execute, workload
from benchmarks.made_of import RowSource, computed
from byoc_dory.soc.dla.design import Design
from htvm.progress import Progress
from htvm.tools.report.table import Column, Table, text

__all__ = ["made_of", "run"]

NETWORK = "mobilenet_v1_224"
NETWORKS = (NETWORK, "mobilenet_v1", "resnet8", "ds_cnn", "toyadmos")
KIB = (512, 1024, 262_144)

STEPS = (
    Column("SRAM"),
    Column("design"),
    Column("computing", number=True),
    Column("moving", number=True),
    Column("sum, Mcycles", number=True),
    Column("saved", number=True),
    Column("bus, kB", number=True),
    Column("saved", number=True),
)

REGISTERS = (
    Column("network"),
    Column("depthwise"),
    Column("words", number=True),
    Column("without", number=True),
    Column("saved", number=True),
)


def ways(kib: int) -> list[tuple[str, str, Design]]:
    """Return (name, depthwise support, design), each one step further than the one before."""
    base = Design(1, 64, kib << 10, depthwise=1, fused=False, resident=False)
    native = replace(base, depthwise=2)
    fused = replace(native, fused=True)
    kept = replace(fused, resident=True)
    return [
        ("split, emulated", "emulated", base),
        ("split, native", "native", native),
        ("split, native, rows", "native", replace(native, rows=True)),
        ("fused, native", "native", fused),
        ("fused, native, kept", "native", kept),
        ("fused, native, kept, rows", "native", replace(kept, rows=True)),
    ]


Works = dict[tuple[str, str], Workload]


def made_of() -> Iterator[RowSource]:
    """The designs on each network, executed."""
    for kib in KIB:
        yield computed(f"{NETWORK} in {kib} KiB", partial(_of_size, kib))
    for network in NETWORKS:
        for _, name, design in ways(512)[:2]:
            yield computed(f"{network}, {name}", partial(_executed, network, name, design))


def _of_size(kib: int) -> object:
    kinds = ("emulated", "native")
    return _steps(kib, {(NETWORK, kind): workload(NETWORK, kind) for kind in kinds})


def _executed(network: str, depthwise: str, design: Design) -> Ran:
    return execute(workload(network, depthwise), design)


def _steps(kib: int, works: Works) -> list[tuple[int, str, Ran]]:
    return [
        (kib, name, execute(works[NETWORK, depthwise], design))
        for name, depthwise, design in ways(kib)
    ]


def run(folder: Path, progress: Progress | None = None) -> Artefact:
    """Execute networks with and without what the published accelerator lacks."""
    progress = progress or Progress()
    works: Works = {}
    for network in NETWORKS:
        with progress.stage(f"compiling {network}"):
            for depthwise in ("emulated", "native"):
                works[network, depthwise] = workload(network, depthwise)
    with progress.stage("executing designs"):
        steps = [step for kib in KIB for step in _steps(kib, works)]
        streams = [
            (network, name, execute(works[network, name], design))
            for network in NETWORKS
            for _, name, design in ways(512)[:2]
        ]
    artefact = Artefact(
        "dla_balance",
        "A parametrised accelerator: what fused pipelines, rows and kept registers save",
        "\n\n".join(
            [
                str(__doc__).strip(),
                f"{NETWORK}; saved: of the row above with split pipelines, native",
                text(Table(STEPS, tuple(_step_rows(steps)))),
                _crossing(works[NETWORK, "native"]),
                "Words of the command stream (split, 512 KiB), and without keeping registers",
                text(Table(REGISTERS, tuple(_register_row(*entry) for entry in streams))),
            ]
        ),
        {
            "steps": [{"kib": kib, "design": name, **_record(ran)} for kib, name, ran in steps],
            "registers": [
                {"network": network, "depthwise": name, **_record(ran)}
                for network, name, ran in streams
            ],
        },
    )
    write(artefact, folder)
    return artefact


def _crossing(work: Workload) -> str:
    """State what sums that cross the bus would add."""
    sums = sum(
        region.result(layer).bytes
        for region, _ in work.regions
        for layer in region.layers
        if layer.op != "add"
    )
    return f"Sums over the bus, as between published subgraphs: {8 * sums / 1e3:,.0f} kB more."


def _all(ran: Ran) -> int:
    """Cycles of everything, the dense layer too."""
    return sum(layer.computing for layer in ran.layers) + ran.moving


def _step_rows(steps: list[tuple[int, str, Ran]]) -> list[tuple[str, ...]]:
    rows = []
    for kib, name, ran in steps:
        base = next(r for k, n, r in steps if (k, n) == (kib, "split, native"))
        rows.append(
            (
                f"{kib} KiB" if kib < 1024 else f"{kib // 1024} MiB",
                name,
                f"{(_all(ran) - ran.moving) / 1e6:.2f}",
                f"{ran.moving / 1e6:.2f}",
                f"{_all(ran) / 1e6:.2f}",
                f"{100 * (1 - _all(ran) / _all(base)):.1f} %",
                f"{ran.bytes / 1e3:,.0f}",
                f"{100 * (1 - ran.bytes / base.bytes):.1f} %",
            )
        )
    return rows


def _words(ran: Ran) -> tuple[int, int]:
    """Return the words of the stream, and those of one that writes every register every time."""
    instructions = sum(sum(layer.instructions.values()) for layer in ran.layers)
    words = 2 * ran.written + instructions
    return words, words + 2 * ran.unchanged


def _register_row(network: str, depthwise: str, ran: Ran) -> tuple[str, ...]:
    words, without = _words(ran)
    return (
        network,
        depthwise,
        f"{words:,}",
        f"{without:,}",
        f"{100 * (1 - words / without):.1f} %",
    )


def _record(ran: Ran) -> dict[str, Any]:
    return {
        "cycles": _all(ran),
        "dma_cycles": ran.moving,
        "dma_bytes": ran.bytes,
        "register_writes": ran.written,
        "unchanged": ran.unchanged,
    }


if __name__ == "__main__":
    sys.exit(main(run))
