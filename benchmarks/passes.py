"""What partitioning as a pass of TVM takes, beside the same stages of a build.

    python -m benchmarks.passes [--out docs/results]

CPU seconds of a process for each, without imports, the quicker of two; and milliseconds of the
entry point that TVM calls during its import.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.artefact import Artefact, write
from benchmarks.artefact import main as run_benchmark
from htvm.progress import Progress

__all__ = ["CASES", "run"]

CASES = (
    ("resnet8", "diana"),
    ("ds_cnn", "diana"),
    ("mobilenet_v1", "diana"),
    ("ds_cnn", "siracusa"),
    ("toyadmos", "dla"),
)
_ENTRY = """
import time, tvm
begin = time.process_time()
from htvm.relax.autoload import register
register()
"""
_BUILD = """
import sys, time, htvm, htvm.relax.passes
from htvm.build_options import BuildOptions
from htvm.compiled import Compiled
module = htvm.zoo.build(sys.argv[1]).module
begin = time.process_time()
Compiled(module, sys.argv[2], BuildOptions()).partition
"""
_PASS = """
import sys, time, htvm, htvm.relax.passes
module = htvm.zoo.build(sys.argv[1]).module
begin = time.process_time()
htvm.relax.Partition(sys.argv[2])(module)
"""


def _seconds(script: str, *arguments: str) -> float:
    """Return the processor time that a script takes after its ``begin``, the less of two runs."""
    script += "print(time.process_time() - begin)"
    command = [sys.executable, "-c", script, *arguments]
    texts = [subprocess.run(command, check=True, capture_output=True).stdout for _ in range(2)]
    return min(map(float, texts))


def run(folder: Path, progress: Progress) -> Artefact:
    """What partitioning as a pass takes, beside the same stages of a build."""
    lines = [f"{'network':14}{'target':10}{'build':>8}{'pass':>8}{'ratio':>8}"]
    values: dict[str, dict[str, float]] = {}
    for name, target in CASES:
        with progress.stage(f"{name} on {target}"):
            build, passed = _seconds(_BUILD, name, target), _seconds(_PASS, name, target)
        values[f"{name} on {target}"] = {"build": round(build, 2), "pass": round(passed, 2)}
        lines.append(f"{name:14}{target:10}{build:8.2f}{passed:8.2f}{passed / build:8.2f}")
    entry = 1e3 * _seconds(_ENTRY)
    values["import"] = {"milliseconds": round(entry, 1)}
    lines += ["", f"the entry point during `import tvm`: {entry:.1f} ms"]
    artefact = Artefact("passes", "Partitioning as a pass of TVM", "\n".join(lines), values)
    write(artefact, folder)
    return artefact


if __name__ == "__main__":
    sys.exit(run_benchmark(run))
