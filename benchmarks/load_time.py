"""How long reading and building take over the size of a file: both are linear.

    python -m benchmarks.load_time [--out docs/results]

CPU seconds of the process, without the C compiler; MB is its peak, a process for each build.
Chains are of operators on 64 elements, or of 3x3 convolutions of 8x8x8, every one with weights,
scales and zero points of its own; "tensors" of ONNX are constants of one sum, those of TFLite are
used by nobody; "inputs" are those of one sum, and "attributes" of one operator that has none.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import htvm
from benchmarks.artefact import Artefact, write
from benchmarks.artefact import main as run_benchmark
from byoc_dory.errors import HtvmError
from htvm.model import Model
from htvm.progress import Progress
from tests.frontend.flatfile import Graph, Op, Tensor

__all__ = ["BUILDS", "FILES", "alone", "built", "convolutions", "loaded", "run"]

CHAINS = (50, 500, 2000, 9900)
COUNTS = (1000, 5000, 20_000, 60_000)
BUILT = (50, 200, 800, 2000)
CONVOLUTIONS = (50, 250, 1000)
"""Each is two operators, with its padding; a chain may have 2,000."""


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


def convolutions(size: int) -> bytes:
    """Return a QDQ file of 3x3 convolutions in a chain, on 8x8x8."""
    rng = np.random.default_rng(size)
    nodes: list[object] = []
    constants: list[object] = []

    def quantized(kind: str, tensor: str, scale: float, zero: object, output: str) -> str:
        """Append a conversion with constants of its own."""
        values = {f"{output}_scale": np.float32(scale), f"{output}_zero": zero}
        constants.extend(numpy_helper.from_array(np.asarray(v), n) for n, v in values.items())
        nodes.append(helper.make_node(kind, [tensor, *values], [output]))
        return output

    scale, zero = 0.05, np.int8(-3)
    tensor = quantized("QuantizeLinear", "x0", scale, zero, "q")
    for number in range(size):
        real = quantized("DequantizeLinear", tensor, scale, zero, f"x{number}_real")
        weights = rng.integers(-14, 15, (8, 8, 3, 3)).astype(np.int8)
        constants.append(numpy_helper.from_array(weights, f"w{number}_int8"))
        weight = quantized(
            "DequantizeLinear", f"w{number}_int8", 0.02, np.int8(0), f"weights{number}"
        )
        nodes.append(
            helper.make_node(
                "Conv", [real, weight], [f"y{number}"], pads=[1] * 4, name=f"c{number}"
            )
        )
        scale, zero = float(rng.uniform(0.03, 0.07)), np.int8(rng.integers(-20, 20))
        tensor = quantized("QuantizeLinear", f"y{number}", scale, zero, f"q{number}")
    result = quantized("DequantizeLinear", tensor, scale, zero, "y")
    shown = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8, 8, 8])
        for name in ("x0", result)
    ]
    graph = helper.make_graph(nodes, "graph", shown[:1], shown[1:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return bytes(model.SerializeToString())


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


BUILDS: dict[str, tuple[str, Callable[[int], bytes], str, tuple[int, ...]]] = {
    "RELUs, generic.cpu": ("tflite", _tflite_chain, "generic.cpu", BUILT),
    "convolutions, cortex_m4": ("onnx", convolutions, "cortex_m4", CONVOLUTIONS),
    "convolutions, siracusa": ("onnx", convolutions, "siracusa", (*CONVOLUTIONS[:-1], 900)),
}
"""What is built: suffix, its bytes given a size, target, and the sizes."""


def built(kind: str, size: int, target: str, folder: str) -> tuple[float, float]:
    """Return the seconds that a build takes, and the peak of this process in MB."""
    suffix, make, _, _ = BUILDS[kind]
    path = Path(folder) / f"chain.{suffix}"
    for length in (2, size):  # the first for imports, and the C that is compiled once
        path.write_bytes(make(length))
        begin = time.process_time()
        htvm.build(path, target)
    return time.process_time() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def alone(function: Callable[..., Any], *given: Any) -> Any:
    """Call a function in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *given).result()


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
        head = f"{'built':30}{'size':>8}{'seconds':>10}{'ms each':>10}{'MB':>8}"
        lines += ["", head]
        for kind, (_, _, target, sizes) in BUILDS.items():
            for size in sizes:
                with progress.stage(f"{kind}, {size}"):
                    seconds, megabytes = alone(built, kind, size, target, files)
                row(kind, size, seconds, f"{megabytes:8.0f}")
    artefact = Artefact("load_time", "Time of reading and building", "\n".join(lines), found)
    write(artefact, folder)
    return artefact


if __name__ == "__main__":
    sys.exit(run_benchmark(run))
