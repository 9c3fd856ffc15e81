"""Golden C of N-EUREKA: each kind of layer, each schedule, weights in their memory and in L1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from byoc_dory.layers import (
    Layer,
    MulShift,
    Shift,
    Tensor,
    conv2d_layer,
    depthwise_layer,
    gemm_layer,
    matrix,
)
from byoc_dory.options import TilingOptions
from byoc_dory.soc.siracusa.description import CLUSTER_CORES, SIRACUSA
from byoc_dory.soc.siracusa.neureka import NEUREKA
from tests.byoc_dory.layers import int8, int32
from tests.generated.golden import check_golden
from tests.generated.kernels import chain, code_of

MAPS = Tensor("x", (12, 20, 18), layout="NHWC")
SAME = (1, 1, 1, 1)
ONE = MulShift((37,), (11,), (1024,))
LOCAL = replace(SIRACUSA, accelerators=(replace(NEUREKA, weight_memory=""), CLUSTER_CORES))
TIGHT = {
    "conv2d": 6_000, "relu": 6_000, "stride_2": 6_000, "depthwise": 5_000, "gemm": 3_000,
    "depthwise_stride_2": 6_000, "windows": 9_000,
}  # fmt: skip


def layer_of(kind: str) -> Layer:
    rng = np.random.default_rng(3)
    if kind == "gemm":
        x = matrix("x", 37, 30)
        return gemm_layer("gemm", x, int8(rng, 44, 30), int32(rng, 44), requant=ONE)
    if kind.startswith("depthwise"):
        weight, bias = int8(rng, 12, 1, 3, 3), int32(rng, 12)
        stride = (2, 2) if kind == "depthwise_stride_2" else (1, 1)
        return depthwise_layer(
            "depthwise", MAPS, "y", weight, bias, pad=SAME, stride=stride, requant=Shift(8)
        )
    weight, stride = int8(rng, 40, 12, 3, 3), (2, 2) if kind == "stride_2" else (1, 1)
    if kind == "windows":
        weight, stride = int8(rng, 40, 12, 5, 3), (2, 3)
    clip = (0, 127) if kind == "relu" else (-128, 127)
    return conv2d_layer(
        "conv", MAPS, "y", weight, int32(rng, 40), pad=SAME, stride=stride, requant=ONE, clip=clip
    )


@pytest.mark.parametrize("kind", TIGHT)
def test_layers_of_neureka(kind: str, update_golden: bool) -> None:
    """In all of L1 with weights in SRAM, and in so little that it needs tiles, with weights too."""
    layer, parts = layer_of(kind), []
    for soc, schedule, budget in (
        (SIRACUSA, "overlapped", None),
        (SIRACUSA, "overlapped", TIGHT[kind]),
        (LOCAL, "published", TIGHT[kind] + 7_000),
    ):
        options = TilingOptions(l1_budget=budget, schedule=schedule)  # type: ignore[arg-type]
        code = code_of(chain("region", (layer,)), soc, options, "neureka")
        text = "".join(k.source.strip() + "\n" for k in code.kernels if k.layer is not None)
        where = "SRAM" if soc is SIRACUSA else "L1"
        room = "all of L1" if budget is None else f"{budget} B of L1"
        parts.append(f"/* ==== {schedule}, {room}, weights in {where} ==== */\n\n{text}")
    check_golden(f"siracusa/neureka_{kind}.c", "\n".join(parts), update_golden)
