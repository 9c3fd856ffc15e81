"""The files: MLPerf Tiny's four TFLite networks, and an ONNX network that is made here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.peers.answer import Case

__all__ = ["TFLITE", "cases"]

TFLITE = {
    "AD": "ad01_int8",
    "KWS": "kws_ref_model",
    "VWW": "vww_96_int8",
    "IC": "pretrainedResnet_quant",
}
"""Name in tables -> folder of the file and its golden."""


def cases(models: Path, folder: Path) -> Iterator[Case]:
    """Yield the cases; what they need is written to ``folder``.

    Args:
        models: has a folder for each of :data:`TFLITE`, with ``model.tflite`` and ``golden.npz``;
            those that are absent are left out.
        folder: an existing folder.
    """
    for name, place in TFLITE.items():
        source = models / place / "model.tflite"
        if source.is_file():
            with np.load(models / place / "golden.npz") as golden:
                written = _golden(folder / f"{name}.npz", golden["inputs"], golden["out_tflm"])
            yield Case(name, str(source), written, "TFLite Micro")
    yield _digits(folder)


def _golden(path: Path, inputs: np.ndarray, outputs: np.ndarray) -> str:
    np.savez(path, inputs=inputs, outputs=outputs)
    return str(path)


def _digits(folder: Path) -> Case:
    """Return the zoo's network for digits as onnxruntime quantizes it (QDQ, int8)."""
    import onnxruntime

    from htvm.quantization.float_model import quantize_file
    from htvm.tools.zoo.trained import digits_data, weights_file

    images, _, held_out, _ = digits_data()
    path = folder / "digits.onnx"
    session = onnxruntime.InferenceSession(str(weights_file("digits")))
    name = session.get_inputs()[0].name
    quantize_file(Path(weights_file("digits")), path, {name: images[:256, None]})
    session = onnxruntime.InferenceSession(str(path))
    inputs = np.stack([image[None] for image in held_out[:8]])
    outputs = np.stack([session.run(None, {name: x})[0] for x in inputs])
    return Case("digits", str(path), _golden(folder / "digits.npz", inputs, outputs), "onnxruntime")
