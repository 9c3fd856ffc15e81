"""``python -m benchmarks.exporters``: makes the files, reads them, and writes the page."""

from __future__ import annotations

import argparse
import logging
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from benchmarks.exporters.check import outcomes
from benchmarks.exporters.page import page
from benchmarks.peers.answer import Peer
from benchmarks.peers.environments import python_of
from benchmarks.peers.survey import ROOT

__all__ = ["EXPORTERS", "export", "main"]

EXPORTERS = {
    "torch": Peer(
        "torch_export", "torch and onnxruntime",
        ("torch==2.13.0", "onnx>=1.18,<2", "onnxruntime>=1.24,<2", "onnxscript>=0.7,<1"), (), "",
    ),
    "keras": Peer(
        "keras_export", "Keras and TensorFlow", ("tensorflow>=2.20,<3", "ai-edge-litert>=2,<3"),
        (), "",
    ),
}  # fmt: skip
"""What writes the files: the module of this package, and the packages that it needs."""

_LIMIT_SECONDS = 3600
_VERSIONED = ("torch", "onnxruntime", "tensorflow", "keras", "ai-edge-litert")


def export(exporter: str, folder: Path, environments: Path, only: str = "") -> str:
    """Write the files of an exporter, and return the versions of its packages.

    Args:
        exporter: a key of `EXPORTERS`.
        folder: receives them.
        environments: holds the exporters' virtual environments, which are made if need be.
        only: a network; empty for all.

    Raises:
        InstallError: the packages cannot be installed.
        CalledProcessError: the exporter failed.
    """
    peer = EXPORTERS[exporter]
    python = str(python_of(peer, environments))
    command = [python, "-m", f"benchmarks.exporters.{peer.name}", str(folder), "--only", only]
    subprocess.run(command, cwd=ROOT, check=True, timeout=_LIMIT_SECONDS)
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format=freeze"], capture_output=True, text=True, check=True
    )
    pairs = (line.split("==") for line in listed.stdout.splitlines() if "==" in line)
    return ", ".join(f"{name} {version}" for name, version in pairs if name in _VERSIONED)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign; the result is 1 if any file is read wrongly or crashes the reader."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exporters", description=__doc__)
    parser.add_argument("--files", type=Path, default=ROOT / "build" / "exporters" / "files")
    parser.add_argument("--environments", type=Path, default=ROOT / "build" / "exporters")
    parser.add_argument("--only", default="", help="a network")
    parser.add_argument("--kept", action="store_true", help="read files that were made before")
    parser.add_argument("--write", type=Path, help="file for the page")
    options = parser.parse_args(arguments)
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    from tests.reference.interpreter import interpret

    noted = options.files / "versions.txt"
    if not options.kept:
        made = [export(name, options.files, options.environments, options.only)
                for name in EXPORTERS]  # fmt: skip
        noted.write_text(", ".join(made) + "\n")
    found = []
    for item in outcomes(options.files, interpret):
        found.append(item)
        print(
            f"{item.exporter} {item.network} {item.way}: {item.result}: {item.detail}", flush=True
        )
    if options.write is not None:
        options.write.write_text(page(found, noted.read_text().strip()), encoding="utf-8")
    return int(any(item.result in ("wrong", "crashed") for item in found))


if __name__ == "__main__":
    sys.exit(main())
