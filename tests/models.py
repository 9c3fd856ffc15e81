"""Helper: the development models and their golden outputs, where they are at hand.

They are data beside the repository; where they are absent the tests that need them are skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

MODELS = ("ad01_int8", "kws_ref_model", "pretrainedResnet_quant", "vww_96_int8")

_ROOT = Path(__file__).resolve().parents[2] / "shared" / "models" / "tflite"

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Golden:
    """A model with what TFLite Micro computes.

    Attributes:
        path: the .tflite file.
        inputs: eight inputs, first axis.
        outputs: TFLite Micro's outputs, likewise.
        logits: the tensor before the softmax, or ``None`` where there is none.
    """

    path: Path
    inputs: Array
    outputs: Array
    logits: Array | None


def model_path(name: str) -> Path:
    """The .tflite file, or a skipped test."""
    path = _ROOT / name / "model.tflite"
    if not path.is_file():
        pytest.skip(f"the model {name} is not at hand ({path})")
    return path


def golden(name: str) -> Golden:
    """A model and its goldens, or a skipped test."""
    path = model_path(name)
    with np.load(path.with_name("golden.npz")) as arrays:
        logits = arrays["logits_tflm"] if "logits_tflm" in arrays else None
        return Golden(path, arrays["inputs"], arrays["out_tflm"], logits)


def layer_outputs(name: str) -> dict[int, Array]:
    """TFLite Micro's output of every operator for the first input, by the operator's index."""
    path = model_path(name)
    with np.load(path.with_name("layers_seed0.npz")) as arrays:
        return {int(key[2:4]): arrays[key] for key in arrays if key.startswith("op")}
