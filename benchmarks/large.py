"""Large networks: how long they take to build and to run, and what a build needs of memory.

Each is built in a process of its own, for ``generic.cpu`` with a large L2 and the host platform,
under a name that no cache knows; compiler and runtime are ready.  Seconds are CPU time of the
process and the compilers it starts ("wall" is what passed).  MB is the largest peak of these
processes.  Seconds of a run are CPU time, the least of several, of the program as a whole; those of
onnxruntime (one thread) are of the inference alone.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

from benchmarks import large_networks
from benchmarks.artefact import Artefact, write
from benchmarks.artefact import main as run_benchmark
from benchmarks.large_networks import NETWORKS, RESNETS
from htvm.progress import Progress

__all__ = ["run"]

GOALS = {"mobilenet_v2": 15, "efficientnet_b0": 20, "resnet50": 40}
"""Seconds that a build may take; it may need 1,500 MB."""

_L2 = 1 << 28
_RUNS = 5


def run(folder: Path, progress: Progress) -> Artefact:
    """Large networks: time and memory of builds, time of runs beside onnxruntime's."""
    found: dict[str, dict[str, Any]] = {}
    loads = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory() as name:
        for network in (*NETWORKS, *RESNETS):
            path = Path(name) / f"{network}.onnx"
            with progress.stage(f"quantizing {network}"):
                large_networks.write(network, path)
            with progress.stage(f"building {network}"):
                line = [sys.executable, "-m", "benchmarks.large", "--once", str(path)]
                done = subprocess.run(line, check=True, stdout=subprocess.PIPE, text=True)
            found[network] = json.loads(done.stdout.splitlines()[-1])
            loads.append(os.getloadavg()[0])
    text = f"{_text(found)}\n\n{_conditions(loads)}"
    artefact = Artefact("large", "Large networks", text, {**found, "load": loads})
    write(artefact, folder)
    return artefact


def _conditions(loads: list[float]) -> str:
    """What seconds depend on: the machine's vectors, and what else it was doing."""
    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    vectors = [name for name in ("avx512_vnni", "avx_vnni", "avx2", "asimddp") if name in flags]
    return textwrap.fill(
        f"On {os.cpu_count()} cores with {vectors[0] if vectors else 'no such vectors'}, at a load "
        f"of {min(loads):.1f} to {max(loads):.1f} (processes that run or wait, this one included): "
        "wall is no measure of an idle machine where it is above 1.  Convolutions are computed by "
        "the host platform's own functions (docs/socs/host.md).",
        98,
    )


def _text(found: dict[str, dict[str, Any]]) -> str:
    lines = [
        "Int8 networks with seeded weights for images of 224 x 224, by onnxruntime's quantizer, on",
        "generic.cpu; equal: to TVM's own result for the integer form, in all logits.",
        "",
        f"{'network':16}{'layers':>7}{'weights kB':>11}"
        f"{'build s':>9}{'goal':>6}{'wall':>7}{'MB':>7}"
        f"{'run s':>8}{'onnxruntime s':>15}{'ratio':>7}{'equal':>7}",
    ]
    for name in NETWORKS:
        row = found[name]
        lines.append(
            f"{name:16}{row['layers']:7}{row['weights'] / 1e3:11,.0f}{row['build_s']:9.1f}"
            f"{GOALS[name]:6}{row['wall_s']:7.1f}{row['peak_mb']:7.0f}{row['run_s']:8.3f}"
            f"{row['onnxruntime_s']:15.3f}{row['run_s'] / row['onnxruntime_s']:7.1f}"
            f"{'yes' if row['equal'] else 'NO':>7}"
        )
    lines += [
        "",
        "Builds of networks of five sizes: a ResNet with one to five blocks in each stage",
    ]
    lines += [
        "",
        f"{'network':16}{'layers':>7}{'weights kB':>11}{'build s':>9}{'s/layer':>9}{'MB':>7}",
    ]
    for name in RESNETS:
        row = found[name]
        lines.append(
            f"{name:16}{row['layers']:7}{row['weights'] / 1e3:11,.0f}{row['build_s']:9.1f}"
            f"{row['build_s'] / row['layers']:9.3f}{row['peak_mb']:7.0f}"
        )
    return "\n".join(lines)


def _once(path: Path) -> dict[str, Any]:
    """Build a file in this process; run it if it is one of `NETWORKS`."""
    begin = time.perf_counter()
    import numpy as np

    import htvm

    model = htvm.load(path, name=f"{path.stem}_{os.getpid()}")
    module = htvm.build(model, "generic.cpu", platform="host", l2_bytes=_L2)
    row: dict[str, Any] = {"wall_s": time.perf_counter() - begin, "build_s": _cpu()}
    row["peak_mb"] = _peak_mb()
    layers = module.compiled.dispatch.layers.values()
    weighted = [layer for layer in layers if hasattr(layer, "weight")]
    row["layers"] = len(weighted)
    row["weights"] = sum(int(layer.weight.size) for layer in weighted)
    if path.stem not in NETWORKS:
        return row
    (info,) = model.inputs
    image = np.random.default_rng(2).normal(0, 1, info.shape).astype(np.float32)
    taken = []
    for _ in range(_RUNS):
        before = _cpu(resource.RUSAGE_CHILDREN)
        result = module.run(image)
        taken.append(_cpu(resource.RUSAGE_CHILDREN) - before)
    row["run_s"] = min(taken)
    (expected,) = module.reference(image)
    row["equal"] = bool(np.array_equal(result.outputs[0], expected))
    row["onnxruntime_s"] = _vendor(path, info.name, image)
    return row


def _peak_mb() -> float:
    """Return the largest peak of this process and those it started.

    Not by its ``ru_maxrss``, which begins with the size of the process that started it.
    """
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    own = int(status.partition("VmHWM:")[2].split()[0])
    return max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1024


def _cpu(*who: int) -> float:
    usage = [
        resource.getrusage(each) for each in who or (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    return sum(each.ru_utime + each.ru_stime for each in usage)


def _vendor(path: Path, name: str, image: Any) -> float:
    """Return the least CPU seconds of an inference by onnxruntime with one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    taken = []
    for _ in range(2 * _RUNS):
        begin = time.process_time()
        session.run(None, {name: image})
        taken.append(time.process_time() - begin)
    return min(taken)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--once"]:
        print(json.dumps(_once(Path(sys.argv[2]))))
    else:
        sys.exit(run_benchmark(run))
