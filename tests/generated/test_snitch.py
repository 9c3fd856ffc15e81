"""Golden C of the Snitch cluster and ITA: each kind of layer, each schedule, borders of regions."""

from __future__ import annotations

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
    dense_layer,
    depthwise_layer,
    gemm_layer,
    matmul_layer,
    matrix,
    rows_layer,
)
from byoc_dory.layers.rowwise import (
    AffineNorm,
    ItaGelu,
    ItaSoftmax,
    LayerNorm,
    RmsNorm,
    RowFunction,
    TableMap,
    TableSoftmax,
)
from byoc_dory.options import TilingOptions
from byoc_dory.region import BorderMap
from byoc_dory.sharing import share_functions
from byoc_dory.soc.snitch_ita.description import SNITCH_ITA
from tests.byoc_dory.layers import int8, int32
from tests.byoc_dory.snitch_cases import attention_layer
from tests.byoc_dory.test_snitch_native import feed_forward
from tests.generated.golden import check_golden
from tests.generated.kernels import chain, code_of, text_of

MAPS = Tensor("x", (12, 10, 9), layout="NHWC")
SAME = (1, 1, 1, 1)
ONE = MulShift((37,), (11,), (1024,))


def each(k: int, rng: np.random.Generator) -> MulShift:
    """A requantization per channel."""
    muls, adds = (tuple(int(n) for n in rng.integers(1, 900, k)) for _ in range(2))
    return MulShift(muls, tuple(int(n) for n in rng.integers(9, 14, k)), adds)


def reversed_bytes() -> TableMap:
    return TableMap(np.arange(256, dtype=np.uint8)[::-1].copy())


def products(kind: str) -> Layer:
    """A layer of the cores with weights, or a product of two activations."""
    rng = np.random.default_rng(3)
    if kind == "gemm":
        x = matrix("x", 24, 30)
        return gemm_layer("gemm", x, int8(rng, 22, 30), int32(rng, 22), requant=ONE)
    if kind == "gemm_table":
        return gemm_layer(
            "gemm", matrix("x", 24, 30, "uint8"), int8(rng, 22, 30), None, requant=each(22, rng),
            function=reversed_bytes(), transposed=True,
        )  # fmt: skip
    if kind in ("matmul", "matmul_rows"):
        swapped = kind == "matmul_rows"
        a = Tensor("a", (30, 2, 24), "int8", "NHWC")
        b = Tensor("b", (30, 2, 22) if swapped else (22, 2, 30), "int8", "NHWC")
        return matmul_layer("matmul", a, b, requant=ONE, transposed=swapped, batch=2)
    if kind == "conv2d":
        weight = int8(rng, 18, 12, 3, 3)
        return conv2d_layer("conv", MAPS, "y", weight, int32(rng, 18), pad=SAME, requant=ONE)
    if kind == "conv2d_per_channel":
        weight, own = int8(rng, 18, 12, 3, 3), each(18, rng)
        pad = (1, 1, 0, 0)
        return conv2d_layer(
            "conv", MAPS, "y", weight, None, pad=pad, stride=(2, 2), requant=own, clip=(0, 127)
        )
    if kind == "depthwise":
        weight, bias = int8(rng, 12, 1, 3, 3), int32(rng, 12)
        return depthwise_layer("depthwise", MAPS, "y", weight, bias, pad=SAME, requant=Shift(8))
    if kind == "dense":
        source = Tensor("x", (70,), layout="C")
        return dense_layer("dense", source, "y", int8(rng, 37, 70), int32(rng, 37), requant=ONE)
    terms = tuple(matrix(f"x{n}", 24, 30) for n in range(3 if kind == "add_of_three" else 2))
    total = add_layer("add", terms[0], terms[1], "y", requant=ONE)
    return replace(total, inputs=terms, output=matrix("y", 24, 30))


def functions() -> dict[str, tuple[RowFunction, str]]:
    """Each function of rows of 30, and the type of its results."""
    rng = np.random.default_rng(4)
    weight, bias = (rng.integers(-3000, 3000, 30).astype(np.int32) for _ in range(2))
    falling = tuple(int(n) for n in np.sort(rng.integers(1, 20_000, 256))[::-1])
    return {
        "table_softmax": (TableSoftmax(falling, 256), "uint8"),
        "ita_softmax": (ItaSoftmax(), "uint8"),
        "layer_norm": (LayerNorm(weight, bias, 5), "int8"),
        "rms_norm": (RmsNorm(weight, 4), "int8"),
        "affine_norm": (AffineNorm(weight, bias, 3, 12), "int8"),
        "affine_norm_wide": (AffineNorm(weight * 500, bias * 900, 2900, 31), "int8"),
        "table_map": (reversed_bytes(), "int8"),
    }


def layer_text(layer: Layer, home: str, schedule: str, budget: int | None) -> str:
    options = TilingOptions(l1_budget=budget, schedule=schedule)  # type: ignore[arg-type]
    code = code_of(chain("region", (layer,)), SNITCH_ITA, options, home)
    kernels = (kernel for kernel in code.kernels if kernel.layer is not None)
    return "\n".join(kernel.source.strip() + "\n" for kernel in kernels)


def both(layer: Layer, home: str, tight: int) -> str:
    """A layer under both schedules, in all of L1 and in so little that it needs tiles."""
    parts = []
    for schedule in ("published", "overlapped"):
        for budget in (None, tight):
            text = layer_text(layer, home, schedule, budget)
            assert budget is None or "(1 in all" not in text, (schedule, budget)
            what = "all of L1" if budget is None else f"{budget} B of L1"
            parts.append(f"/* ==== {schedule}, {what} ==== */\n\n{text}")
    return "\n".join(parts)


TIGHT = {
    "gemm": 1_000, "gemm_table": 1_600, "matmul": 3_000, "matmul_rows": 3_000, "conv2d": 2_600,
    "conv2d_per_channel": 2_600, "depthwise": 900, "dense": 1_600, "add": 600,
    "add_of_three": 600,
}  # fmt: skip


@pytest.mark.parametrize("kind", TIGHT)
def test_layers_of_the_cores(kind: str, update_golden: bool) -> None:
    text = both(products(kind), "cluster", TIGHT[kind])
    check_golden(f"snitch_ita/cluster_{kind}.c", text, update_golden)


@pytest.mark.parametrize("name", functions())
def test_functions_of_rows(name: str, update_golden: bool) -> None:
    function, dtype = functions()[name]
    layer = rows_layer("rows", matrix("x", 24, 30), function, dtype)
    parts = [layer_text(layer, "cluster", "overlapped", budget) for budget in (None, 1_600)]
    check_golden(f"snitch_ita/cluster_rows_{name}.c", "\n".join(parts), update_golden)


def ita_product(kind: str) -> Layer:
    rng = np.random.default_rng(5)
    # "odd": what is no multiple of 64 is padded in L1.
    rows, columns, k = (100, 70, 130) if kind == "odd" else (192, 128, 192)
    function = ItaGelu(-37, 1200, 200, 18, -3) if kind == "gelu" else None
    return gemm_layer(
        "gemm", matrix("x", rows, columns), int8(rng, k, columns), int32(rng, k), requant=ONE,
        clip=(0, 127) if kind == "relu" else (-128, 127), function=function,
        transposed=kind == "transposed",
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["plain", "relu", "gelu", "transposed", "odd"])
def test_products_on_ita(kind: str, update_golden: bool) -> None:
    text = both(ita_product(kind), "ita", 50_000 if kind == "transposed" else 40_000)
    check_golden(f"snitch_ita/ita_gemm_{kind}.c", text, update_golden)


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("schedule", ["published", "overlapped"])
def test_attention(schedule: str, joined: bool, update_golden: bool) -> None:
    """Two heads: products, scores with softmax and context, and the sum or the product of all."""
    layer = attention_layer(np.random.default_rng(6), "mha", 128, 64, 2, joined)
    name = f"ita_attention_{'joined' if joined else 'summed'}_{schedule}"
    text = layer_text(layer, "ita", schedule, None)
    check_golden(f"snitch_ita/{name}.c", text, update_golden)


def test_attention_of_odd_sizes_in_tiles(update_golden: bool) -> None:
    layer = attention_layer(np.random.default_rng(7), "mha", 150, 70, 1, True)
    text = layer_text(layer, "ita", "overlapped", 50_000)
    check_golden("snitch_ita/ita_attention_tiled.c", text, update_golden)


def test_tensors_that_stay_in_l1(update_golden: bool) -> None:
    """Products on ITA, sum and norm on the cores: only the ends are in L2."""
    region = chain("region", feed_forward(), ("ita", "ita", "cluster", "cluster"))
    code = code_of(region, SNITCH_ITA, TilingOptions(), None)
    assert code.plan is not None and code.plan.resident
    check_golden("snitch_ita/resident.c", text_of(code), update_golden)


def test_functions_that_layers_share(update_golden: bool) -> None:
    """Of attention with two heads: each function, and what each layer passes it."""
    layer = attention_layer(np.random.default_rng(6), "mha", 128, 64, 2, False)
    code = code_of(chain("region", (layer,)), SNITCH_ITA, TilingOptions(), "ita")
    found = share_functions(code.kernels, "net")
    assert len(found.functions) < len(code.kernels)
    calls = [
        f" * {kernel.layer_name}: {found.function_of[kernel.symbol].symbol}"
        f"({', '.join(f'{v.argument} = {v.value}' for v in found.values[kernel.symbol])})\n"
        for kernel in code.kernels
    ]
    text = (
        f"{found.source}\n/* calls, with what is passed after the tensors:\n{''.join(calls)} */\n"
    )
    check_golden("snitch_ita/shared.c", text, update_golden)


def test_borders_of_a_region(update_golden: bool) -> None:
    """From and to channels first: whole, and in parts where the map is larger than L1's room."""
    stored = SNITCH_ITA.accelerator("cluster").layout(SNITCH_ITA)
    table = BorderMap("mapped", "x", reversed_bytes().table)
    parts = []
    for shape, layout in (((5, 6, 7), "NCHW"), ((3, 150, 190), "NCHW"), ((5, 6, 7), "NHWC")):
        tensor = Tensor("x", shape, layout=layout)  # type: ignore[arg-type]
        mapped = replace(tensor, name="mapped")
        kernels = [stored.prologue(mapped, "mapped.core", "net_x_mapped_to_core", table)]
        if layout == "NCHW":
            kernels += [
                stored.prologue(tensor, "x.core", "net_x_to_core"),
                stored.epilogue(tensor, "x.core", "net_x_from_core"),
            ]
        parts += [kernel.source.strip() + "\n" for kernel in kernels]
    check_golden("snitch_ita/borders.c", "\n".join(parts), update_golden)
