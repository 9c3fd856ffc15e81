"""ZigZag: an ONNX file on one of the accelerators that it brings; estimates only."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from common import main, timed


def probe(case: dict[str, str]) -> dict[str, Any]:
    import onnx
    import zigzag
    from zigzag.api import get_hardware_performance_zigzag

    inputs = Path(zigzag.__file__).parent / "inputs"
    hardware = inputs / "hardware" / "tpu_like.yaml"
    mapping = inputs / "mapping" / "tpu_like.yaml"
    with tempfile.TemporaryDirectory() as folder:
        inferred = f"{folder}/inferred.onnx"
        onnx.save(onnx.shape_inference.infer_shapes(onnx.load(case["path"])), inferred)
        (energy, cycles, *_), seconds = timed(
            lambda: get_hardware_performance_zigzag(
                inferred, str(hardware), str(mapping), opt="latency",
                dump_folder=folder, pickle_filename=f"{folder}/all.pickle",
            )
        )  # fmt: skip
    text = f"an estimate for its tpu_like: {cycles:,.0f} cycles"
    return {"reads": True, "reason": text, "compile_seconds": seconds}


main(probe)
