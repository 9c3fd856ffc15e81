"""Helper: the cluster's kernels for SIMD on one simulated core, which plays all cores in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from byoc_dory.layers import (
    AttentionOperands,
    MulShift,
    Weighing,
    cached_attention_layer,
    matrix,
)
from byoc_dory.layers.rowwise import TableMap, TableSoftmax
from byoc_dory.soc.cluster import packing as records
from byoc_dory.soc.cluster.attention import attention_constants, attention_fields
from byoc_dory.tileloop.axes import plain_axis
from htvm.firmware.isa import rv32_flags
from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import Compiler
from htvm.sim.iss import run_elf
from tests.sim.bare import SCRIPT, bare_corev

Array = npt.NDArray[Any]

BASE = 0x8020_0000
_FILL = 0xA5
_GUARD = 64
_IMAGES = 1 << 20  # bytes of a program
KERNELS = ("gemm", "conv2d", "depthwise", "matmul", "add", "map", "transpose", "attention",
           "average")  # fmt: skip
ROW_KERNELS = ("layer_norm", "rms_norm", "table_softmax")
FLAGS = ("-mcpu=generic_rv32+m+c+zicsr+xcvmem+xcvalu+xcvmac+xcvsimd+xcvbi",)


@dataclass(eq=False)
class Case:
    """One run of a kernel.

    Attributes:
        kernel: of `KERNELS`.
        shape: in words.
        units: multiply-accumulates, or elements.
        words: its arguments.
        result: what it must leave at `out`.
        out: address of the result.
    """

    kernel: str
    shape: str = ""
    units: int = 0
    words: Sequence[int] = ()
    result: Array = field(default_factory=lambda: np.zeros(0, np.uint8))
    out: int = 0
    _image: list[Array] = field(default_factory=list)
    _ignored: tuple[int, int] = (0, 0)
    _used: int = 0

    def put(self, values: Array, align: int = 4) -> int:
        """Place an operand; returns its address."""
        at = self.room(values.nbytes, align)
        self._image[-1][:] = np.asarray(values, order="C").view(np.uint8).reshape(-1)
        return at

    def room(self, size: int, align: int = 4) -> int:
        """Room for a result, with guards; returns its address."""
        gap = -self._used % align + _GUARD
        self._image += [np.full(gap, _FILL, np.uint8), np.full(size, _FILL, np.uint8)]
        self._used += gap + size
        return BASE + self._used - size

    def scratch(self, size: int) -> int:
        """Room of which the contents do not matter."""
        at = self.room(size)
        self._ignored = (at - BASE, at - BASE + size)
        return at

    def store(self, rows: Array, gap: int) -> int:
        """What the result must be, with gaps between rows that stay; returns the pitch."""
        wide = np.full((rows.shape[0], rows.shape[1] + gap), _FILL, np.uint8)
        wide[:, : rows.shape[1]] = rows
        self.result = wide.reshape(-1)
        self.out = self.room(self.result.size)
        return rows.shape[1] + gap

    def images(self) -> tuple[Array, Array]:
        """The memory before and after."""
        before = np.concatenate([*self._image, np.full(_GUARD, _FILL, np.uint8)])
        before = np.pad(before, (0, -before.size % 4))
        after = before.copy()
        at = self.out - BASE
        after[at : at + self.result.size] = self.result
        return before, after

    @property
    def ignored(self) -> tuple[int, int]:
        """Offsets between which memory may change."""
        return self._ignored


_START = """
.section .text.start
.globl _start
_start:
    la sp, stack_top
    call main
    li t0, 0x00100000
    li t1, 0x5555
    sw t1, 0(t0)
1:  j 1b
.section .rodata
.balign 4
.globl images
images: .incbin "{blob}"
.bss
.align 4
.zero 16384
stack_top:
"""

_SOC = """#define HTVM_CLUSTER_CORES 8u
#define HTVM_CLUSTER_BANKS 16u
#define HTVM_CLUSTER_BANK_BYTES 4u
"""

_MAIN = """
#include <stddef.h>
#include "cluster_kernels.h"

typedef void kernel_t(const void *, uint32_t, uint32_t);
typedef struct {{
    kernel_t *kernel;
    uint32_t words[32];
    uint32_t before, after, size, ignored, until;
}} case_t;

extern const uint8_t images[];
static const case_t cases[] = {{
{cases}
}};
static const uint32_t cores[] = {{ {cores} }};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

void *memset(void *to, int value, size_t size)
{{
    for (volatile uint8_t *at = to; size != 0; size--) {{
        *at++ = (uint8_t)value;
    }}
    return to;
}}

void *memcpy(void *to, const void *from, size_t size)
{{
    const uint8_t *in = from;
    for (volatile uint8_t *at = to; size != 0; size--) {{
        *at++ = *in++;
    }}
    return to;
}}

static uint32_t cycles(void)
{{
    uint32_t now;
    __asm__ volatile("csrr %0, mcycle" : "=r"(now) : : "memory");
    return now;
}}

static void put(uint32_t value)
{{
    volatile uint8_t *const console = (volatile uint8_t *)0x10000000u;
    for (int digit = 28; digit >= 0; digit -= 4) {{
        *console = (uint8_t)"0123456789abcdef"[value >> digit & 15u];
    }}
    *console = '\\n';
}}

static void nothing(const void *args, uint32_t core, uint32_t count)
{{
    (void)args;
    (void)core;
    (void)count;
    __asm__ volatile("");
}}

static uint32_t timed(kernel_t *volatile kernel, const void *words, uint32_t core, uint32_t count)
{{
    kernel_t *const called = kernel;
    const uint32_t start = cycles();
    called(words, core, count);
    return cycles() - start;
}}

int main(void)
{{
    uint8_t *const memory = (uint8_t *){base}u;
    __asm__ volatile("csrw mcountinhibit, zero");
    const uint32_t call = timed(nothing, NULL, 0, 0);
    for (uint32_t i = 0; i < COUNT(cases); i++) {{
        const case_t *const c = cases + i;
        for (uint32_t n = 0; n < COUNT(cores); n++) {{
            memcpy(memory, images + c->before, c->size);
            for (uint32_t core = 0; core < cores[n]; core++) {{
                put(timed(c->kernel, c->words, core, cores[n]) - call);
            }}
            uint32_t wrong = 0;
            for (uint32_t at = 0; at < c->size; at++) {{
                if (memory[at] != images[c->after + at] && (at < c->ignored || at >= c->until)) {{
                    wrong = at + 1;
                    break;
                }}
            }}
            put(wrong);
        }}
    }}
    return 0;
}}
"""


@dataclass(frozen=True)
class Outcome:
    """Of a case with some number of cores.

    Attributes:
        wrong: 0, or 1 + the offset of the first wrong byte.
        cycles: of each core.
    """

    wrong: int
    cycles: tuple[int, ...]


def run(
    cases: Sequence[Case], folder: Path, cores: Sequence[int] = (1, 8), simd: bool = True
) -> list[list[Outcome]]:
    """Run cases one after another, each with every number of cores."""
    outcomes: list[list[Outcome]] = []
    while len(outcomes) < len(cases):
        rest = cases[len(outcomes) :]
        sizes = np.cumsum([2 * case.images()[0].size for case in rest])
        count = max(int(np.searchsorted(sizes, _IMAGES)), 1)
        assert sizes[count - 1] < _IMAGES + (1 << 18), "a case is too large"
        elf = program(rest[:count], folder, cores, simd)
        outcomes += read_outcomes(run_elf(elf, bare_corev()).output, count, cores)
    return outcomes


def program(cases: Sequence[Case], folder: Path, cores: Sequence[int], simd: bool = True) -> Path:
    """Return a program that runs cases, and prints what `read_outcomes` reads."""
    start, main, script = folder / "start.S", folder / "main.c", folder / "program.ld"
    blob, entries, at = [], [], 0
    for case in cases:
        before, after = case.images()
        words = [word & 0xFFFFFFFF for word in case.words]
        words += [0] * (32 - len(words))
        numbers = (at, at + before.size, before.size, *case.ignored)
        text = ", ".join(f"{word}u" for word in words)
        tail = ", ".join(f"{number}u" for number in numbers)
        entries.append(f"    {{cluster_{case.kernel}, {{{text}}}, {tail}}},")
        blob += [before, after]
        at += 2 * before.size
    (folder / "images.bin").write_bytes(np.concatenate(blob).tobytes())
    start.write_text(_START.format(blob=folder / "images.bin"))
    main.write_text(
        _MAIN.format(cases="\n".join(entries), cores=", ".join(f"{n}u" for n in cores), base=BASE)
    )
    script.write_text(SCRIPT.replace(".rodata", ".rodata"))
    root = runtime_c()
    libraries = ("cluster/simd", "cluster/rows", "simd")
    folders = [folder, root / "cluster", *(root / name for name in libraries)]
    sources = [path for part in folders[2:] for path in sorted(part.glob("*.c"))]
    (folder / "htvm_soc.h").write_text(_SOC)
    return Compiler.zig().compile_cross(
        [start, main, *sources],
        folder / "program.elf",
        folders,
        rv32_flags(),
        script,
        (*(FLAGS if simd else ()), "-Wall", "-Wextra", "-Werror"),
    )


def read_outcomes(output: bytes, cases: int, cores: Sequence[int]) -> list[list[Outcome]]:
    """Return the outcomes of so many cases, each with every number of cores."""
    numbers = [int(word, 16) for word in output.decode().split()]
    outcomes, at = [], 0
    for _ in range(cases):
        found = []
        for n in cores:
            found.append(Outcome(numbers[at + n], tuple(numbers[at : at + n])))
            at += n + 1
        outcomes.append(found)
    return outcomes


# ------------------------------------------------------------------------------ cases

IN_UNSIGNED, OUT_UNSIGNED, WIDE, PER_CHANNEL, B_ROWS, OUT_TRANSPOSED = 1, 2, 4, 8, 16, 32
LONG = 128
Rng = np.random.Generator


@dataclass(frozen=True)
class Kind:
    """What a case has besides its sizes.

    Attributes:
        in_type, out_type: "int8" or "uint8".
        limits: of the result; None for those of its type.
        wide: requantization in 64 bits.
        gap: bytes between pixels (or rows) of the result.
        shifts: whether channels differ in their shifts, not only in their factors.
    """

    in_type: str = "int8"
    out_type: str = "int8"
    limits: tuple[int, int] | None = None
    wide: bool = False
    gap: int = 0
    shifts: bool = True

    @property
    def flags(self) -> int:
        """The flags of a kernel."""
        unsigned = (self.in_type == "uint8") | (self.out_type == "uint8") << 1
        return unsigned | (WIDE if self.wide else 0)

    @property
    def clip(self) -> tuple[int, int]:
        """Limits of the result."""
        info = np.iinfo(self.out_type)
        return self.limits or (int(info.min), int(info.max))

    def data(self, rng: Rng, *shape: int, dtype: str = "") -> Array:
        """Random elements, by default of the input."""
        info = np.iinfo(dtype or self.in_type)
        return rng.integers(info.min, info.max + 1, shape).astype(dtype or self.in_type)


PLAIN = Kind()


@dataclass(frozen=True)
class Scaling:
    """A random requantization of each channel."""

    kind: Kind
    bias: Array
    mul: Array
    add: Array
    shift: Array

    def __call__(self, acc: Array) -> Array:
        scaled = ((acc + self.bias) * self.mul + self.add) >> self.shift
        return np.clip(scaled, *self.kind.clip).astype(self.kind.out_type).view(np.uint8)

    @classmethod
    def drawn(cls, rng: Rng, kind: Kind, k: int, terms: int) -> Scaling:
        """One that spreads sums of `terms` products over most of the limits."""
        spread = max(int(np.sqrt(terms) * 100 * 74), 1)
        shift = np.full(k, 30 if kind.wide else 14)
        shift += rng.integers(0, 2, k) if kind.shifts else 0
        mul = (rng.uniform(0.5, 1.5, k) * 2.0**shift * 60 / spread).astype(np.int64) + 1
        return cls(kind, rng.integers(-1000, 1000, k), mul, rng.integers(-9, 2**19, k), shift)

    def numbers(self) -> tuple[Array, Array, Array, Array]:
        """Bias, mul, add, shift."""
        return self.bias, self.mul, self.add, self.shift

    def words(self) -> tuple[int, ...]:
        """The requantization of the first channel."""
        low, high = self.kind.clip
        return int(self.mul[0]), int(self.add[0]), int(self.shift[0]), low, high, 0, 0, 0


def gemm(
    rng: Rng,
    rows: int,
    k: int,
    c: int,
    kind: Kind = PLAIN,
    *,
    transposed: bool = False,
    mapped: bool = False,
) -> Case:
    """A product of a matrix with weights."""
    case = Case("gemm", f"{rows} x {k} x {c}", rows * k * c)
    x, weight = kind.data(rng, rows, c), kind.data(rng, k, c, dtype="int8")
    scaling = Scaling.drawn(rng, kind, k, c)
    table = kind.data(rng, 256, dtype="uint8") if mapped else None
    at = case.put(x)
    weights = case.put(records.pack_quads(weight, *scaling.numbers(), wide=kind.wide))
    lookup = case.put(table) if table is not None else 0
    flags = kind.flags | PER_CHANNEL | (OUT_TRANSPOSED if transposed else 0)
    acc = x.astype(np.int64) @ weight.astype(np.int64).T
    result = scaling(acc)
    if table is not None:
        result = table[result]
    pitch = case.store(result.T if transposed else result, kind.gap)
    case.words = [
        at, weights, 0, case.out, lookup, rows, k, c, c, pitch, flags, *scaling.words(),
    ]  # fmt: skip
    return case


def conv(
    rng: Rng,
    k: int,
    c: int,
    size: tuple[int, int],
    taps: tuple[int, int] = (3, 3),
    stride: int = 1,
    kind: Kind = PLAIN,
    *,
    before: int | None = None,
) -> Case:
    """A convolution with padding as TensorFlow's SAME; depthwise where k is 0.

    ``before``: rows and columns of zeros above and on the left, if others than those.
    """
    (iy, ix), (fy, fx) = size, taps
    oy, ox = -(-iy // stride), -(-ix // stride)
    missing = [max((o - 1) * stride + f - i, 0) for o, f, i in ((oy, fy, iy), (ox, fx, ix))]
    top, left = (missing[0] // 2, missing[1] // 2) if before is None else (before, before)
    results = k or c
    name = "conv2d" if k else "depthwise"
    inner = fy * fx * (c if k else 1)
    shape = f"{fy} x {fx} / {stride}, {c} -> {results}, {oy} x {ox}"
    case = Case(name, shape, oy * ox * results * inner)
    x = kind.data(rng, iy, ix, c)
    weight = kind.data(rng, *((k,) if k else ()), fy, fx, c, dtype="int8")
    scaling = Scaling.drawn(rng, kind, results, inner)
    at, numbers = case.put(x), scaling.numbers()
    if k:
        weights = records.pack_quads(weight.reshape(k, -1), *numbers, wide=kind.wide)
        scratch = case.scratch(records.conv2d_scratch(fy * fx * c, 8))
    else:
        unsigned = kind.in_type == "uint8"
        filters = weight.transpose(2, 0, 1)
        weights = records.pack_channels(filters, *numbers, unsigned=unsigned, wide=kind.wide)
        scratch = case.scratch(records.depthwise_scratch(fx, ox, stride, 8))
    place = case.put(weights)
    padded = np.pad(x.astype(np.int64), ((top, fy * stride), (left, fx * stride), (0, 0)))
    acc = np.zeros((oy, ox, results), np.int64)
    for y in range(fy):
        for z in range(fx):
            part = padded[y : y + oy * stride : stride, z : z + ox * stride : stride][:oy, :ox]
            taps_at = weight[..., y, z, :].astype(np.int64)
            acc += part @ taps_at.T if k else part * taps_at
    pitch = case.store(scaling(acc).reshape(-1, results), kind.gap)
    case.words = [
        at, place, 0, case.out, results, c, iy, ix, oy, ox, fy, fx, stride, stride, top, left, c,
        pitch, kind.flags | PER_CHANNEL, *scaling.words(), scratch, 0,
    ]  # fmt: skip
    return case


def matmul(
    rng: Rng, batch: int, rows: int, k: int, c: int, kind: Kind = PLAIN, *, by_rows: bool = True
) -> Case:
    """A product of two matrices; the second one is [K][C] if ``by_rows``."""
    name = f"{batch} x {rows} x {k} x {c}, {'rows' if by_rows else 'columns'}"
    case = Case("matmul", name, batch * rows * k * c)
    a = kind.data(rng, batch, rows, c)
    b = kind.data(rng, batch, *((k, c) if by_rows else (c, k)), dtype="int8")
    scaling = Scaling.drawn(rng, kind, 1, c)
    places = [case.put(values) for values in (a, b)]
    scratch = case.scratch(records.matmul_scratch(c, 8))
    scaling.bias[:] = 0
    acc = a.astype(np.int64) @ (b.transpose(0, 2, 1) if by_rows else b).astype(np.int64)
    case.store(scaling(acc).reshape(-1, k), 0)
    flags = kind.flags | (B_ROWS if by_rows else 0)
    case.words = [*places, case.out, batch, rows, k, c, flags, *scaling.words(), scratch, 0]
    return case


def add(
    rng: Rng,
    elements: int,
    operands: int = 2,
    kind: Kind = PLAIN,
    mul: int = 0,
    *,
    looked_up: bool = False,
    halved: bool = False,
) -> Case:
    """A sum; ``looked_up``: in a table of all results of two operands; ``halved``: half of it."""
    case = Case("add", f"{operands} of {elements}", elements)
    values = [kind.data(rng, elements) for _ in range(operands)]
    places = [case.put(value) for value in values]
    shift = 7 if mul else 14
    factor = np.array([mul or int(rng.integers(5000, 14000))])
    numbers = (factor, np.array([50]), np.array([shift]))
    if halved:
        numbers = (np.array([1]), np.array([0]), np.array([1]))
    scaling = Scaling(kind, np.array([0]), *numbers)
    case.store(scaling(np.sum([value.astype(np.int64) for value in values], axis=0)[None]), 0)
    table = 0
    if looked_up:
        info = np.iinfo(kind.in_type)
        low, high = 2 * int(info.min), 2 * int(info.max)
        table = case.put(scaling(np.arange(low, high + 1)[None]))
    padding = [0] * (8 - operands)
    case.words = [
        *places, *padding, case.out, operands, elements, kind.flags, *scaling.words(), table,
    ]  # fmt: skip
    return case


def lookup(rng: Rng, elements: int) -> Case:
    """A map."""
    case = Case("map", f"{elements}", elements)
    x, table = PLAIN.data(rng, elements, dtype="uint8"), PLAIN.data(rng, 256, dtype="uint8")
    at, entries = case.put(x), case.put(table)
    case.store(table[x][None], 0)
    case.words = [at, case.out, entries, elements]
    return case


def average(
    rng: Rng, channels: int, size: tuple[int, int], window: tuple[int, int], stride: int = 1
) -> Case:
    """Means of windows of a map, rounded half away from zero."""
    (iy, ix), (fy, fx) = size, window
    oy, ox = (iy - fy) // stride + 1, (ix - fx) // stride + 1
    shape = f"{fy} x {fx} / {stride}, {channels}, {oy} x {ox}"
    case = Case("average", shape, oy * ox * fy * fx * channels)
    x = PLAIN.data(rng, iy, ix, channels)
    at = case.put(x)
    views = np.lib.stride_tricks.sliding_window_view(x.astype(np.int64), window, (0, 1))
    total = views[::stride, ::stride].sum((-2, -1))
    means = np.sign(total) * ((2 * np.abs(total) + fy * fx) // (2 * fy * fx))
    case.store(means.astype(np.int8).view(np.uint8).reshape(1, -1), 0)
    reciprocal = -(-(2**32) // (fy * fx))
    sizes = (channels, ix, oy, ox, fy, fx, stride, stride)
    case.words = [at, case.out, *sizes, reciprocal]
    return case


def transpose(rng: Rng, rows: int, columns: int) -> Case:
    """Of bytes."""
    case = Case("transpose", f"{rows} x {columns}", rows * columns)
    x = PLAIN.data(rng, rows, columns, dtype="uint8")
    at = case.put(x)
    case.store(x.T, 0)
    case.words = [at, case.out, rows, columns]
    return case


def attention(
    rng: Rng, heads: int, queries: int, cached: int, words: int, *, apart: bool, mixed: bool = False
) -> Case:
    """Attention with random tables; masks are 0 and -128 in runs, or anything (`mixed`)."""
    size, positions = 4 * words, cached + apart
    case = Case(
        "attention",
        f"{heads} x {queries} x {positions} x {size}",
        heads * queries * positions * size,
    )
    query, keys, values = (
        rng.integers(-128, 128, (heads, rows, size)).astype("int8")
        for rows in (queries, positions, positions)
    )
    masks = int(rng.choice([1, queries]))
    masked = np.arange(positions) < rng.integers(0, positions + 1, (masks, 1))
    mask = np.where(masked, -128, 0).astype("int8")
    if mixed:
        mask = rng.integers(-128, 128, (masks, positions)).astype("int8")
    before, of_mask, after = (rng.integers(-128, 128, 256).astype("int8") for _ in range(3))
    halving = rng.uniform(2, 60)
    largest = int(2.0 ** rng.uniform(0, 16))
    levels = int(rng.integers(2, 257))
    bumps = rng.integers(0, 2, 256) * (rng.random() < 0.5)
    exponentials = np.maximum((largest * 0.5 ** (np.arange(256) / halving)).astype(int), bumps)
    exponentials[0] = max(exponentials[0], 1)
    mul, add, shift = int(rng.integers(1, 200)), int(rng.integers(0, 2**12)), 12
    total = (int(rng.integers(1, 1 << 16)), 1 << 15, 16)
    scale = (int(rng.integers(1, 3000)), 1 << 15, 16)
    results = np.zeros((heads, queries, size), np.int64)
    for head in range(heads):
        for at in range(queries):
            products = keys[head].astype(int) @ query[head, at].astype(int)
            scores = before[np.clip((products * mul + add) >> shift, -128, 127) % 256].astype(int)
            sums = scores + of_mask[mask[at % masks].astype(int) % 256]
            found = np.clip((sums * total[0] + total[1]) >> total[2], -128, 127)
            e = exponentials[found.max() - found]
            weights = after[e * (levels - 1) // e.sum()].astype(int)
            mixed_values = weights @ values[head].astype(int)
            results[head, at] = np.clip((mixed_values * scale[0] + scale[1]) >> scale[2], -128, 127)
    weighing = Weighing(
        (mul, add, shift), (-128, 127), TableMap(before.view("uint8")),
        TableMap(of_mask.view("uint8")), total, (-128, 127),
        TableSoftmax(tuple(exponentials.tolist()), levels), TableMap(after.view("uint8")),
    )  # fmt: skip
    tensors = {
        "keys": keys[:, :cached], "values": values[:, :cached], "query": query,
        "mask": mask[:, None], "key": keys[:, cached:], "value": values[:, cached:],
    }  # fmt: skip
    given = {
        name: matrix(name, array.size // array.shape[-1], array.shape[-1])
        for name, array in tensors.items()
        if array.size
    }
    layer = cached_attention_layer(
        "y", AttentionOperands(**given), heads, weighing,
        requant=MulShift((scale[0],), (scale[2],), (scale[1],)),
    )  # fmt: skip
    places = {name: case.put(array) if array.size else 0 for name, array in tensors.items()}
    constants = case.put(attention_constants(layer))
    scratch = case.scratch(records.attention_scratch(positions, 8))
    case.store(results.astype("int8").view("uint8").reshape(1, -1), 0)
    fields = attention_fields(layer, plain_axis("y", "heads", heads, heads))
    case.words = [
        *(places[name] for name in ("keys", "values", "query", "mask", "key", "value")), case.out,
        constants, constants + 1536, constants + 1792, fields["distances"], fields["rise"], heads,
        queries, cached, size, masks, levels, mul, add, shift, scale[0], scale[1], scale[2],
        -128, 127, 0, 0, 0, scratch,
    ]  # fmt: skip
    return case


def norm(
    rng: Rng, rows: int, n: int, kind: Kind = PLAIN, *, centred: bool = True, long: bool = False
) -> Case:
    """LayerNorm or, if not ``centred``, RmsNorm; long: weights of 22 bits, wide: of more."""
    case = Case("layer_norm" if centred else "rms_norm", f"{rows} x {n}", rows * n)
    x = kind.data(rng, rows, n)
    size = 2**23 if kind.wide else 2**22 if long else 2**15
    weight, bias = rng.integers(-size, size, n), rng.integers(-size, size, n)
    shift = int(size).bit_length() - 7
    at, weights, biases = case.put(x), case.put(weight.astype("<i4")), case.put(bias.astype("<i4"))
    values = x.astype(np.int64)
    total = values.sum(1, keepdims=True)
    mean = np.sign(total) * (np.abs(total) // n) if centred else 0 * total
    values = values - mean
    deviation = np.floor(np.sqrt((values**2).sum(1, keepdims=True) // n + 1)).astype(np.int64)
    product = values * weight
    result = np.sign(product) * (np.abs(product) // deviation) + (bias if centred else 0)
    case.store(np.clip(result >> shift, -128, 127).astype(np.int8).view(np.uint8), 0)
    flags = kind.flags & ~OUT_UNSIGNED | (LONG if long and not kind.wide else 0)
    case.words = [at, case.out, weights, biases, rows, n, shift, 0, flags]
    return case


def table_softmax(rng: Rng, rows: int, n: int, kind: Kind = PLAIN) -> Case:
    """Exponentials from a table."""
    case = Case("table_softmax", f"{rows} x {n}", rows * n)
    x = kind.data(rng, rows, n)
    falling = np.sort(rng.integers(1, 2**24 if kind.wide else 20_000, 256))[::-1]
    levels = int(rng.integers(2, 257))
    at, table = case.put(x), case.put(falling.astype("<u4"))
    e = falling[x.astype(np.int64).max(1, keepdims=True) - x]
    case.store((e * (levels - 1) // e.sum(1, keepdims=True)).astype(np.uint8), 0)
    case.words = [at, case.out, table, rows, n, levels, kind.flags & ~OUT_UNSIGNED]
    return case
