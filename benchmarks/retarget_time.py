"""How long retargeting takes: networks of 10 to 1,000 small operators, of 10 to 500 branches.

Seconds are CPU time of this process with one thread (set ``OPENBLAS_NUM_THREADS=1``; without data,
so that inputs are drawn for calibration, and nothing is taken from a cache).  "Tables" are those of
noise that the search computed and added up for each operator, which do not depend on the machine
(`htvm.quantization.terms`).
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.artefact import Artefact, write
from benchmarks.artefact import main as run_benchmark
from benchmarks.retarget_networks import SHAPES, draw
from byoc_dory.cost import Cost
from byoc_dory.options import TilingOptions
from byoc_dory.soc.registry import resolve
from htvm.placement.plan import place
from htvm.progress import Progress
from htvm.quantization.as_planned import as_planned
from htvm.quantization.noise import NoiseModel, noise_inputs, observe
from htvm.quantization.search import Search
from htvm.quantization.units import annotated

__all__ = ["measured", "run"]

TARGET = "diana"
SIZES = (10, 30, 100, 1000)
BRANCHES = (10, 30, 100, 500)


def measured(shape: str, size: int, target: str = TARGET) -> dict[str, Any]:
    """Retarget one network: its operators, seconds, SQNR, and the search's work."""
    model = draw(shape, size)
    resolved = resolve(target)
    planned = place(model.graph, resolved, Cost(resolved.soc, TilingOptions()))
    begin = time.process_time()
    report = as_planned(model, planned, resolved).retargeted.report
    seconds = time.process_time() - begin
    net = annotated(model)
    noise = NoiseModel(net, observe(net, noise_inputs(net, 6, 0), 0))
    search = Search(net, noise, per_channel=True, grid=1.0)
    search.run()
    count = len(net.nodes)
    return {
        "operators": count,
        "seconds": round(seconds, 2),
        "sqnr_db": report.output_sqnr_db,
        "computed": round(search.terms.computed / count, 1),
        "added": round(search.terms.added / count, 1),
    }


def run(folder: Path, progress: Progress) -> Artefact:
    """How long retargeting takes, over the number of operators and of branches."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for shape in SHAPES:
        found[shape] = {}
        for size in BRANCHES if shape == "branches" else SIZES:
            with progress.stage(f"{shape}, {size}"):
                found[shape][str(size)] = measured(shape, size)
    artefact = Artefact("retarget_time", "Time of retargeting", _text(found), found)
    write(artefact, folder)
    return artefact


def _text(found: dict[str, dict[str, dict[str, Any]]]) -> str:
    lines = [
        f"Networks of small layers (maps of 4 x 4 x 8, or rows) for {TARGET}; CPU seconds of one",
        "thread, and tables of noise that the search computed and added up for each operator.",
        "",
        f"{'network':16}{'size':>6}{'operators':>11}{'seconds':>9}{'ms/operator':>13}"
        f"{'computed':>10}{'added':>8}{'SQNR dB':>9}",
    ]
    for shape, sizes in found.items():
        for size, row in sizes.items():
            sqnr = "" if row["sqnr_db"] is None else f"{row['sqnr_db']:.1f}"
            lines.append(
                f"{shape:16}{size:>6}{row['operators']:11}{row['seconds']:9.1f}"
                f"{1e3 * row['seconds'] / row['operators']:13.1f}"
                f"{row['computed']:10.0f}{row['added']:8.0f}{sqnr:>9}"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(run_benchmark(run))
