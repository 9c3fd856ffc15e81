"""The cluster's kernels against the meaning of layers in numpy."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byoc_dory.layers import MulShift, Tensor, gemm_layer, matmul_layer, matrix, rows_layer
from byoc_dory.layers.rowwise import (
    AffineNorm,
    ItaSoftmax,
    LayerNorm,
    RmsNorm,
    RowFunction,
    TableMap,
    TableSoftmax,
)
from byoc_dory.soc.cluster import packing as records
from tests.reference.matrix_layers import evaluate, loaded, stored
from tests.runtime_c import cluster_kernels as c
from tests.runtime_c.cluster_kernels import Array, Kernels

PROPERTY = settings(max_examples=80, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)
CORES = st.sampled_from([1, 2, 3, 8])
SIZES = st.integers(1, 24)
INT32_MAX = 2**31 - 1


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "simd"])
def kernels(request: pytest.FixtureRequest) -> Kernels:
    return Kernels(simd=request.param)


@dataclass(frozen=True)
class Draw:
    """Random operands, now and then of extreme values only."""

    rng: np.random.Generator

    def bytes(self, *shape: int, dtype: str = "int8") -> Array:
        limits = np.iinfo(dtype)
        if self.rng.random() < 0.2:
            return self.rng.choice(np.array([limits.min, limits.max], dtype), shape)
        return self.rng.integers(limits.min, limits.max + 1, shape).astype(dtype)

    def requant(self, acc: Array, count: int, wide: bool) -> MulShift:
        """Multipliers that spread `acc` over more than the range of bytes."""
        largest = int(np.abs(acc).max()) + 1
        mul, add, shift = [], [], []
        for _ in range(count):
            limit = INT32_MAX if wide else (INT32_MAX // 2) // largest
            factor = int(self.rng.integers(max(limit // 4, 1), limit + 1))
            product = factor * largest
            # Down to a few hundred, and sometimes less.
            places = max(product.bit_length() - 1 - int(self.rng.integers(5, 10)), 0)
            bound = min(product, INT32_MAX // 2)
            mul.append(factor * (1 if self.rng.random() < 0.8 else -1))
            add.append(int(self.rng.integers(-bound, bound + 1)))
            shift.append(min(places, 63 if wide else 31))
        return MulShift(tuple(mul), tuple(shift), tuple(add))

    def clip(self, dtype: str) -> tuple[int, int]:
        limits = np.iinfo(dtype)
        if self.rng.random() < 0.5:
            return int(limits.min), int(limits.max)
        low, high = sorted(self.rng.integers(limits.min, limits.max + 1, 2).tolist())
        return low, high


def unsigned(dtype: str) -> int:
    return c.IN_UNSIGNED if dtype == "uint8" else 0


def results(dtype: str) -> int:
    return c.OUT_UNSIGNED if dtype == "uint8" else 0


def padded(rows: Array, pitch: int) -> Array:
    """Rows of bytes with gaps of noise."""
    wide = np.full((rows.shape[0], pitch), 0x5A, np.uint8)
    wide[:, : rows.shape[1]] = rows.view(np.uint8)
    return wide


# ------------------------------------------------------------------------------ products


@PROPERTY
@given(
    seed=SEEDS,
    shape=st.tuples(st.integers(1, 40), SIZES, st.integers(1, 50)),
    cores=CORES,
    dtypes=st.tuples(*[st.sampled_from(["int8", "uint8"])] * 2),
    wide=st.booleans(),
    per_channel=st.booleans(),
    transposed=st.booleans(),
    mapped=st.booleans(),
    gaps=st.tuples(st.integers(0, 5), st.integers(0, 5)),
)
def test_gemm(
    kernels: Kernels,
    seed: int,
    shape: tuple[int, int, int],
    cores: int,
    dtypes: tuple[str, str],
    wide: bool,
    per_channel: bool,
    transposed: bool,
    mapped: bool,
    gaps: tuple[int, int],
) -> None:
    draw, (rows, k, channels) = Draw(np.random.default_rng(seed)), shape
    x = draw.bytes(rows, channels, dtype=dtypes[0])
    weight = draw.bytes(k, channels)
    bias = draw.rng.integers(-5000, 5000, k).astype(np.int32) if seed % 4 else None
    acc = x.astype(np.int64) @ weight.astype(np.int64).T + (0 if bias is None else bias)
    table = TableMap(draw.bytes(256, dtype="uint8")) if mapped else None
    rule = draw.requant(acc, k if per_channel else 1, wide)
    layer = gemm_layer(
        "g", matrix("x", rows, channels, dtypes[0]), weight, bias,
        requant=rule, clip=draw.clip(dtypes[1]),
        function=table, transposed=transposed, dtype=dtypes[1],
    )  # fmt: skip
    expected = stored(evaluate(layer, [x.T[:, :, None]]))
    in_pitch = channels + gaps[0]
    width, height = (rows, k) if transposed else (k, rows)
    out_pitch = width + gaps[1]
    requant, flags = kernels.requant(layer, wide)
    flags |= unsigned(dtypes[0]) | results(dtypes[1])
    args = c.Gemm(
        source=kernels.pointer(padded(x, in_pitch)),
        **kernels.weights(weight, bias, rule, flags),
        table=kernels.pointer(table.table if table else None),
        rows=rows, k=k, c=channels, in_pitch=in_pitch, out_pitch=out_pitch,
        flags=flags | (c.OUT_TRANSPOSED if transposed else 0), requant=requant,
    )  # fmt: skip
    size = (height - 1) * out_pitch + width
    got = kernels.run("gemm", args, size, cores, gaps=(width, out_pitch))
    np.testing.assert_array_equal(rows_of(got, height, width, out_pitch), expected)


def rows_of(image: Array, rows: int, width: int, pitch: int) -> Array:
    """The bytes of rows without the gaps between them."""
    return np.lib.stride_tricks.as_strided(image, (rows, width), (pitch, 1)).reshape(-1)


@PROPERTY
@given(
    seed=SEEDS,
    shape=st.tuples(st.integers(1, 4), st.integers(1, 20), SIZES, st.integers(1, 40)),
    cores=CORES,
    dtypes=st.tuples(*[st.sampled_from(["int8", "uint8"])] * 2),
    wide=st.booleans(),
    transposed=st.booleans(),
)
def test_matmul(
    kernels: Kernels,
    seed: int,
    shape: tuple[int, int, int, int],
    cores: int,
    dtypes: tuple[str, str],
    wide: bool,
    transposed: bool,
) -> None:
    draw, (batch, rows, k, channels) = Draw(np.random.default_rng(seed)), shape
    a = draw.bytes(channels, batch, rows, dtype=dtypes[0])
    b = draw.bytes(channels, batch, k) if transposed else draw.bytes(k, batch, channels)
    layer = matmul_layer(
        "m", Tensor("a", a.shape, dtypes[0], "NHWC"), Tensor("b", b.shape, layout="NHWC"),
        requant=draw.requant(np.array([channels * 2**15]), 1, wide), clip=draw.clip(dtypes[1]),
        transposed=transposed, dtype=dtypes[1], batch=batch,
    )  # fmt: skip
    requant, flags = kernels.requant(layer, wide)
    flags |= unsigned(dtypes[0]) | results(dtypes[1]) | (c.B_ROWS if transposed else 0)
    args = c.Matmul(
        a=kernels.pointer(stored(a)), second=kernels.pointer(stored(b)), batch=batch, rows=rows,
        k=k, c=channels, flags=flags, requant=requant,
        scratch=kernels.scratch(records.matmul_scratch(channels, cores)),
    )  # fmt: skip
    got = kernels.run("matmul", args, batch * rows * k, cores, order=reversed(range(cores)))
    operands = [loaded(stored(v), t) for v, t in zip((a, b), layer.inputs, strict=True)]
    np.testing.assert_array_equal(got, stored(evaluate(layer, operands)))


# ------------------------------------------------------------------------------ convolutions


@dataclass(frozen=True)
class Filter:
    """Sizes of a convolution: (y, x) each."""

    size: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    pads: tuple[int, int]  # before
    out: tuple[int, int]

    def windows(self, x: Array) -> Array:
        """Of x [iy][ix][c]: [oy][ox][fy][fx][c], zeros outside."""
        far = [o * s + k for o, s, k in zip(self.out, self.stride, self.kernel, strict=True)]
        behind = [max(f - size, 0) for f, size in zip(far, self.size, strict=True)]
        ends = [(p, b) for p, b in zip(self.pads, behind, strict=True)]
        whole = np.pad(x.astype(np.int64), (*ends, (0, 0)))
        found = np.zeros((*self.out, *self.kernel, x.shape[2]), np.int64)
        for y in range(self.out[0]):
            for column in range(self.out[1]):
                top, left = y * self.stride[0], column * self.stride[1]
                found[y, column] = whole[top : top + self.kernel[0], left : left + self.kernel[1]]
        return found


PAIRS = st.tuples(st.integers(1, 7), st.integers(1, 12))


@st.composite
def filters(draw: st.DrawFn) -> Filter:
    """Any sizes; results may begin and end outside of the input."""
    size, kernel = draw(PAIRS), draw(st.tuples(*[st.integers(1, 4)] * 2))
    stride = draw(st.tuples(*[st.integers(1, 3)] * 2))
    pads = (draw(st.integers(0, kernel[0])), draw(st.integers(0, kernel[1])))
    return Filter(size, kernel, stride, pads, draw(PAIRS))


@pytest.mark.parametrize("name", ["conv2d", "depthwise"])
@PROPERTY
@given(
    seed=SEEDS,
    sizes=filters(),
    channels=st.tuples(st.integers(1, 13), st.integers(1, 13)),
    cores=CORES,
    dtypes=st.tuples(*[st.sampled_from(["int8", "uint8"])] * 2),
    wide=st.booleans(),
    per_channel=st.booleans(),
    gaps=st.tuples(st.sampled_from([0, 0, 3]), st.sampled_from([0, 2])),
)
def test_convolutions(
    kernels: Kernels,
    name: str,
    seed: int,
    sizes: Filter,
    channels: tuple[int, int],
    cores: int,
    dtypes: tuple[str, str],
    wide: bool,
    per_channel: bool,
    gaps: tuple[int, int],
) -> None:
    draw, (k, inner) = Draw(np.random.default_rng(seed)), channels
    k = inner if name == "depthwise" else k
    x = draw.bytes(*sizes.size, inner, dtype=dtypes[0])
    weight = draw.bytes(*([k] if name == "conv2d" else []), *sizes.kernel, inner)
    bias = draw.rng.integers(-5000, 5000, k).astype(np.int32) if seed % 4 else None
    equation = "yxabc,kabc->yxk" if name == "conv2d" else "yxabc,abc->yxc"
    acc = np.einsum(equation, sizes.windows(x), weight.astype(np.int64))
    acc = acc + (0 if bias is None else bias)
    rule = draw.requant(acc, k if per_channel else 1, wide)
    low, high = draw.clip(dtypes[1])
    expected = (acc * np.array(rule.mul) + np.array(rule.add)) >> np.array(rule.shift)
    expected = np.clip(expected, low, high).astype(dtypes[1]).view(np.uint8)
    # Only for its requantization.
    layer = gemm_layer(
        "g", matrix("x", 1, 1), np.zeros((k, 1), np.int8), None, requant=rule, clip=(low, high),
        dtype=dtypes[1],
    )  # fmt: skip
    requant, flags = kernels.requant(layer, wide)
    flags |= unsigned(dtypes[0]) | results(dtypes[1])
    in_pitch, out_pitch = inner + gaps[0], k + gaps[1]
    if name == "conv2d":
        rows = weight.reshape(k, -1)
        scratch = records.conv2d_scratch(rows.shape[1], cores)
    else:
        rows = weight.transpose(2, 0, 1)
        scratch = records.depthwise_scratch(sizes.kernel[1], sizes.out[1], sizes.stride[1], cores)
    image = padded(x.reshape(-1, inner), in_pitch)
    args = c.Conv(
        source=kernels.pointer(image), **kernels.weights(rows, bias, rule, flags),
        k=k, c=inner, iy=sizes.size[0], ix=sizes.size[1],
        oy=sizes.out[0], ox=sizes.out[1], fy=sizes.kernel[0], fx=sizes.kernel[1],
        stride_y=sizes.stride[0], stride_x=sizes.stride[1], pad_top=sizes.pads[0],
        pad_left=sizes.pads[1], in_pitch=in_pitch, out_pitch=out_pitch,
        flags=flags, requant=requant, scratch=kernels.scratch(scratch),
    )  # fmt: skip
    pixels = sizes.out[0] * sizes.out[1]
    size = (pixels - 1) * out_pitch + k
    got = kernels.run(name, args, size, cores, gaps=(k, out_pitch))
    np.testing.assert_array_equal(rows_of(got, pixels, k, out_pitch), expected.reshape(-1))


# ------------------------------------------------------------------------------ elements


@PROPERTY
@given(
    seed=SEEDS,
    elements=st.integers(1, 70),
    operands=st.sampled_from([1, 2, 2, 3, 4, 8]),
    cores=CORES,
    dtypes=st.tuples(*[st.sampled_from(["int8", "uint8"])] * 2),
    wide=st.booleans(),
)
def test_add(
    kernels: Kernels,
    seed: int,
    elements: int,
    operands: int,
    cores: int,
    dtypes: tuple[str, str],
    wide: bool,
) -> None:
    draw = Draw(np.random.default_rng(seed))
    values = [draw.bytes(elements, dtype=dtypes[0]) for _ in range(operands)]
    total = sum(value.astype(np.int64) for value in values)
    rule, (low, high) = draw.requant(np.array(total), 1, wide), draw.clip(dtypes[1])
    expected = np.clip((total * rule.mul[0] + rule.add[0]) >> rule.shift[0], low, high)
    args = c.Add(
        operands=operands, elements=elements,
        flags=unsigned(dtypes[0]) | results(dtypes[1]) | (c.WIDE if wide else 0),
        requant=c.Requant(rule.mul[0], rule.add[0], rule.shift[0], low, high),
    )  # fmt: skip
    for index, value in enumerate(values):
        args.source[index] = kernels.pointer(value)
    got = kernels.run("add", args, elements, cores)
    np.testing.assert_array_equal(got, expected.astype(dtypes[1]).view(np.uint8))


@PROPERTY
@given(seed=SEEDS, elements=st.integers(1, 70), cores=CORES, in_place=st.booleans())
def test_map(kernels: Kernels, seed: int, elements: int, cores: int, in_place: bool) -> None:
    draw = Draw(np.random.default_rng(seed))
    x, table = draw.bytes(elements, dtype="uint8"), draw.bytes(256, dtype="uint8")
    args = c.Map(source=kernels.pointer(x), table=kernels.pointer(table), elements=elements)
    got = kernels.run("map", args, elements, cores, start=x if in_place else None)
    np.testing.assert_array_equal(got, table[x])


@PROPERTY
@given(seed=SEEDS, elements=st.integers(1, 70), cores=CORES, kind=st.tuples(*[st.booleans()] * 3))
def test_combine(
    kernels: Kernels, seed: int, elements: int, cores: int, kind: tuple[bool, bool, bool]
) -> None:
    draw, (multiplies, *tabled) = Draw(np.random.default_rng(seed)), kind
    operands = draw.bytes(2, elements)
    tables = [draw.bytes(256) if each else None for each in tabled]
    mapped = [
        (x if table is None else table[x.view("uint8")]).astype(np.int64)
        for x, table in zip(operands, tables, strict=True)
    ]
    acc = mapped[0] * mapped[1] if multiplies else mapped[0] + mapped[1]
    requant = draw.requant(np.array([2**14 if multiplies else 256]), 1, wide=False)
    low, high = draw.clip("int8")
    numbers = requant.mul[0], requant.add[0], requant.shift[0]
    args = c.Combine(
        source=(ctypes.c_void_p * 2)(*map(kernels.pointer, operands)),
        tables=(ctypes.c_void_p * 2)(*map(kernels.pointer, tables)),
        elements=elements, flags=64 * multiplies, requant=c.Requant(*numbers, low, high),
    )  # fmt: skip
    got = kernels.run("combine", args, elements, cores).view("int8")
    wanted = np.clip((acc * numbers[0] + numbers[1]) >> numbers[2], low, high)
    np.testing.assert_array_equal(got, wanted)


@PROPERTY
@given(seed=SEEDS, shape=st.tuples(st.integers(1, 40), st.integers(1, 40)), cores=CORES)
def test_transpose(kernels: Kernels, seed: int, shape: tuple[int, int], cores: int) -> None:
    x = Draw(np.random.default_rng(seed)).bytes(*shape, dtype="uint8")
    args = c.Transpose(source=kernels.pointer(x), rows=shape[0], columns=shape[1])
    got = kernels.run("transpose", args, x.size, cores)
    np.testing.assert_array_equal(got, x.T.reshape(-1))


# ------------------------------------------------------------------------------ rows


def check_rows(
    kernels: Kernels,
    name: str,
    args: c.TableSoftmax | c.ItaSoftmax | c.Norm,
    function: RowFunction,
    x: Array,
    cores: int,
    dtype: str = "int8",
) -> None:
    rows, n = x.shape
    layer = rows_layer("r", matrix("x", rows, n, x.dtype.name), function, dtype)
    expected = stored(evaluate(layer, [x.T[:, :, None]]))
    args.source, args.rows, args.n = kernels.pointer(x), rows, n
    args.flags |= unsigned(x.dtype.name)
    got = kernels.run(name, args, x.size, cores)
    np.testing.assert_array_equal(got, expected)


def rows_drawn(draw: Draw, shape: tuple[int, int], dtype: str) -> Array:
    """Rows, some of them narrow, constant or with one outlier."""
    x = draw.bytes(*shape, dtype=dtype)
    for row in x:
        kind = draw.rng.integers(4)
        if kind == 1:
            row[:] = row[0]
        elif kind == 2:
            row[1:] = row[0] // 2 + draw.rng.integers(0, 6, row.size - 1)
    return x


SHAPES = st.tuples(st.integers(1, 20), st.integers(1, 70))
DTYPES = st.sampled_from(["int8", "uint8"])


@PROPERTY
@given(seed=SEEDS, shape=SHAPES, cores=CORES, dtype=DTYPES, bits=st.integers(1, 31))
def test_table_softmax(
    kernels: Kernels, seed: int, shape: tuple[int, int], cores: int, dtype: str, bits: int
) -> None:
    draw = Draw(np.random.default_rng(seed))
    x = rows_drawn(draw, shape, dtype)
    largest = min(2**bits, INT32_MAX // shape[1])
    steps = draw.rng.uniform(0.5, 40)
    decay = (largest * 0.5 ** (np.arange(256) / steps)).astype(np.int64)
    if seed % 3 == 0:  # whatever is in the table
        decay[1:] = draw.rng.integers(0, largest + 1, 255)
    decay[0] = max(decay[0], 1)
    levels = int(draw.rng.choice([2, 128, 200, 256]))
    function = TableSoftmax(tuple(decay.tolist()), levels)
    args = c.TableSoftmax(
        exponentials=kernels.pointer(decay.astype(np.uint32)), levels=levels, flags=0
    )
    check_rows(kernels, "table_softmax", args, function, x, cores, "uint8")


@PROPERTY
@given(
    seed=SEEDS,
    shape=SHAPES,
    cores=CORES,
    dtype=DTYPES,
    group=st.sampled_from([0, 16, 16, 1, 7]),
    step_bits=st.sampled_from([5, 5, 0, 1, 3, 8]),
    numerator=st.sampled_from([65280, 127 * 256, 255 * 256, 0, 300]),
)
def test_ita_softmax(
    kernels: Kernels,
    seed: int,
    shape: tuple[int, int],
    cores: int,
    dtype: str,
    group: int,
    step_bits: int,
    numerator: int,
) -> None:
    x = rows_drawn(Draw(np.random.default_rng(seed)), shape, dtype)
    args = c.ItaSoftmax(group=group, step_bits=step_bits, numerator=numerator, flags=0)
    function = ItaSoftmax(group, step_bits, numerator)
    check_rows(kernels, "ita_softmax", args, function, x, cores, "uint8")


def long_of(weight: Array) -> int:
    """The flag of norms for weights that do not fit 16 bits."""
    limits = np.iinfo(np.int16)
    return c.LONG if weight.min() < limits.min or weight.max() > limits.max else 0


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "affine_norm"])
@PROPERTY
@given(
    seed=SEEDS,
    shape=SHAPES,
    cores=CORES,
    dtype=DTYPES,
    bits=st.sampled_from([4, 8, 15, 16, 22]),
    wide=st.booleans(),
)
def test_norms(
    kernels: Kernels,
    name: str,
    seed: int,
    shape: tuple[int, int],
    cores: int,
    dtype: str,
    bits: int,
    wide: bool,
) -> None:
    draw = Draw(np.random.default_rng(seed))
    x = rows_drawn(draw, shape, dtype)
    limit = INT32_MAX if wide else 2**bits
    weight = draw.rng.integers(-limit, limit + 1, shape[1]).astype(np.int32)
    if seed % 2:
        weight[draw.rng.integers(shape[1])] = -limit if seed % 4 == 1 else limit - 1
    bias = draw.rng.integers(-limit, limit + 1, shape[1]).astype(np.int32)
    shift = int(draw.rng.integers(0, max(limit.bit_length() - 2, 1)))
    flags = c.WIDE if wide else long_of(weight)
    args = c.Norm(shift=shift, flags=flags, weight=kernels.pointer(weight))
    function: RowFunction
    if name == "rms_norm":
        function = RmsNorm(weight, shift)
    elif name == "layer_norm":
        function = LayerNorm(weight, bias, shift)
        args.bias = kernels.pointer(bias)
    else:
        mul = int(draw.rng.integers(-9, 10) if wide or bits < 16 else draw.rng.choice([-1, 0, 1]))
        function = AffineNorm(weight, bias, mul, shift)
        folded = 1 if wide else mul  # as the packed weights and biases are
        args.weight = kernels.pointer((weight * folded).astype(np.int32))
        args.bias, args.mul = kernels.pointer((bias * folded).astype(np.int32)), mul
    check_rows(kernels, name, args, function, x, cores)


@pytest.mark.parametrize("limit", [1 << 15, 1 << 22])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_norms_of_every_spread(kernels: Kernels, limit: int, dtype: str) -> None:
    """Every root that a row of bytes can have, with the largest weights that are not wide."""
    spreads = np.arange(1, 128)
    x = np.stack([np.tile([s, -s], 8) for s in spreads]).astype(np.int8)
    x[:, :2] = np.stack([np.arange(127) - 63, np.arange(127) % 7], axis=1)
    x = (x.astype(np.int16) + 128).astype(np.uint8) if dtype == "uint8" else x
    large = [limit - 1, -limit, limit - 2, 1, -1, limit // 3]
    weight = np.resize(np.array(large, np.int32), 16)
    bias = np.resize(np.array([0, 5, -5], np.int32), 16)
    shift = limit.bit_length() - 7
    args = c.Norm(shift=shift, flags=long_of(weight), weight=kernels.pointer(weight))
    check_rows(kernels, "rms_norm", args, RmsNorm(weight, shift), x, 8)
    args.bias = kernels.pointer(bias)
    check_rows(kernels, "layer_norm", args, LayerNorm(weight, bias, shift), x, 8)
