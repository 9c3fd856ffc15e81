"""Vela: a TFLite file for an Ethos-U55 with 128 multipliers; its own estimates."""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import main, timed


def probe(case: dict[str, str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        vela = str(Path(sys.executable).parent / "vela")
        command = [vela, case["path"], "--output-dir", folder, "--accelerator-config",
                   "ethos-u55-128"]  # fmt: skip
        done, seconds = timed(lambda: subprocess.run(command, capture_output=True, text=True))
        if done.returncode:
            raise RuntimeError((done.stderr + done.stdout).strip().splitlines()[-1])
        size = next(Path(folder).glob("*_vela.tflite")).stat().st_size
        summary = next(Path(folder).glob("*summary*.csv"))
        with summary.open(newline="") as file:
            row = next(csv.DictReader(file))
    return {
        "reads": True,
        "reason": "its TFLite file needs an interpreter",
        "data_bytes": size,
        "ram_bytes": round(float(row["sram_memory_used"]) * 1024),
        "size_of": "compiled file; SRAM by its own report",
        "compile_seconds": seconds,
    }


main(probe)
