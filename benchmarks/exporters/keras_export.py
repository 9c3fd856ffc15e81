"""Convert the networks as Keras does by default, and fully to integers; this needs TensorFlow.

    python -m benchmarks.exporters.keras_export FOLDER [--only NAME]

Each conversion is a folder with ``model.tflite`` and ``runs.npz``: inputs ``inI_J`` and outputs
``refI_J`` of run I by LiteRT's reference kernels; ``names`` are the inputs'.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["WAYS", "main"]

WAYS = ("float", "int8", "int8_borders", "uint8_borders")
"""As it is; fully int8 with real borders; with int8 and with uint8 at the borders."""

RUNS = 2


def _inputs(shapes: Any, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(1, *shape)).astype(np.float32) for shape in shapes]


def _converted(folder: str, shapes: Any, way: str) -> bytes:
    import tensorflow as tf

    converter = tf.lite.TFLiteConverter.from_saved_model(folder)
    if way != "float":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        names = [f"in{at}" for at in range(len(shapes))]
        converter.representative_dataset = lambda: (
            dict(zip(names, _inputs(shapes, 100 + at), strict=True)) for at in range(8)
        )
    if way.endswith("borders"):
        dtype = tf.int8 if way.startswith("int8") else tf.uint8
        converter.inference_input_type = converter.inference_output_type = dtype
    return converter.convert()


def _runs(content: bytes, shapes: Any) -> dict[str, Any]:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    runner = Interpreter(
        model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF
    )
    runner.allocate_tensors()
    kept: dict[str, Any] = {"names": [item["name"] for item in runner.get_input_details()]}
    for run in range(RUNS):
        drawn = {array.shape: array for array in _inputs(shapes, run)}
        for at, item in enumerate(runner.get_input_details()):
            data = drawn[tuple(item["shape"])]
            scale, zero = item["quantization"]
            if item["dtype"] != np.float32:
                limits = np.iinfo(item["dtype"])
                data = np.clip(np.rint(data / scale) + zero, limits.min, limits.max)
            kept[f"in{run}_{at}"] = data.astype(item["dtype"])
            runner.set_tensor(item["index"], kept[f"in{run}_{at}"])
        runner.invoke()
        for at, item in enumerate(runner.get_output_details()):
            kept[f"ref{run}_{at}"] = runner.get_tensor(item["index"])
    return kept


def main() -> int:
    """Write all conversions; what the converter refuses is in ``keras.failed.json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="a network")
    arguments = parser.parse_args()
    from benchmarks.exporters.keras_networks import NETWORKS, network

    failed: dict[str, str] = {}
    for name in NETWORKS:
        if arguments.only not in ("", name):
            continue
        made, shapes = network(name)
        with tempfile.TemporaryDirectory() as saved:
            made.export(saved, verbose=False)
            for way in WAYS:
                case = f"{name}-{way}"
                target = arguments.folder / "keras" / case
                try:
                    content = _converted(saved, shapes, way)
                    kept = _runs(content, shapes)
                except Exception as error:  # noqa: BLE001
                    failed[case] = f"{type(error).__name__}: {error}"[:300]
                    print(f"{case}: {failed[case]}", file=sys.stderr, flush=True)
                    continue
                target.mkdir(parents=True, exist_ok=True)
                (target / "model.tflite").write_bytes(content)
                np.savez_compressed(target / "runs.npz", **kept)
                print(case, file=sys.stderr, flush=True)
    (arguments.folder / "keras.failed.json").write_text(json.dumps(failed, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
