"""Helper: random regions for the cluster and ITA, with the outputs they must give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from byoc_dory.codegen import generate
from byoc_dory.cost import Cost
from byoc_dory.errors import TilingError
from byoc_dory.layers import (
    Attention,
    Layer,
    MulShift,
    Projection,
    Scores,
    Tensor,
    add_layer,
    gemm_layer,
    matmul_layer,
    matrix,
    mha_layer,
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
from byoc_dory.region import Region
from byoc_dory.soc.snitch_ita.description import SNITCH_ITA
from tests.byoc_dory.program import Case
from tests.reference import matrix_layers

__all__ = ["attention_layer", "case_of", "random_cluster_layer", "random_gemm", "try_case"]


def _int8(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-128, 128, shape).astype(np.int8)


def _bias(rng: np.random.Generator, size: int) -> np.ndarray:
    return rng.integers(-3000, 3000, size).astype(np.int32)


def _rounding(rng: np.random.Generator, shift: int) -> tuple[int, int, int]:
    """A requantization that rounds half up, with an offset."""
    half = (1 << shift) >> 1
    return int(rng.integers(1, 256)), shift, half + int(rng.integers(-3, 4)) * (1 << shift)


def random_gemm(rng: np.random.Generator, name: str, sizes: tuple[int, int, int]) -> Layer:
    """A product that ITA takes: M, C and K, sometimes with an activation or transposed."""
    rows, channels, k = sizes
    mul, shift, add = _rounding(rng, int(rng.integers(8, 16)))
    kind = int(rng.integers(4))
    function = ItaGelu(-37, 1200, 200, 18, -3) if kind == 1 else None
    return gemm_layer(
        name,
        matrix(f"{name}.x", rows, channels),
        _int8(rng, k, channels),
        _bias(rng, k) if rng.integers(4) else None,
        requant=MulShift((mul,), (shift,), (add,)),
        clip=(0, 127) if kind == 2 else (-128, 127),
        function=function,
        transposed=kind == 3,
    )


def attention_layer(
    rng: np.random.Generator, name: str, rows: int, embedding: int, heads: int, joined: bool
) -> Layer:
    """Attention that ITA takes, with heads of 64."""
    size = 64

    def product(k: int, c: int, requant: tuple[int, int, int]) -> Projection:
        return Projection(_int8(rng, k, c), _bias(rng, k), *requant)

    def per_head() -> tuple[Projection, ...]:
        requant = _rounding(rng, 14)
        return tuple(product(size, embedding, requant) for _ in range(heads))

    outputs = heads if not joined else 1
    width = heads * size if joined else size
    attention = Attention(
        query=per_head(),
        key=per_head(),
        value=per_head(),
        scores=Scores(
            _rounding(rng, 15),
            ItaSoftmax(step_bits=5 if rng.integers(3) else 0),
            _rounding(rng, 15),
        ),
        output=tuple(product(embedding, width, _rounding(rng, 14)) for _ in range(outputs)),
        accumulate=None if joined else (3, 3, 4),
    )
    return mha_layer(name, matrix(f"{name}.x", rows, embedding), attention)


def _function(rng: np.random.Generator, n: int) -> tuple[RowFunction, str]:
    """A function of rows of n, and the type of its results."""
    weight = rng.integers(-3000, 3000, n).astype(np.int32)
    bias = rng.integers(-30000, 30000, n).astype(np.int32)
    falling = np.sort(rng.integers(1, 20_000, 256))[::-1]
    choices: tuple[tuple[RowFunction, str], ...] = (
        (TableSoftmax(tuple(int(e) for e in falling), 256), "uint8"),
        (ItaSoftmax(), "uint8"),
        (ItaSoftmax(group=0, numerator=255 * 256), "uint8"),
        (ItaSoftmax(step_bits=0, group=16), "uint8"),
        (LayerNorm(weight, bias, 5), "int8"),
        (RmsNorm(weight, 4), "int8"),
        (AffineNorm(weight, bias, 3, 12), "int8"),
        # Products of more than 32 bits.
        (AffineNorm(weight * 500, bias * 900, 2900, 31), "int8"),
        (LayerNorm(weight * 500, bias * 70_000, 24), "int8"),
        (TableMap(rng.integers(0, 256, 256).astype(np.uint8)), "int8"),
    )
    return choices[int(rng.integers(len(choices)))]


def random_cluster_layer(rng: np.random.Generator, name: str) -> Layer:
    """A layer of matrices that the cores take."""
    rows, channels, k = (int(size) for size in rng.integers(1, 40, 3))
    kind = ("gemm", "matmul", "add", "rows")[int(rng.integers(4))]
    requant = MulShift((int(rng.integers(-300, 300)),), (int(rng.integers(0, 20)),), (5,))
    dtype = ("int8", "uint8")[int(rng.integers(4)) == 0]
    source = matrix(f"{name}.x", rows, channels, dtype)
    if kind == "gemm":
        if rng.integers(2):
            requant = MulShift(
                tuple(int(m) for m in rng.integers(1, 900, k)),
                tuple(int(s) for s in rng.integers(5, 20, k)),
                tuple(int(a) for a in rng.integers(-900, 900, k)),
            )
        function = TableMap(rng.integers(0, 256, 256).astype(np.uint8))
        return gemm_layer(
            name, source, _int8(rng, k, channels), _bias(rng, k), requant=requant,
            function=function if rng.integers(3) == 0 else None,
            transposed=bool(rng.integers(4) == 0),
        )  # fmt: skip
    if kind == "matmul":
        batch = int(rng.integers(1, 4))
        swapped = bool(rng.integers(2))
        a = Tensor(f"{name}.a", (channels, batch, rows), dtype, "NHWC")
        shape = (channels, batch, k) if swapped else (k, batch, channels)
        b = Tensor(f"{name}.b", shape, "int8", "NHWC")
        return matmul_layer(name, a, b, requant=requant, transposed=swapped, batch=batch)
    if kind == "add":
        operands = tuple(
            replace(source, name=f"{name}.{n}") for n in range(int(rng.integers(2, 6)))
        )
        total = add_layer(name, operands[0], operands[1], name, requant=requant)
        return replace(total, inputs=operands, output=matrix(name, rows, channels))
    function, result = _function(rng, channels)
    return rows_layer(name, replace(source, dtype="int8"), function, result)


def case_of(layers: tuple[Layer, ...], options: TilingOptions, prefix: str, home: str) -> Case:
    """Generate the code of layers that read each other, draw inputs, compute the last's output."""
    made = {layer.output.name for layer in layers}
    entering = {t.name: t for layer in layers for t in layer.inputs if t.name not in made}
    region = Region(prefix, layers, tuple(entering.values()), (layers[-1].output,))
    code = generate(region, Cost(SNITCH_ITA, options), prefix, home)
    rng = np.random.default_rng(len(prefix))
    values = {
        tensor.name: rng.integers(
            np.iinfo(tensor.dtype).min, np.iinfo(tensor.dtype).max + 1, tensor.shape
        ).astype(tensor.dtype)
        for tensor in entering.values()
    }
    for layer in layers:
        values[layer.output.name] = matrix_layers.evaluate(
            layer, [values[t.name] for t in layer.inputs]
        )
    return Case(
        code,
        tuple(matrix_layers.stored(values[t.name]) for t in region.inputs),
        tuple(matrix_layers.stored(values[t.name]) for t in region.outputs),
    )


def try_case(
    layer: Layer, budgets: tuple[int | None, ...], prefix: str, home: str, schedule: str
) -> Case:
    """The case with the first budget of L1 in which some tile fits."""
    for budget in budgets:
        options = TilingOptions(l1_budget=budget, schedule=schedule)  # type: ignore[arg-type]
        try:
            return case_of((layer,), options, prefix, home)
        except TilingError:
            continue
    raise AssertionError(f"{layer.name} fits no budget")
