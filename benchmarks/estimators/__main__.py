"""``python -m benchmarks.estimators``: runs both estimators and ours, and writes the page."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.estimators.cases import DESIGNS, DMA_BYTES, LAYERS, SRAM
from benchmarks.estimators.compare import Difference, scalesim_difference, zigzag_difference
from benchmarks.estimators.ours import Executed, executed
from benchmarks.estimators.page import page
from benchmarks.made_of import RowSource, computed, record
from benchmarks.peers.answer import Peer
from benchmarks.peers.environments import python_of

__all__ = ["main", "made_of"]

ROOT = Path(__file__).parents[2]
PROBES = Path(__file__).parent / "probes"
# SCALE-Sim 3.0.0 turns arrays into numbers in a way that later numpy refuses.
SCALESIM = Peer("scalesim", "SCALE-Sim", ("scalesim==3.0.0", "numpy<2.4"), (), "")
ZIGZAG = Peer("zigzag", "ZigZag", ("zigzag-dse==3.9.1", "six"), (), "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.estimators", description=__doc__)
    parser.add_argument("--environments", type=Path, default=ROOT / "build" / "peers")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "estimators.md")
    options = parser.parse_args(arguments)
    ours = [_ours(pes) for pes in DESIGNS]
    theirs = {peer.name: _asked(peer, options.environments) for peer in (SCALESIM, ZIGZAG)}
    scalesim: list[Difference] = [
        scalesim_difference(pes, LAYERS, mine, other)
        for pes, mine, other in zip(DESIGNS, ours, theirs["scalesim"], strict=True)
    ]
    zigzag = [
        zigzag_difference(pes, mine, other)
        for pes, mine, other in zip(DESIGNS, ours, theirs["zigzag"], strict=True)
    ]
    options.page.write_text(page(scalesim, zigzag))
    record("estimators", made_of())
    return 0


def made_of() -> Iterator[RowSource]:
    """Our cycles on each design."""
    for pes in DESIGNS:
        yield computed(f"{pes[0]}x{pes[1]} PEs", partial(_ours, pes))


def _ours(pes: tuple[int, int]) -> list[Executed]:
    return list(executed(pes, LAYERS))


def _asked(peer: Peer, environments: Path) -> list[Any]:
    """Return an estimator's answer: for each design, for each layer."""
    layers = [asdict(shape) | {"iy": shape.iy, "ix": shape.ix} for shape in LAYERS]
    asked = {"layers": layers, "designs": DESIGNS, "sram": SRAM, "dma_bytes": DMA_BYTES}
    python = python_of(peer, environments)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "asked.json"
        path.write_text(json.dumps(asked))
        done = subprocess.run(
            [str(python), str(PROBES / f"{peer.name}_probe.py"), str(path)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True, cwd=folder,
        )  # fmt: skip
    answer: list[Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


if __name__ == "__main__":
    sys.exit(main())
