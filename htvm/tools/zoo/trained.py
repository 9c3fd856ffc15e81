"""Trained networks: small convolutional ones for scikit-learn's digits.

Their weights are part of the package, in float, written by `benchmarks.train_digits`; a model is
quantized when it is loaded, calibrated with training images.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from byoc_dory.errors import DependencyError, ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from htvm.model import Model

TRAINED = ("digits", "digits_ternary")
"""Names of the networks: with 8-bit weights, and with ternary ones but in first and last layer."""

HOLD_OUT = 4
"""Every fourth image is held out: neither weights nor scales depend on it."""

_CALIBRATE = 4  # every fourth training image, 337 of them

Split: TypeAlias = "tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]"


def weights_file(name: str) -> Path:
    """Return the float ONNX file of a trained network.

    Raises:
        ModelError: there is no such network.
    """
    if name not in TRAINED:
        raise ModelError(
            f"there is no trained network {name!r}",
            where="htvm.zoo",
            hint=f"one of {', '.join(TRAINED)}",
        )
    return Path(__file__).with_name("weights") / f"{name}.onnx"


def digits_data() -> Split:
    """Return training images, their labels, held-out images, their labels.

    Images are float32 ``[N, 1, 8, 8]`` in 0..1, labels int32 ``[N]``; 1,347 and 450 of them, from
    scikit-learn's bundled digits.

    Raises:
        DependencyError: scikit-learn is not installed.
    """
    table = _digits_table()
    images = (table[:, :-1].reshape(-1, 1, 8, 8) / 16).astype(np.float32)
    labels = table[:, -1].astype(np.int32)
    held_out = np.arange(len(labels)) % HOLD_OUT == 0
    return images[~held_out], labels[~held_out], images[held_out], labels[held_out]


def _digits_table() -> NDArray[Any]:
    """Return one row per digit: 64 pixels in 0..16, and the label.

    The table is read from scikit-learn's files directly if they are in their usual place: importing
    the package takes longer than everything else that is done with a network of this size.
    """
    spec = importlib.util.find_spec("sklearn")
    if spec is None or spec.origin is None:
        raise DependencyError(
            "the digits need the package 'scikit-learn', which is not installed",
            where="htvm.zoo",
            hint="pip install 'htvm[digits]'",
        )
    path = Path(spec.origin).with_name("datasets") / "data" / "digits.csv.gz"
    if path.is_file():
        return np.loadtxt(path, delimiter=",")
    from sklearn.datasets import load_digits

    digits = load_digits()
    return np.column_stack((digits.data, digits.target))


def load_trained(name: str) -> Model:
    """Return a trained network as an int8 model, calibrated with training images.

    Raises:
        ModelError: there is no such network.
        DependencyError: onnxruntime or scikit-learn is not installed.
    """
    from dataclasses import replace

    from htvm.quantization import calibrated

    path = weights_file(name)
    images, *_ = digits_data()
    model = calibrated(path, images[::_CALIBRATE], name=name)
    return replace(model, source=f"htvm.zoo.{name}")
