"""Helper: the development models in ONNX with their goldens, where they are at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import htvm

_ROOT = Path(__file__).resolve().parents[2] / "shared" / "models"

Array = npt.NDArray[Any]

KERNELS = (
    "Add/Large",
    "Add/Regular",
    "Add/Regular_RQ",
    "Attention",
    "Conv/DW_2D_RQ",
    "Conv/DW_3x3_RQ",
    "Conv/PW_2D",
    "Conv/Regular_1D_RQ",
    "Conv/Regular_2D",
    "Conv/Regular_2D_RQ",
    "Conv/Regular_3x3",
    "Conv/Regular_3x3_RQ",
    "GEMM/Regular",
    "GEMM/Regular_RQPerColumn",
    "GEMM/Regular_RQPerRow",
    "Hardswish/Regular_RQ",
    "Identity/InputIdentity",
    "MatMul/Regular",
    "MatMul/Regular_RQ",
    "MaxPool/Regular_2D",
    "Pad/Regular_2D",
    "RMSNorm",
    "ReduceMean",
    "Slice",
    "Softmax/Regular",
    "TrueIntegerDiv",
)
NETWORKS = (
    "miniMobileNet",
    "CNN_Linear2",
    "MLPerf/KeywordSpotting",
    "CCT/Int/ICCT_ITA",
    "microLlama/INT8/microLlama1",
    "Transformer_DeepQuant",
)
LLAMAS = tuple(
    f"deeploy_networks/microLlama/INT8/microLlama{kind}"
    for kind in ("1", "64", "256", "1_parallel", "16_parallel")
)
"""A decoding step with a cache of so many positions; prompts of so many tokens, the cache empty."""
FILES = (
    *(f"deeploy_kernels/Integer/{name}" for name in KERNELS),
    "deeploy_kernels/Mixed/Dequant",
    "deeploy_kernels/Mixed/Quant",
    *(f"deeploy_networks/{name}" for name in NETWORKS),
    "match_models/carfield_cnn",
    "match_models/drone_regressor",
)


def onnx_path(name: str) -> Path:
    """The file of a name of `FILES`, or a skipped test."""
    folder = _ROOT / name
    for file in ("network.onnx", "model.onnx"):
        if (folder / file).is_file():
            return folder / file
    pytest.skip(f"the model {name} is not at hand ({folder})")


def golden(name: str, model: htvm.Model) -> tuple[list[Array], list[Array]]:
    """Inputs, in the types of the model, and outputs; the first sample where there are several."""
    folder = onnx_path(name).parent
    if (folder / "golden.npz").is_file():
        with np.load(folder / "golden.npz") as arrays:
            inputs, outputs = [arrays["inputs"][0]], [arrays["outputs"][0]]
    else:
        inputs = _arrays(folder / "inputs.npz", [info.name for info in model.inputs])
        outputs = _arrays(folder / "outputs.npz", [info.name for info in model.outputs])
    cast = [array.astype(info.dtype) for array, info in zip(inputs, model.inputs, strict=True)]
    for array, original in zip(cast, inputs, strict=True):
        np.testing.assert_array_equal(array, original)
    return cast, outputs


def _arrays(path: Path, names: list[str]) -> list[Array]:
    """By name where the file has the names, otherwise in its order; it may hold more.

    Arrays without elements, such as an empty cache, belong to no tensor of the model.
    """
    with np.load(path) as arrays:
        keys = names if all(name in arrays for name in names) else arrays.files
        found = [arrays[key] for key in keys if arrays[key].size]
        return found[: len(names)]
