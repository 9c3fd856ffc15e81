"""The layers and L1 budgets on which ways of tiling are compared.

The distinct tileable layers of the four MLPerf Tiny networks (DS-CNN with HTVM's 7x5 filter),
layers of common larger networks, and odd sizes that no array likes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from byoc_dory.layers import (
    Layer,
    Shift,
    Tensor,
    add_layer,
    conv2d_layer,
    dense_layer,
    depthwise_layer,
)

__all__ = ["BUDGETS", "SHAPES", "Shape"]

BUDGETS = (4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000)
"""Bytes of L1."""


@dataclass(frozen=True)
class Shape:
    """A layer without its numbers.

    Attributes:
        name: network and layer.
        op: operator.
        c, k: input and output channels (alike for depthwise and add).
        y, x: input size.
        kernel, stride: (y, x), and of both axes.
        pad: (top, left, bottom, right).
    """

    name: str
    op: str
    c: int
    k: int
    y: int = 1
    x: int = 1
    kernel: tuple[int, int] = (1, 1)
    stride: int = 1
    pad: tuple[int, int, int, int] = (0, 0, 0, 0)

    def layer(self) -> Layer:
        """The layer, with weights of ones: cycles do not depend on them."""
        source = Tensor("in", (self.c, self.y, self.x))
        if self.op == "add":
            other = Tensor("in2", source.shape)
            return add_layer(self.name, source, other, "out", requant=Shift(1))
        if self.op == "dense":
            weight = np.ones((self.k, self.c), np.int8)
            vector = Tensor("in", (self.c,))
            return dense_layer(self.name, vector, "out", weight, None, requant=Shift(7))
        depthwise = self.op == "depthwise"
        make = depthwise_layer if depthwise else conv2d_layer
        weight = np.ones((self.k, 1 if depthwise else self.c, *self.kernel), np.int8)
        return make(
            self.name, source, "out", weight, None, stride=(self.stride, self.stride),
            pad=self.pad, requant=Shift(7),
        )  # fmt: skip


SAME = (1, 1, 1, 1)
ODD = (0, 0, 1, 1)

SHAPES = (
    Shape("resnet8 c1", "conv2d", 3, 16, 32, 32, (3, 3), 1, SAME),
    Shape("resnet8 c2", "conv2d", 16, 16, 32, 32, (3, 3), 1, SAME),
    Shape("resnet8 c4", "conv2d", 16, 32, 32, 32, (3, 3), 2, ODD),
    Shape("resnet8 c5", "conv2d", 32, 32, 16, 16, (3, 3), 1, SAME),
    Shape("resnet8 c6", "conv2d", 16, 32, 32, 32, (1, 1), 2),
    Shape("resnet8 c7", "conv2d", 32, 64, 16, 16, (3, 3), 2, ODD),
    Shape("resnet8 c8", "conv2d", 64, 64, 8, 8, (3, 3), 1, SAME),
    Shape("resnet8 add1", "add", 16, 16, 32, 32),
    Shape("ds_cnn c1", "conv2d", 1, 64, 49, 10, (7, 5), 2, (3, 2, 3, 2)),
    Shape("ds_cnn dw", "depthwise", 64, 64, 25, 5, (3, 3), 1, SAME),
    Shape("ds_cnn pw", "conv2d", 64, 64, 25, 5),
    Shape("mobilenet c1", "conv2d", 3, 8, 96, 96, (3, 3), 2, ODD),
    Shape("mobilenet dw1", "depthwise", 8, 8, 48, 48, (3, 3), 1, SAME),
    Shape("mobilenet pw1", "conv2d", 8, 16, 48, 48),
    Shape("mobilenet dw2", "depthwise", 16, 16, 48, 48, (3, 3), 2, ODD),
    Shape("mobilenet pw3", "conv2d", 32, 32, 24, 24),
    Shape("mobilenet dw7", "depthwise", 128, 128, 6, 6, (3, 3), 1, SAME),
    Shape("mobilenet pw7", "conv2d", 128, 128, 6, 6),
    Shape("toyadmos d1", "dense", 640, 128),
    Shape("toyadmos d10", "dense", 128, 640),
    Shape("larger 64x56", "conv2d", 64, 64, 56, 56, (3, 3), 1, SAME),
    Shape("larger 64x56 s2", "conv2d", 64, 128, 56, 56, (3, 3), 2, ODD),
    Shape("larger 128x28", "conv2d", 128, 128, 28, 28, (3, 3), 1, SAME),
    Shape("larger 256x14", "conv2d", 256, 256, 14, 14, (3, 3), 1, SAME),
    Shape("larger 3x224 s2", "conv2d", 3, 32, 224, 224, (3, 3), 2, ODD),
    Shape("larger 32x112 pw", "conv2d", 32, 64, 112, 112),
    Shape("larger 512x7 pw", "conv2d", 512, 512, 7, 7),
    Shape("larger dw 32x112", "depthwise", 32, 32, 112, 112, (3, 3), 1, SAME),
    Shape("larger dw 96x56 s2", "depthwise", 96, 96, 56, 56, (3, 3), 2, ODD),
    Shape("larger add 64x56", "add", 64, 64, 56, 56),
    Shape("odd 17x31", "conv2d", 17, 23, 31, 29, (5, 5), 1, (2, 2, 2, 2)),
    Shape("odd 5x61", "conv2d", 5, 19, 61, 13, (3, 7), 1, (1, 3, 1, 3)),
    Shape("odd 33x47 s2", "conv2d", 33, 49, 47, 35, (3, 3), 2, SAME),
    Shape("odd dw 37x45", "depthwise", 37, 37, 45, 27, (5, 3), 1, (2, 1, 2, 1)),
)
