"""HTVM (DAC 2023), Table II: the MLPerf Tiny networks on other platforms, beside DIANA, and ours.

Published rows are scaled to 260 MHz by the authors.  Ours is the simulated digital core with
`schedule="overlapped"`, the simulated host's cycles included; it compares with the row of the chip.
The other rows are other chips with other toolchains, and put it into perspective only.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.artefact import Artefact, main, write
from benchmarks.made_of import RowSource
from benchmarks.measure import CONFIGURATIONS, NETWORKS, measure, row_of
from benchmarks.published import TABLE_II
from byoc_dory.soc.diana.description import DIANA
from htvm.progress import Progress
from htvm.tools.report.table import Column, Table, milliseconds, ratio, text

__all__ = ["made_of", "run"]

_CHIP = "DIANA, HTVM digital"
_MS = DIANA.clock_hz / 1000


def made_of() -> Iterator[RowSource]:
    """Every program that the table is made of."""
    for network in NETWORKS:
        yield row_of(network, CONFIGURATIONS[0], "overlapped")


def run(folder: Path, progress: Progress | None = None) -> Artefact:
    """Put ours beside Table II."""
    progress = progress or Progress()
    ours: dict[str, float] = {}
    for network in NETWORKS:
        with progress.stage(network):
            found = measure(network, CONFIGURATIONS[0], "overlapped")
        if found is not None:
            ours[network] = found.cycles / _MS
    rows = [
        (name, *(milliseconds(values[network]) for network in NETWORKS))
        for name, values in TABLE_II.items()
    ]
    rows.append(("DIANA, ours, simulated", *(milliseconds(ours.get(n)) for n in NETWORKS)))
    chip = TABLE_II[_CHIP]
    rows += [
        (f"ours / {name}", *(ratio(ours.get(n), values[n], 3) for n in NETWORKS))
        for name, values in TABLE_II.items()
    ]
    columns = (Column("ms at 260 MHz"), *(Column(network, number=True) for network in NETWORKS))
    artefact = Artefact(
        "table_ii",
        "Table II: other platforms (published) and DIANA (published and ours)",
        "\n\n".join([str(__doc__).strip(), text(Table(columns, tuple(rows)))]),
        {"published_ms": TABLE_II, "ours_ms": ours, "chip": dict(chip)},
    )
    write(artefact, folder)
    return artefact


if __name__ == "__main__":
    sys.exit(main(run))
