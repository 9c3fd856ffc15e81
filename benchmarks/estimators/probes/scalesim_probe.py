"""SCALE-Sim on every layer and array: weight-stationary, no stalls by memory.

A program for SCALE-Sim's environment: ``probe.py ASKED.json``, with ``layers`` and ``designs``;
prints ``[[cycles of each layer] of each design]`` as the last line.
"""

from __future__ import annotations

import contextlib
import csv
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

_CONFIG = """[general]
run_name = run
[architecture_presets]
ArrayHeight = {rows}
ArrayWidth = {columns}
ifmapsramszkB = 4096
filtersramszkB = 4096
ofmapsramszkB = 4096
IfmapOffset = 0
FilterOffset = 10000000
OfmapOffset = 20000000
Dataflow = ws
Bandwidth = 16
ReadRequestBuffer = 32
WriteRequestBuffer = 32
[layout]
IfmapCustomLayout = False
FilterCustomLayout = False
IfmapSRAMBankBandwidth = 10
IfmapSRAMBankNum = 10
IfmapSRAMBankPort = 2
FilterSRAMBankBandwidth = 10
FilterSRAMBankNum = 10
FilterSRAMBankPort = 2
[sparsity]
SparsitySupport = false
SparseRep = ellpack_block
OptimizedMapping = false
BlockSize = 8
RandomNumberGeneratorSeed = 40
[run_presets]
InterfaceBandwidth = CALC
UseRamulatorTrace = False
"""


def cycles(layers: list[dict[str, Any]], rows: int, columns: int) -> list[int]:
    """Return the cycles of each layer, without those of the first transfers."""
    from scalesim.scale_sim import scalesim

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "c.cfg").write_text(_CONFIG.format(rows=rows, columns=columns))
        fields = ("iy", "ix", "f", "f", "C", "K", "stride")
        lines = [
            ", ".join([f"L{i}", *(str(layer[field]) for field in fields), "1:1,"])
            for i, layer in enumerate(layers)
        ]
        (folder / "t.csv").write_text(
            "\n".join(["name,iy,ix,fy,fx,C,K,stride,sparsity,", *lines, ""])
        )
        layout = [f"L{i}," + "1," * 20 for i in range(len(layers))]
        (folder / "l.csv").write_text("\n".join(["name," + "x," * 20, *layout, ""]))
        run = scalesim(
            save_disk_space=True, verbose=False, config=f"{name}/c.cfg", topology=f"{name}/t.csv",
            layout=f"{name}/l.csv", input_type_gemm=False,
        )  # fmt: skip
        run.run_scale(top_path=name)
        with (folder / "run" / "COMPUTE_REPORT.csv").open(newline="") as file:
            found = list(csv.DictReader(file, skipinitialspace=True))
    return [int(float(row["Total Cycles"])) for row in found]


def main() -> None:
    asked = json.loads(Path(sys.argv[1]).read_text())
    with contextlib.redirect_stdout(sys.stderr):
        answer = [cycles(asked["layers"], *design) for design in asked["designs"]]
    print("\n" + json.dumps(answer))


main()
