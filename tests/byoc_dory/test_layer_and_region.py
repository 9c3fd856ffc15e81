"""Layers and regions reject what contradicts itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from byoc_dory.errors import ModelError
from byoc_dory.layers import (
    Layer,
    Scores,
    Shift,
    Tensor,
    add_layer,
    attend_layer,
    conv2d_layer,
    dense_layer,
    depthwise_layer,
    gemm_layer,
    matmul_layer,
    matrix,
    rows_layer,
)
from byoc_dory.layers.rowwise import ItaSoftmax, TableMap
from byoc_dory.region import Region


def conv() -> Layer:
    return conv2d_layer(
        "c", Tensor("x", (3, 9, 8)), "y", np.zeros((4, 3, 3, 5), np.int8), np.zeros(4, np.int32),
        stride=(2, 1), pad=(1, 2, 0, 1), requant=Shift(3), clip=(0, 127),
    )  # fmt: skip


def test_builders_derive_the_output() -> None:
    layer = conv()
    assert layer.output.shape == (4, 4, 7)
    assert layer.macs == 4 * 3 * 4 * 7 * 3 * 5
    assert layer.relu
    dense = dense_layer(
        "d", Tensor("v", (7,)), "y", np.zeros((5, 7), np.int8), None, requant=Shift(0)
    )
    assert (dense.output.shape, dense.macs) == ((5,), 35)
    depthwise = depthwise_layer(
        "w", Tensor("x", (3, 9, 8)), "y", np.zeros((3, 1, 3, 3), np.int8), None, requant=Shift(0)
    )
    assert (depthwise.output.shape, depthwise.macs) == ((3, 7, 6), 3 * 7 * 6 * 9)
    both = Tensor("x", (3, 9, 8))
    assert add_layer("a", both, both, "y", requant=Shift(0)).macs == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"output": Tensor("y", (4, 5, 7))}, "oy=5, but .* give 4"),
        ({"output": Tensor("y", (5, 4, 7))}, r"\(5, 4, 7\), not \(4, 4, 7\)"),
        ({"inputs": (Tensor("x", (2, 9, 8)),)}, r"shape \(2, 9, 8\), not \(3, 9, 8\)"),
        ({"weight": np.zeros((4, 2, 3, 5), np.int8)}, r"shape \(3, 9, 8\), not \(2, 9, 8\)"),
        ({"weight": np.zeros((4, 3, 5, 3), np.int8)}, "kernel 5, stride 2, dilation 1 give 3"),
        ({"weight": np.zeros((4, 3), np.int8)}, r"weight has shape \(4, 3\)"),
        ({"weight": np.zeros((4, 3, 0, 5), np.int8)}, r"weight has shape \(4, 3, 0, 5\)"),
        ({"bias": np.zeros(3, np.int32)}, r"bias has shape \(3,\)"),
        ({"clip": (5, 4)}, "empty"),
        ({"pad": (1, 2, -1, 1)}, "negative padding"),
        ({"groups": 2}, r"shape \(3, 9, 8\), not \(6, 9, 8\)"),
        ({"groups": 3}, "groups=3 does not divide C=9 and K=4"),
        ({"stride": (0, 1)}, "below 1"),
        ({"inputs": ()}, "0 input tensors"),
        ({"name": ""}, "no name"),
    ],
)
def test_contradictions(change: dict, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        replace(conv(), **change)


def gemm(transposed: bool = False) -> Layer:
    weight = np.zeros((6, 8), np.int8)
    return gemm_layer("g", matrix("x", 5, 8), weight, None, requant=Shift(3), transposed=transposed)


def matmul(batch: int = 1, transposed: bool = False) -> Layer:
    b = matrix("b", batch * (6 if transposed else 8), 8 if transposed else 6)
    a = matrix("a", batch * 5, 8)
    return matmul_layer("m", a, b, requant=Shift(3), batch=batch, transposed=transposed)


def rows() -> Layer:
    return rows_layer("r", matrix("x", 5, 8), TableMap(np.zeros(256, np.uint8)))


def attend() -> Layer:
    scores = Scores((1, 0, 0), ItaSoftmax(), (1, 0, 0))
    key, value = matrix("k", 7, 8), matrix("v", 8, 7)
    return attend_layer("h", matrix("q", 5, 8), key, value, scores, heads=2)


def test_sizes_follow_from_tensors_and_weights() -> None:
    def sizes(layer: Layer) -> tuple[int, ...]:
        return (layer.K, layer.C, layer.iy, layer.ix, layer.oy, layer.ox, layer.macs)

    assert sizes(gemm()) == (6, 8, 5, 1, 5, 1, 240)
    assert sizes(gemm(transposed=True)) == (6, 8, 5, 1, 5, 1, 240)
    assert gemm(transposed=True).output.shape == (5, 6, 1)
    assert sizes(matmul()) == (6, 8, 5, 1, 5, 1, 240)
    assert sizes(matmul(batch=3)) == (6, 8, 15, 1, 15, 1, 720)
    assert sizes(matmul(batch=3, transposed=True)) == (6, 8, 15, 1, 15, 1, 720)
    assert sizes(rows()) == (8, 8, 5, 1, 5, 1, 0)
    assert sizes(attend()) == (8, 8, 5, 1, 5, 1, 5 * 7 * 16)
    vector = Tensor("v", (9,))
    assert sizes(add_layer("a", vector, vector, "y", requant=Shift(0))) == (9, 9, 1, 1, 1, 1, 0)


@pytest.mark.parametrize(
    ("layer", "change", "message"),
    [
        (gemm(), {"inputs": (matrix("x", 5, 7),)}, r"shape \(7, 5, 1\), not \(8, 5, 1\)"),
        (gemm(), {"transposed": True}, r"shape \(6, 5, 1\), not \(5, 6, 1\)"),
        (gemm(), {"weight": np.zeros((6, 8, 3, 1), np.int8)}, "a kernel of 3x1"),
        (matmul(), {"inputs": (matrix("a", 5, 8),)}, "1 input tensors instead of 2"),
        (matmul(), {"batch": 2}, "5 rows are not those of 2 matrices"),
        (matmul(), {"transposed": True}, r"'b' has shape \(6, 8, 1\), not \(8, 6, 1\)"),
        (rows(), {"output": matrix("r", 4, 8)}, r"shape \(8, 5, 1\), not \(8, 4, 1\)"),
        (attend(), {"heads": 3}, "3 heads do not divide C=8 and K=8"),
        (attend(), {"inputs": attend().inputs[:2]}, "2 input tensors instead of 3"),
    ],
)
def test_contradictions_of_matrices(layer: Layer, change: dict, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        replace(layer, **change)


def test_geometry_is_what_decides_about_cycles() -> None:
    assert conv().geometry == replace(conv(), name="other", requant=Shift(1)).geometry
    layers = [conv(), gemm(), gemm(True), matmul(), matmul(3), rows(), attend()]
    layers += [replace(attend(), heads=1), replace(conv(), pad=(0, 2, 1, 1))]
    assert len({layer.geometry for layer in layers}) == len(layers)


def test_dense_takes_vectors_only() -> None:
    with pytest.raises(ModelError, match=r"\(7, 1, 1\), not \(7,\).*vectors"):
        dense_layer(
            "d", Tensor("v", (7, 1, 1)), "y", np.zeros((5, 7), np.int8), None, requant=Shift(0)
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", (3,)), "no name"),
        (("t", (1, 3, 8, 8)), "4 dimensions"),
        (("t", (3, 0, 8)), "empty dimension"),
        (("t", (3,), "int8", "HWC"), "unknown layout 'HWC'"),
    ],
)
def test_tensors(arguments: tuple, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        Tensor(*arguments)


def test_regions_connect() -> None:
    layer = conv()
    x, y = layer.inputs[0], layer.output
    Region("r", (layer,), (x,), (y,))
    with pytest.raises(ModelError, match="'x' is read but never written"):
        Region("r", (layer,), (), (y,))
    with pytest.raises(ModelError, match="'z' is read but never written"):
        Region("r", (layer,), (x,), (Tensor("z", (1,)),))
    with pytest.raises(ModelError, match="written twice"):
        Region("r", (layer, layer), (x,), (y,))
    with pytest.raises(ModelError, match="where written"):
        Region("r", (layer,), (Tensor("x", (3, 8, 9)),), (y,))
    with pytest.raises(ModelError, match="without layers or outputs"):
        Region("r", (layer,), (x,), ())
    with pytest.raises(ModelError, match="also an input"):
        Region("r", (layer,), (x,), (y, x))
