"""Resize between quantized tensors: what is imported and generated equals onnxruntime."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htvm
from byoc_dory.errors import HtvmError, ModelError, UnsupportedError
from tests.frontend.onnx.affine_files import Array, File, ours, theirs

SHAPE = (1, 3, 5, 4)
COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
SIZES = ((10, 8), (7, 9), (3, 2), (5, 1), (1, 4))
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def data() -> Array:
    return np.random.default_rng(5).normal(0.2, 1.5, SHAPE).astype(np.float32)


def file_of(folder: Path, sizes: Any = None, *, scales: Any = None, **attributes: Any) -> Path:
    """A resize from the scale 0.03 to 0.017, which leaves no ties, by sizes or by scales."""
    file = File()
    x = file.through(file.input("x", SHAPE), 0.0313717, 3)
    how = ["", "", file.constant(sizes, "int64")] if sizes is not None else ["", scales]
    if scales is not None:
        how[1] = file.constant(scales, "float32")
    y = file.node("Resize", [x, *how], **attributes)
    file.output(file.quantize(y, 0.0173391, -5), "int8")
    return file.save(folder)


@pytest.mark.parametrize("coordinates", COORDINATES)
def test_linear(coordinates: str, tmp_path: Path) -> None:
    for sizes in SIZES:
        path = file_of(tmp_path, (1, 3, *sizes), mode="linear",
                       coordinate_transformation_mode=coordinates)  # fmt: skip
        np.testing.assert_array_equal(ours(path, [data()])[0], theirs(path, [data()])[0])


@pytest.mark.parametrize("coordinates", COORDINATES)
def test_nearest(coordinates: str, tmp_path: Path) -> None:
    for sizes, rounding in itertools.product(SIZES, ROUNDINGS):
        path = file_of(tmp_path, (1, 3, *sizes), mode="nearest", nearest_mode=rounding,
                       coordinate_transformation_mode=coordinates)  # fmt: skip
        np.testing.assert_array_equal(ours(path, [data()])[0], theirs(path, [data()])[0])


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_scales(mode: str, tmp_path: Path) -> None:
    """A scale that gives no whole size is used as it is, not as the ratio of the sizes."""
    path = file_of(tmp_path, scales=(1, 1, 1.7, 2.6), mode=mode)
    found, wanted = ours(path, [data()])[0], theirs(path, [data()])[0]
    assert found.shape == (1, 3, 8, 10)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("target", ["generic.cpu", "diana.digital"])
def test_a_network_with_both_runs(target: str, tmp_path: Path) -> None:
    file, rng = File(), np.random.default_rng(1)
    x = file.through(file.input("x", SHAPE), 0.031, 3)
    kernel = file.dequantize(file.constant(rng.integers(-127, 128, (4, 3, 1, 1)), "int8"), 0.01, 0)
    y = file.through(file.node("Conv", [x, kernel]), 0.03, 2)
    y = file.node("Resize", [y, "", "", file.constant((1, 4, 10, 8), "int64")], mode="nearest")
    y = file.through(y, 0.03, 2)
    y = file.node("Resize", [y, "", "", file.constant((1, 4, 7, 9), "int64")], mode="linear")
    file.output(file.quantize(y, 0.04, 1), "int8")
    path = file.save(tmp_path)
    built = htvm.build(htvm.load(path), target, "host")
    found, wanted = built.run([data()]).outputs[0], theirs(path, [data()])[0]
    # Retargeting gives the convolution's result another scale.
    limit = 0 if target == "generic.cpu" else 2
    np.testing.assert_allclose(found.astype(int), wanted, rtol=0, atol=limit)
    estimated = {row.layer: row.cpu_cycles for row in built.explain().rows}
    assert estimated["nearest_0"] and estimated["real_bilinear_0"]


@pytest.mark.parametrize(
    ("sizes", "attributes", "kind", "message"),
    [
        ((1, 3, 5, 4), {"mode": "cubic", "antialias": 1}, UnsupportedError, "antialias"),
        ((1, 4, 5, 4), {"mode": "linear"}, UnsupportedError, "height and width only"),
        ((1, 3, 5), {"mode": "linear"}, UnsupportedError, "height and width only"),
        ((1, 3, 0, 4), {"mode": "nearest"}, ModelError, "sizes from 1"),
        ((1, 3, 5, 9), {"nearest_mode": "up"}, UnsupportedError, "nearest_mode 'up'"),
        (
            (1, 3, 9, 9),
            {"coordinate_transformation_mode": "tf_crop_and_resize", "mode": "linear"},
            UnsupportedError,
            "coordinates 'tf_crop_and_resize'",
        ),
    ],
)
def test_others_are_refused(
    sizes: Any, attributes: Any, kind: type[HtvmError], message: str, tmp_path: Path
) -> None:
    with pytest.raises(kind, match=message) as error:
        htvm.load(file_of(tmp_path, sizes, **attributes))
    assert "Resize" in error.value.where
