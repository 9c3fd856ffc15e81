"""What the cluster's cores and ITA refuse, and that they say which value it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from byoc_dory.layers import (
    Layer,
    MulShift,
    Shift,
    Tensor,
    add_layer,
    conv2d_layer,
    gemm_layer,
    matmul_layer,
    matrix,
)
from byoc_dory.soc.snitch_ita.description import SNITCH_ITA
from byoc_dory.verdict import Accepted, Refused

HALF_UP = MulShift((3,), (8,), (128,))


def conv(pad: tuple[int, int, int, int]) -> Layer:
    weight = np.ones((4, 3, 2, 3), np.int8)
    return conv2d_layer(
        "conv", Tensor("x", (3, 8, 8)), "y", weight, None, pad=pad, requant=Shift(4)
    )


def product(second: str) -> Layer:
    a, b = matrix("a", 6, 5), matrix("b", 5, 4, second)
    return matmul_layer("product", a, b, requant=Shift(4))


def total(operands: int) -> Layer:
    parts = tuple(matrix(f"x{number}", 6, 5) for number in range(operands))
    layer = add_layer("total", parts[0], parts[1], "y", requant=Shift(1))
    return replace(layer, inputs=parts)


def gemm(requant: MulShift = HALF_UP, bias: int = 0, rows: int = 64) -> Layer:
    weight, biases = np.ones((64, 64), np.int8), np.full(64, bias, np.int32)
    return gemm_layer("gemm", matrix("x", rows, 64), weight, biases, requant=requant)


@pytest.mark.parametrize(
    ("home", "make", "value"),
    [
        # Tiles above and below the input would read none of it.
        ("cluster", lambda: conv((2, 0, 0, 0)), "(2, 0, 0, 0) for a kernel of 2x3"),
        ("cluster", lambda: conv((0, 0, 5, 0)), "(0, 0, 5, 0)"),
        # The kernels read weights and second operands as signed.
        ("cluster", lambda: product("uint8"), "the second operand is uint8"),
        ("cluster", lambda: total(9), "9 operands"),
        ("ita", lambda: gemm(MulShift((256,), (8,), (128,))), "256"),
        ("ita", lambda: gemm(MulShift((3,), (8,), (100,))), "100 does not round half up"),
        ("ita", lambda: gemm(MulShift((3,), (8,), (128 + 128 * 256,))), "offset of 128"),
        ("ita", lambda: gemm(bias=1 << 23), "8388608, more than 24 bits"),
        ("ita", lambda: gemm(rows=513), "513 rows"),
    ],
)
def test_refusals_name_the_value(home: str, make: Callable[[], Layer], value: str) -> None:
    verdict = SNITCH_ITA.accelerator(home).judge(SNITCH_ITA, make())
    assert isinstance(verdict, Refused) and value in verdict.reason, verdict


@pytest.mark.parametrize(
    ("home", "make"),
    [
        ("cluster", lambda: conv((1, 4, 1, 4))),
        ("cluster", lambda: product("int8")),
        ("cluster", lambda: total(8)),
        ("ita", lambda: gemm(MulShift((255,), (8,), (128 - 128 * 256,)), -(1 << 23), 512)),
    ],
)
def test_what_is_just_possible_is_accepted(home: str, make: Callable[[], Layer]) -> None:
    assert isinstance(SNITCH_ITA.accelerator(home).judge(SNITCH_ITA, make()), Accepted)
