"""heliaAOT: C for Ambiq's chips, whose licence forbids to run it anywhere else; its own report."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import main, timed


def probe(case: dict[str, str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(sys.executable).parent / "helia-aot"), "convert", "--model.path",
                   case["path"], "--module.path", folder, "--module.type", "cmake",
                   "--force"]  # fmt: skip
        done, seconds = timed(lambda: subprocess.run(command, capture_output=True, text=True))
        found = next(Path(folder).rglob("README.md"), None)
        if done.returncode or found is None:
            raise RuntimeError((done.stderr + done.stdout).strip().splitlines()[-1])
        text = found.read_text(encoding="utf-8")
    return {
        "reads": True,
        "reason": "its licence allows what it generates on Ambiq's chips only, so it was not run",
        "data_bytes": _kibibytes(text, "## Constant Arenas", r"([\d.]+) \| \d+ \|$"),
        "ram_bytes": _kibibytes(text, "## Scratch Memory Arenas", r"([\d.]+) \| [\d.]+% \|$"),
        "size_of": "arenas by its own report",
        "compile_seconds": seconds,
    }


def _kibibytes(text: str, heading: str, row: str) -> int:
    """Return the sum of a table's column in bytes."""
    section = text.partition(heading)[2].partition("\n## ")[0]
    return sum(round(float(each) * 1024) for each in re.findall(row, section, re.M))


main(probe)
