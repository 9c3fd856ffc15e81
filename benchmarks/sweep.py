"""1,000 designs of the parametrised accelerator x 4 networks, each compiled and executed.

Every row is a network whose regions were assembled for the design by the late assembler and
executed in the accelerator's simulator, bit-exact; the four MLPerf Tiny networks are compiled once
for each kind of depthwise support.  The same sweep runs on two processes, is killed at a random
moment and goes on, and runs on a local dask cluster of two workers: the three files must be equal.

    python -m benchmarks.sweep                   all three
    python -m benchmarks.sweep --designs 40      the first 40 designs
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import htvm
from htvm.tools.report.table import Column, Table, text

__all__ = ["GRID", "MODELS", "main"]

MODELS = ("zoo:resnet8", "zoo:ds_cnn", "zoo:mobilenet_v1", "zoo:toyadmos")
GRID: dict[str, Sequence[int | str]] = {
    "pes": (16, 32, 64, 128, 256),
    "parallel": ("input", "output"),
    "sram": ("16KiB", "64KiB", "256KiB", "1MiB", "4MiB"),
    "dma_bytes": (4, 8, 16, 32, 64),
    "depthwise": ("emulated", "native"),
    "rows": ("published", "tiled"),
}
PROCESSES = 2


def swept(path: Path, designs: int | None, **options: Any) -> htvm.Designs:
    """Run the sweep, or a random sample of its designs."""
    if designs is None:
        return htvm.sweep(MODELS, "dla", GRID, results=path, **options)
    return htvm.sweep(
        MODELS, "dla", GRID, results=path, method="random", samples=designs, **options
    )


def here(path: Path, designs: int | None) -> htvm.Designs:
    """Run on two processes of this machine."""
    return swept(path, designs, jobs=PROCESSES)


def killed(path: Path, designs: int | None) -> htvm.Designs:
    """Run in a process that is killed at a random moment, with all it started; then go on."""
    command = [sys.executable, "-m", "benchmarks.sweep", "--write", str(path)]
    if designs is not None:
        command += ["--designs", str(designs)]
    part = path.with_name(path.name + ".part")
    rows = len(MODELS) * (1000 if designs is None else designs)
    lines = random.SystemRandom().randint(rows // 10, rows * 9 // 10)
    with subprocess.Popen(command, start_new_session=True) as process:
        while process.poll() is None and (
            not part.is_file() or part.read_bytes().count(b"\n") < lines
        ):
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGKILL)
    return swept(path, designs, jobs=PROCESSES)


def clustered(path: Path, designs: int | None) -> htvm.Designs:
    """Run on a dask cluster of two workers on this machine."""
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=PROCESSES, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        return swept(path, designs, client=client)


WAYS: dict[str, Callable[[Path, int | None], htvm.Designs]] = {
    "two processes": here,
    "killed at a random moment, resumed": killed,
    "dask, two workers": clustered,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if files differ or an output is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", type=int, help="how many of the designs, at random")
    parser.add_argument("--write", type=Path, help="only run the sweep and write this file")
    given = parser.parse_args(arguments)
    if given.write is not None:
        here(given.write, given.designs)
        return 0
    rows, digests, good = [], set(), True
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, way) in enumerate(WAYS.items()):
            path = Path(folder) / f"{number}.parquet"
            start = time.monotonic()
            found = way(path, given.designs)
            seconds = time.monotonic() - start
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            digests.add(digest)
            ran = [row for row in found.rows if row.status == "ok"]
            good = good and all(row.exact for row in ran)
            good = good and not any(row.status == "failed" for row in found.rows)
            refused = sum(row.status == "infeasible" for row in found.rows)
            rows.append(
                (name, f"{len(found.rows):,}", f"{sum(bool(r.exact) for r in ran):,}",
                 f"{refused:,}", f"{seconds:.0f}", digest[:12])
            )  # fmt: skip
    columns = (
        Column("way"),
        *(Column(name, number=True) for name in ("rows", "ran exact", "infeasible", "s")),
        Column("SHA-256 of the file"),
    )
    sys.stdout.write(text(Table(columns, tuple(rows))) + "\n")
    sys.stdout.write("the files are " + ("equal\n" if len(digests) == 1 else "DIFFERENT\n"))
    return 0 if good and len(digests) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
