"""Layers and regions reject what contradicts itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from byoc_dory.errors import ModelError
from byoc_dory.layers import (
    Layer,
    Shift,
    Tensor,
    add_layer,
    conv2d_layer,
    dense_layer,
    depthwise_layer,
)
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
