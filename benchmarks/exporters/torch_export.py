"""Export the networks with torch and quantize them with onnxruntime; this needs both installed.

    python -m benchmarks.exporters.torch_export FOLDER [--only NAME]

Each export is a folder with ``model.onnx`` and ``runs.npz``: inputs ``inI_J`` and outputs
``fusedI_J`` and ``plainI_J`` of run I, by a default session and one without optimization; those
whose sums would saturate on this CPU are left out.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["WAYS", "main", "results"]

WAYS: dict[str, dict[str, Any]] = {
    "qdq_u8": {"activations": "u8", "weights": "u8"},
    "qdq_u8s8_channel": {"activations": "u8", "weights": "s8", "channel": True},
    "qdq_s8": {"activations": "s8", "weights": "s8"},
    "qdq_s8_symmetric_channel": {
        "activations": "s8", "weights": "s8", "channel": True, "symmetric": True,
    },
    "qop_u8": {"activations": "u8", "weights": "u8", "qoperator": True},
    "qop_u8s8_channel": {"activations": "u8", "weights": "s8", "channel": True, "qoperator": True},
    "qop_s8": {"activations": "s8", "weights": "s8", "qoperator": True},
    "qop_s8_symmetric_channel": {
        "activations": "s8", "weights": "s8", "channel": True, "symmetric": True,
        "qoperator": True,
    },
}  # fmt: skip
"""Ways to quantize: types, per channel or not, symmetric or not, QDQ or QOperator."""

RUNS = 2

_DISABLED = ["WeightBiasQuantization"]
"""It rounds weights that the file has as reals, and so runs another network than the file's."""


def _floats(name: str, shapes: Any, folder: Path) -> Path:
    """Write the network in float32, prepared for quantization; return the file."""
    import torch
    from onnxruntime.quantization.shape_inference import quant_pre_process

    from benchmarks.exporters.torch_networks import network

    made, shapes = network(name)
    raw, ready = folder / f"{name}.raw.onnx", folder / f"{name}.onnx"
    example = tuple(torch.randn(shape) for shape in shapes)
    torch.onnx.export(made, example, str(raw), dynamo=True, external_data=False, verbose=False)
    quant_pre_process(str(raw), str(ready), skip_symbolic_shape=True)
    return ready


def _inputs(shapes: Any, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape).astype(np.float32) for shape in shapes]


def _quantize(source: Path, target: Path, names: list[str], shapes: Any, way: Any) -> None:
    from onnxruntime import quantization as q

    class Reader(q.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.left = [dict(zip(names, _inputs(shapes, 100 + i), strict=True)) for i in range(8)]

        def get_next(self) -> Any:
            return self.left.pop() if self.left else None

    types = {"u8": q.QuantType.QUInt8, "s8": q.QuantType.QInt8}
    symmetric = bool(way.get("symmetric"))
    q.quantize_static(
        str(source),
        str(target),
        Reader(),
        quant_format=q.QuantFormat.QOperator if way.get("qoperator") else q.QuantFormat.QDQ,
        activation_type=types[way["activations"]],
        weight_type=types[way["weights"]],
        per_channel=bool(way.get("channel")),
        extra_options={"ActivationSymmetric": symmetric} if symmetric else {},
    )


def results(path: Path, runs: list[list[Any]], names: list[str]) -> dict[str, Any]:
    """Return the outputs of an export, of the sessions whose sums do not saturate here.

    Args:
        path: the file.
        runs: the inputs of each run.
        names: their names.
    """
    from tests.reference.onnx_session import exact_session

    kept: dict[str, Any] = {}
    for kind in ("fused", "plain"):
        session = exact_session(str(path), optimized=kind == "fused", disabled=_DISABLED)
        if session is None:
            continue
        for run, inputs in enumerate(runs):
            found = session.run(None, dict(zip(names, inputs, strict=True)))
            kept |= {f"{kind}{run}_{at}": item for at, item in enumerate(found)}
    return kept


def _export(name: str, source: Path, way: str, folder: Path) -> None:
    import onnxruntime as ort

    session = ort.InferenceSession(str(source), providers=["CPUExecutionProvider"])
    names = [item.name for item in session.get_inputs()]
    shapes = [tuple(item.shape) for item in session.get_inputs()]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.onnx"
    _quantize(source, path, names, shapes, WAYS[way])
    runs = [_inputs(shapes, run) for run in range(RUNS)]
    kept = {f"in{run}_{at}": item for run, data in enumerate(runs) for at, item in enumerate(data)}
    kept |= results(path, runs, names)
    np.savez_compressed(folder / "runs.npz", **kept)


def main() -> int:
    """Write all exports; those that the exporter itself refuses are listed in ``failed.json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="a network")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    from benchmarks.exporters.torch_networks import NETWORKS

    failed: dict[str, str] = {}
    floats = arguments.folder / "float"
    floats.mkdir(parents=True, exist_ok=True)
    for name, (_, shapes) in NETWORKS.items():
        if arguments.only not in ("", name):
            continue
        try:
            source = _floats(name, shapes, floats)
        except Exception as error:  # noqa: BLE001
            failed[name] = f"{type(error).__name__}: {error}"[:300]
            print(f"{name}: {failed[name]}", file=sys.stderr, flush=True)
            continue
        for way in WAYS:
            case = f"{name}-{way}"
            try:
                _export(name, source, way, arguments.folder / "torch" / case)
                print(case, file=sys.stderr, flush=True)
            except Exception as error:  # noqa: BLE001
                failed[case] = f"{type(error).__name__}: {error}"[:300]
                print(f"{case}: {failed[case]}", file=sys.stderr, flush=True)
    (arguments.folder / "torch.failed.json").write_text(json.dumps(failed, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
