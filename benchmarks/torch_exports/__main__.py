"""How near the integers of exports are to torch: networks, quantizers, trained or not.

Fifteen small networks (`networks.py`, weights by a seed) are quantized per tensor and per channel
by torchao's XNNPACK quantizer, by its x86 quantizer, and by HTVM's for a Cortex-M4 (weights per
channel) and DIANA's digital core (powers of two, per tensor); calibrated (ptq) or trained for four
steps (qat); and exported.  Each quantize node's results are compared with torch's over 20 to 200
random inputs (100,000 results, if possible), fed with torch's own integers, so that no difference
is counted twice; outputs are compared end to end.  HTVM computes natively for generic.cpu.  Beside
it stands torch against itself: results that are others if it computes the same integers in
float64, and in float32 by its kernels for SSE, which add in another order.

Needs the extra torch; 20 minutes (`--out docs/results` updates docs/results/torch_exports.*).
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from itertools import product
from pathlib import Path

import torch

from benchmarks.artefact import Artefact, main, write
from benchmarks.torch_exports.export import QUANTIZERS, TARGETS
from benchmarks.torch_exports.fidelity import plain_torch
from benchmarks.torch_exports.networks import NETWORKS
from benchmarks.torch_exports.rows import Row, row_of, said, table_of
from htvm.progress import Progress
from htvm.tools.report.table import count, text

PER_MILLION = 20.0
"""Results of quantize nodes that may differ from torch's, fed with torch's integers."""

READ = 110 / 120
"""Share of the exports to be read."""


def run(folder: Path, progress: Progress | None = None) -> Artefact:
    """Export, build and compare the whole grid."""
    progress = progress or Progress()
    torch.set_num_threads(1)
    rows: list[Row] = []
    with plain_torch() as plain:
        for way, quantizer, network in product(("ptq", "qat"), (*QUANTIZERS, *TARGETS), NETWORKS):
            with progress.stage(f"{network}, {quantizer}, {way}"):
                rows.append(row_of(network, quantizer, way, plain))
    goals = _goals(rows)
    artefact = Artefact(
        "torch_exports",
        "Exports of torch: results that differ from torch's own",
        "\n\n".join([str(__doc__).strip(), text(table_of(rows)), *goals]),
        {"rows": [asdict(row) for row in rows], "goals": goals},
    )
    write(artefact, folder)
    return artefact


def _goals(rows: list[Row]) -> list[str]:
    read = [row for row in rows if row.found]
    above = [row for row in read if row.per_million > PER_MILLION]
    found = [row.found for row in read if row.found]
    different, elements = sum(one.different for one in found), sum(one.elements for one in found)
    largest = max(one.largest for one in found)
    names = "; ".join(f"{row.network} {row.quantizer} {row.way}" for row in above)
    return [
        f"read: {len(read)} of {len(rows)}, at least {READ:.0%} wanted: "
        + said(len(read) >= READ * len(rows)),
        f"{count(different)} of {count(elements)} results differ; above {PER_MILLION:g} of a "
        f"million in {len(above)} exports, none wanted: {said(not above)}"
        + (f" ({names})" if names else ""),
        f"largest difference: {largest} step, at most 1 wanted: {said(largest <= 1)}",
    ]


if __name__ == "__main__":
    sys.exit(main(run))
