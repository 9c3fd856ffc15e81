"""How long reading and building take over the size of a file: both are linear.

    python -m benchmarks.load_time [--out docs/results]

CPU seconds of this process, without the C compiler.  Chains are of operators on 64 elements;
"tensors" of ONNX are constants of one sum, those of TFLite are used by nobody; "inputs" are those
of one sum, and "attributes" of one operator that has none.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import htvm
from benchmarks.artefact import Artefact, write
from benchmarks.artefact import main as run_benchmark
from byoc_dory.errors import HtvmError
from htvm.model import Model
from htvm.progress import Progress
from tests.frontend.flatfile import Graph, Op, Tensor

__all__ = ["FILES", "loaded", "run"]

TARGET = "generic.cpu"
CHAINS = (50, 500, 2000, 9900)
COUNTS = (1000, 5000, 20_000, 60_000)
BUILT = (50, 200, 800, 2000)


def _tflite_chain(size: int) -> bytes:
    tensors = [Tensor(f"t{i}", (1, 64), scales=(0.05 + 0.001 * (i % 9),)) for i in range(size + 1)]
    return Graph(tensors, [Op("RELU", [i], [i + 1]) for i in range(size)]).file()


def _onnx(
    nodes: list[object], inputs: list[str], constants: list[object], output: str = "y"
) -> bytes:
    shown = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in inputs]
    result = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "graph", shown, [result], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    return bytes(model.SerializeToString())


def _onnx_chain(size: int) -> bytes:
    names = ["x", *(f"t{i}" for i in range(size - 1)), "y"]
    nodes = [helper.make_node("Relu", [a], [b]) for a, b in zip(names, names[1:], strict=False)]
    return _onnx(nodes, ["x"], [])


def _onnx_tensors(size: int) -> bytes:
    ones = np.ones((1, 4), np.float32)
    names = [f"c{i}" for i in range(size)]
    constants = [numpy_helper.from_array(ones, name) for name in names]
    return _onnx([helper.make_node("Sum", ["x", *names], ["y"])], ["x"], constants)


def _onnx_inputs(size: int) -> bytes:
    names = [f"x{i}" for i in range(size)]
    return _onnx([helper.make_node("Sum", names, ["y"])], names, [])


def _onnx_attributes(size: int) -> bytes:
    surplus = {f"a{i}": i for i in range(size)}
    return _onnx([helper.make_node("Relu", ["x"], ["y"], **surplus)], ["x"], [])


def _tflite_tensors(size: int) -> bytes:
    spare = [Tensor(f"c{i}", (4,), data=np.ones(4, np.int8)) for i in range(size)]
    tensors = [*spare, Tensor("x", (1, 64)), Tensor("y", (1, 64))]
    operator = Op("RELU", [size], [size + 1])
    return Graph(tensors, [operator], inputs=(size,), outputs=(size + 1,)).file()


FILES: dict[str, tuple[str, Callable[[int], bytes], tuple[int, ...]]] = {
    "TFLite, operators in a chain": ("tflite", _tflite_chain, CHAINS),
    "TFLite, tensors": ("tflite", _tflite_tensors, COUNTS),
    "ONNX, operators in a chain": ("onnx", _onnx_chain, CHAINS),
    "ONNX, tensors": ("onnx", _onnx_tensors, COUNTS),
    "ONNX, inputs": ("onnx", _onnx_inputs, COUNTS),
    "ONNX, attributes": ("onnx", _onnx_attributes, COUNTS),
}
"""Kinds of files: suffix, their bytes given a size, and the sizes."""


def loaded(kind: str, size: int, folder: Path) -> tuple[float, Model | None]:
    """Return the seconds that reading a file took, and its network unless it was refused."""
    suffix, make, _ = FILES[kind]
    path = folder / f"{size}.{suffix}"
    path.write_bytes(make(size))
    begin = time.process_time()
    try:
        model: Model | None = htvm.load(path)
    except HtvmError:
        model = None
    return time.process_time() - begin, model


def run(folder: Path, progress: Progress) -> Artefact:
    """How long reading and building take, over the size of a file."""
    lines = [f"{'read':30}{'size':>8}{'seconds':>10}{'ms each':>10}"]
    found: dict[str, dict[str, float]] = {}

    def row(kind: str, size: int, seconds: float, note: str = "") -> None:
        found.setdefault(kind, {})[str(size)] = round(seconds, 2)
        lines.append(f"{kind:30}{size:8,}{seconds:10.2f}{1e3 * seconds / size:10.3f}{note}")

    with tempfile.TemporaryDirectory() as files:
        loaded("TFLite, operators in a chain", 1, Path(files))  # imports
        loaded("ONNX, operators in a chain", 1, Path(files))
        for kind, (_, _, sizes) in FILES.items():
            for size in sizes:
                with progress.stage(f"{kind}, {size}"):
                    seconds, model = loaded(kind, size, Path(files))
                row(kind, size, seconds, "" if model else "  refused")
        lines += ["", f"{'built for ' + TARGET:30}{'size':>8}{'seconds':>10}{'ms each':>10}"]
        for size in BUILT:
            _, model = loaded("TFLite, operators in a chain", size, Path(files))
            assert model is not None
            with progress.stage(f"building, {size}"):
                begin = time.process_time()
                htvm.build(model, TARGET)
                row("TFLite, built", size, time.process_time() - begin)
    artefact = Artefact("load_time", "Time of reading and building", "\n".join(lines), found)
    write(artefact, folder)
    return artefact


if __name__ == "__main__":
    sys.exit(run_benchmark(run))
