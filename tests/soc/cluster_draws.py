"""Helper: cases of the cluster's kernels with random operands, and what must come out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from byoc_dory.layers import matrix, rows_layer
from byoc_dory.layers.rowwise import (
    AffineNorm,
    ItaSoftmax,
    LayerNorm,
    RmsNorm,
    RowFunction,
    TableSoftmax,
)
from byoc_dory.soc.cluster.work import (
    ConvolutionTile,
    Work,
    convolution,
    elementwise,
    product,
    products,
    rowwise,
    transposition,
)
from tests.reference.matrix_layers import evaluate, stored
from tests.soc.cluster_cases import Array, Case

CORES = 8
B_ROWS, IN_UNSIGNED, WIDE, PER_CHANNEL = 16, 1, 4, 8


@dataclass(frozen=True)
class Drawn:
    """A case and what it computes.

    Attributes:
        kernel: how it is called in tables.
        shape: in words.
        case: to run.
        expected: bytes of the result.
        units: multiply-accumulates or elements.
        works: what the cores have to do, in the units of the cycle model's constants.
    """

    kernel: str
    shape: str
    case: Case
    expected: Array
    units: int
    works: tuple[Work, ...] = field(repr=False)


_Rng = np.random.Generator


def _int8(rng: _Rng, *shape: int) -> Array:
    return rng.integers(-128, 128, shape).astype(np.int8)


def _shift(terms: int) -> int:
    """That leaves sums of products of random bytes in the range of bytes, nearly all of them."""
    return max(math.ceil(math.log2(math.sqrt(terms) * 74 * 74 / 40)), 0)


def _requant(mul: int, add: int, shift: int) -> tuple[int, ...]:
    return mul, add, shift, -128, 127, 0, 0, 0


def _bytes(acc: Array, mul: int, add: int, shift: int) -> Array:
    scaled = (acc.astype(np.int64) * mul + add) >> shift
    return np.clip(scaled, -128, 127).astype(np.int8).view(np.uint8).reshape(-1)


def gemm(rng: _Rng, rows: int, k: int, c: int, flag: str = "") -> Drawn:
    """With a bias; ``flag``: "per_channel", "table" or "wide"."""
    case = Case("gemm")
    x, weight = _int8(rng, rows, c), _int8(rng, k, c)
    bias = rng.integers(-1000, 1000, k).astype(np.int32)
    table = np.arange(256, dtype=np.uint8)[::-1].copy()
    shift = _shift(c) + 5
    muls = rng.integers(30, 44, k).astype(np.int32) if flag == "per_channel" else np.full(k, 37)
    places = [case.put(values) for values in (x, weight, bias)]
    own = [case.put(np.full(k, value, kind)) for value, kind in ((77, np.int32), (shift, np.uint8))]
    at = case.put(table) if flag == "table" else 0
    factors = (37, 77, shift, -128, 127, case.put(muls.astype(np.int32)), *own)
    out = case.room(rows * k)
    flags = {"per_channel": PER_CHANNEL, "wide": WIDE}.get(flag, 0)
    case.words = [*places, out, at, rows, k, c, c, k, flags, *factors]
    case.out = (out, rows * k)
    acc = x.astype(np.int64) @ weight.astype(np.int64).T + bias
    stored = np.clip((acc * muls + 77) >> shift, -128, 127).astype(np.int8).view(np.uint8)
    works = product(rows, k, c, CORES)
    if flag:
        works = tuple({**work, flag: work["result"]} for work in works)
    shape = f"{rows} x {k} x {c}{flag and ', ' + flag.replace('_', ' ')}"
    expected = (table[stored] if flag == "table" else stored).reshape(-1)
    return Drawn("gemm", shape, case, expected, rows * k * c, works)


def matmul(rng: _Rng, batch: int, rows: int, k: int, c: int, *, by_rows: bool) -> Drawn:
    """``by_rows``: the second operand has the rows of C, as keys have; else, of uint8."""
    case = Case("matmul")
    a = _int8(rng, batch, rows, c)
    b = _int8(rng, batch, *((k, c) if by_rows else (c, k)))
    shift = _shift(c) + 6
    left = a if by_rows else a.view(np.uint8)
    places = [case.put(values) for values in (a, b)]
    out = case.room(batch * rows * k)
    flags = B_ROWS if by_rows else IN_UNSIGNED
    case.words = [*places, out, batch, rows, k, c, flags, *_requant(37, 77, shift)]
    case.out = (out, batch * rows * k)
    acc = left.astype(np.int64) @ (b.transpose(0, 2, 1) if by_rows else b).astype(np.int64)
    name = "matmul (rows)" if by_rows else "matmul"
    shape = f"{batch} x {rows} x {k} x {c}"
    works = products(batch, rows, k, c, CORES)
    return Drawn(name, shape, case, _bytes(acc, 37, 77, shift), batch * rows * k * c, works)


def conv(rng: _Rng, k: int, c: int, size: tuple[int, int], taps: int, stride: int) -> Drawn:
    """Square filters with padding; depthwise where k is 0."""
    case = Case("conv2d" if k else "depthwise")
    (iy, ix), pad = size, taps // 2
    oy, ox = -(-iy // stride), -(-ix // stride)
    x = _int8(rng, iy, ix, c)
    weight = _int8(rng, *((k,) if k else ()), taps, taps, c)
    results = k or c
    bias = rng.integers(-1000, 1000, results).astype(np.int32)
    shift = _shift(taps * taps * (c if k else 1))
    places = [case.put(values) for values in (x, weight, bias)]
    pixels = oy * ox
    out = case.room(pixels * results)
    case.words = [
        *places, out, results, c, iy, ix, oy, ox, taps, taps, stride, stride, pad, pad, c, results,
        0, *_requant(1, 3, shift),
    ]  # fmt: skip
    case.out = (out, pixels * results)
    padded = np.pad(x.astype(np.int64), ((pad, taps), (pad, taps), (0, 0)))
    equation = "yxc,kc->yxk" if k else "yxc,c->yxc"
    acc = np.zeros((oy, ox, results), np.int64) + bias
    for fy in range(taps):
        for fx in range(taps):
            part = padded[fy : fy + oy * stride : stride, fx : fx + ox * stride : stride]
            acc += np.einsum(equation, part[:oy, :ox], weight[..., fy, fx, :].astype(np.int64))
    inner = taps * taps * (c if k else 1)
    shape = f"{taps} x {taps} / {stride}, {c} -> {results}, {oy} x {ox}"
    tile = ConvolutionTile(
        c, results, iy, ix, oy, ox, taps, taps, (stride, stride), (pad, pad), depthwise=not k
    )
    works = convolution(tile, CORES)
    expected = _bytes(acc, 1, 3, shift)
    return Drawn(case.kernel, shape, case, expected, pixels * results * inner, works)


def add(rng: _Rng, elements: int, operands: int) -> Drawn:
    """Of int8."""
    case = Case("add")
    values = [_int8(rng, elements) for _ in range(operands)]
    places = [case.put(value) for value in values]
    out = case.room(elements)
    case.words = [*places, *[0] * (8 - operands), out, operands, elements, 0, *_requant(99, 50, 9)]
    case.out = (out, elements)
    works = elementwise(elements, CORES, operands)
    total = sum(value.astype(np.int64) for value in values)
    expected = _bytes(np.array(total), 99, 50, 9)
    return Drawn("add", f"{operands} of {elements}", case, expected, elements, works)


def lookup(rng: _Rng, elements: int) -> Drawn:
    """A map."""
    case = Case("map")
    x, table = _int8(rng, elements).view(np.uint8), _int8(rng, 256).view(np.uint8)
    at, entries = case.put(x), case.put(table)
    out = case.room(elements)
    case.words, case.out = [at, out, entries, elements], (out, elements)
    return Drawn("map", f"{elements}", case, table[x], elements, elementwise(elements, CORES))


def transpose(rng: _Rng, rows: int, columns: int) -> Drawn:
    """Of bytes."""
    case = Case("transpose")
    x = _int8(rng, rows, columns)
    at = case.put(x)
    out = case.room(x.size)
    case.words, case.out = [at, out, rows, columns], (out, x.size)
    works = transposition(rows, columns, CORES)
    expected = x.T.copy().view(np.uint8).reshape(-1)
    return Drawn("transpose", f"{rows} x {columns}", case, expected, x.size, works)


def rows_of(rng: _Rng, kernel: str, rows: int, n: int) -> Drawn:
    """A function of rows."""
    case = Case(kernel)
    x = np.clip(rng.normal(0, 30, (rows, n)), -128, 127).astype(np.int8)
    weight = rng.integers(-3000, 3000, n).astype(np.int32)
    bias = rng.integers(-300, 300, n).astype(np.int32)
    decay = (60000 * 0.5 ** (np.arange(256) / 20)).astype(np.uint32)
    at = case.put(x)
    make, words = _ROWS[kernel](case, weight, bias, decay)
    out = case.room(x.size)
    sizes = {"rows": rows, "n": n}
    filled = [word if isinstance(word, int) else sizes[word] for word in words]
    case.words = [at, out, *filled]
    case.out = (out, x.size)
    dtype = "uint8" if kernel.endswith("softmax") else "int8"
    layer = rows_layer("r", matrix("x", rows, n), make, dtype)
    expected = stored(evaluate(layer, [x.T[:, :, None]]))
    return Drawn(kernel, f"{rows} x {n}", case, expected, x.size, rowwise(rows, n, CORES))


# With places for the numbers of rows and columns.
_Made: TypeAlias = tuple[RowFunction, list[int | Literal["rows", "n"]]]
_Rows: TypeAlias = Callable[[Case, Array, Array, Array], _Made]


def _table_softmax(case: Case, _w: Array, _b: Array, decay: Array) -> _Made:
    return TableSoftmax(tuple(decay.tolist())), [case.put(decay), "rows", "n", 256, 0]


def _ita_softmax(_case: Case, _w: Array, _b: Array, _d: Array) -> _Made:
    return ItaSoftmax(), ["rows", "n", 16, 5, 65280, 0]


def _layer_norm(case: Case, w: Array, b: Array, _d: Array) -> _Made:
    return LayerNorm(w, b, 6), [case.put(w), case.put(b), "rows", "n", 6, 0, 0]


def _rms_norm(case: Case, w: Array, _b: Array, _d: Array) -> _Made:
    return RmsNorm(w, 6), [case.put(w), 0, "rows", "n", 6, 0, 0]


def _affine_norm(case: Case, w: Array, b: Array, _d: Array) -> _Made:
    folded = [case.put((part * 3).astype(np.int32)) for part in (w, b)]
    return AffineNorm(w, b, 3, 13), [*folded, "rows", "n", 13, 0, 0]


_ROWS: dict[str, _Rows] = {
    "table_softmax": _table_softmax,
    "ita_softmax": _ita_softmax,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "affine_norm": _affine_norm,
}
ROW_KERNELS = tuple(_ROWS)
