"""How near the integers of exports with int16 activations are to torch.

The fifteen networks, calibrated with torchao's XNNPACK quantizer, weights of 8 bits per channel,
activations of 16 bits with and without zero points; all else as in `benchmarks.torch_exports`.
float32 has 24 bits, so that the errors of a sum are some ten thousandths of a step of 16 bits:
torch itself changes such a share of its results if it computes in float64.

Needs the extra torch; 6 minutes (`--out docs/results` updates docs/results/torch_wide.*).
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from itertools import product
from pathlib import Path

import torch

from benchmarks.artefact import Artefact, main, write
from benchmarks.torch_exports.export import WIDE
from benchmarks.torch_exports.fidelity import plain_torch
from benchmarks.torch_exports.networks import NETWORKS
from benchmarks.torch_exports.rows import Row, row_of, said, table_of
from htvm.progress import Progress
from htvm.tools.report.table import count, text


def run(folder: Path, progress: Progress | None = None) -> Artefact:
    """Export, build and compare all networks."""
    progress = progress or Progress()
    torch.set_num_threads(1)
    rows: list[Row] = []
    with plain_torch() as plain:
        for quantizer, network in product(WIDE, NETWORKS):
            with progress.stage(f"{network}, {quantizer}"):
                rows.append(row_of(network, quantizer, "ptq", plain))
    goals = _goals(rows)
    artefact = Artefact(
        "torch_wide",
        "Exports of torch with int16 activations: results that differ from torch's own",
        "\n\n".join([str(__doc__).strip(), text(table_of(rows)), *goals]),
        {"rows": [asdict(row) for row in rows], "goals": goals},
    )
    write(artefact, folder)
    return artefact


def _goals(rows: list[Row]) -> list[str]:
    found = [row.found for row in rows if row.found]
    ours, elements = sum(one.different for one in found), sum(one.elements for one in found)
    doubles = sum(one.doubles_different for one in found)
    plain = sum(one.plain_different for one in found)
    largest = max(one.largest for one in found)
    return [
        f"read: {len(found)} of {len(rows)}, all wanted: {said(len(found) == len(rows))}",
        f"{count(ours)} of {count(elements)} results differ, {count(doubles)} of torch's own in "
        f"float64, no more wanted: {said(ours <= doubles)}; {count(plain)} by its kernels for SSE",
        f"largest difference: {largest} step, at most 1 wanted: {said(largest <= 1)}",
    ]


if __name__ == "__main__":
    sys.exit(main(run))
