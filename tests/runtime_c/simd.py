"""Helper: products and depthwise convolutions as C programs that check themselves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from htvm.aot.literals import c_array
from htvm.firmware.isa import rv32_flags
from htvm.firmware.machine import BARE, Machine
from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import Compiler
from htvm.sim.iss import run_elf
from tests.reference.gemmlowp import multiply_by_quantized_multiplier
from tests.sim.bare import SCRIPT, bare_corev

Array = npt.NDArray[Any]
Scaling = Literal["shift", "multiply", "tflite"]
SCALINGS: tuple[Scaling, ...] = ("shift", "multiply", "tflite")

_GUARD = 16  # bytes before and behind the result
_FILL = 0x5A

_HEAD = """
#include "htvm_planes.h"
#include "htvm_product.h"
#ifdef __riscv
static inline uint32_t cycles_(void)
{{
    uint32_t now;
    __asm__ volatile("csrr %0, mcycle" : "=r"(now) : : "memory");
    return now;
}}
#else
static inline uint32_t cycles_(void) {{ return 0; }}
#endif

{arrays}
static int8_t out[{guarded}] __attribute__((aligned(4)));

uint32_t spent;

/* Returns 0, or 1 + the index of the first wrong byte, guards included. */
int check(void)
{{
    for (uint32_t i = 0; i < sizeof out; i++) {{
        out[i] = {fill};
    }}
"""
_MAIN = (
    _HEAD
    + """    const htvm_product_t product = {{
        .in = in, .weights = weights, .bias = bias, .out = out + {guard},
        {numbers},
        .requant = {{ {requant} }},
    }};
    const uint32_t start = cycles_();
    htvm_product_{scaling}(&product);
"""
)
_MAIN_DEPTHWISE = (
    _HEAD.replace(
        "uint32_t spent;",
        "static int8_t padded[{padded} + {guard}] __attribute__((aligned(4)));\n"
        "static int8_t planes[{planes} + {guard}] __attribute__((aligned(4)));\n\nuint32_t spent;",
    )
    + """    for (uint32_t i = 0; i < {guard}; i++) {{
        padded[{padded} + i] = planes[{planes} + i] = {fill};
    }}
    const htvm_to_planes_t to = {{ .in = in, .out = padded, .k = {k}, {to} }};
    const htvm_depthwise_t depthwise = {{
        .in = padded, .weights = weights, .bias = bias, .out = planes, .k = {k},
        {sizes},
        .requant = {{ {requant} }},
    }};
    const htvm_from_planes_t back = {{ .in = planes, .out = out + {guard}, .k = {k}, {back} }};
    const uint32_t start = cycles_();
    htvm_to_planes(&to);
    htvm_depthwise_{scaling}(&depthwise);
    htvm_from_planes(&back);
"""
)
_GUARDS = """    for (uint32_t i = 0; i < {guard}; i++) {{
        if (padded[{padded} + i] != {fill} || planes[{planes} + i] != {fill}) {{
            return -1;
        }}
    }}
"""
_LOOP = "    for (uint32_t i = 0; i < sizeof out; i++) {{"
_TAIL = """    spent = cycles_() - start;
    for (uint32_t i = 0; i < sizeof out; i++) {{
        if (out[i] != expected[i]) {{
            return 1 + (int)i;
        }}
    }}
    return 0;
}}
"""


@dataclass(frozen=True)
class Product:
    """A convolution of a padded HWC image; all sizes in elements, which are bytes.

    Attributes:
        oy, ox: size of the output.
        k, c: output and input channels; c is a multiple of 4.
        fy, fx: size of the filter.
        stride: of rows and columns.
        scaling: kind of requantization.
        gap: bytes between pixels of the output.
        seed: of the contents; multiples of 3 have limits narrower than int8.
    """

    oy: int
    ox: int
    k: int
    c: int
    fy: int = 1
    fx: int = 1
    stride: int = 1
    scaling: Scaling = "shift"
    gap: int = 0
    seed: int = 0

    @property
    def macs(self) -> int:
        """Number of multiplications."""
        return self.oy * self.ox * self.k * self.c * self.fy * self.fx

    def source(self) -> str:
        """Return a C file with the arrays, the call and the check."""
        rng = np.random.default_rng(self.seed)
        iy, ix = (self.oy - 1) * self.stride + self.fy, (self.ox - 1) * self.stride + self.fx
        image = rng.integers(-128, 128, (iy, ix, self.c)).astype(np.int8)
        filters = rng.integers(-128, 128, (self.k, self.fy, self.fx, self.c)).astype(np.int8)
        bias = rng.integers(-9999, 9999, self.k).astype(np.int32)
        sums = _convolve(image, filters, self.stride) + bias
        low, high = (-128, 127) if self.seed % 3 else (-100, 90)
        fields, scaled, arrays = scaled_sums(self.scaling, rng, sums)
        result = np.clip(scaled, low, high).astype(np.int8)
        pitch = self.k + self.gap
        out = np.full((self.oy * self.ox, pitch), _FILL, np.int8)
        out[:, : self.k] = result.reshape(-1, self.k)
        guard = np.full(_GUARD, _FILL, np.int8)
        arrays |= {
            "in": image,
            "weights": packed(filters.reshape(self.k, self.fy, self.fx * self.c)),
            "bias": np.append(bias, np.zeros(-self.k % 4, np.int32)),
            "expected": np.concatenate([guard, out.reshape(-1), guard]),
        }
        numbers = {
            "rows": self.oy,
            "pixels": self.ox,
            "k": self.k,
            "taps": self.fy,
            "run": self.fx * self.c,
            "in_row": self.stride * ix * self.c,
            "in_pixel": self.stride * self.c,
            "in_tap": ix * self.c,
            "out_row": self.ox * pitch,
            "out_pixel": pitch,
        }
        return (_MAIN + _TAIL).format(
            arrays="\n".join(_declare(name, values) for name, values in arrays.items()),
            guarded=out.size + 2 * _GUARD,
            guard=_GUARD,
            fill=_FILL,
            numbers=", ".join(f".{name} = {value}" for name, value in numbers.items()),
            requant=f".low = {low}, .high = {high}, {fields}",
            scaling=self.scaling,
        )


def scaled_sums(
    scaling: Scaling, rng: np.random.Generator, sums: Array
) -> tuple[str, Array, dict[str, Array]]:
    """Return the fields of a random requantization, the sums scaled by it, and its arrays."""
    k = sums.shape[-1]
    if scaling == "shift":
        shift = int(rng.integers(4, 13))
        return f".shift = {shift}", sums >> shift, {}
    if scaling == "multiply":
        mul, add, shift = int(rng.integers(1, 3000)), int(rng.integers(-(1 << 20), 1 << 20)), 20
        wrapped = (sums.astype(np.int64) * mul + add).astype(np.uint32).astype(np.int32)
        return f".mul = {mul}, .add = {add}, .shift = {shift}", wrapped >> shift, {}
    multipliers = rng.integers(1 << 30, (1 << 31) - 1, k).astype(np.int32)
    exponents = rng.integers(-11, 2, k).astype(np.int8)
    flat = [
        multiply_by_quantized_multiplier(int(value), int(multiplier), int(exponent)) - 7
        for row in sums.reshape(-1, k)
        for value, multiplier, exponent in zip(row, multipliers, exponents, strict=True)
    ]
    fields = ".multipliers = multipliers, .exponents = exponents, .zero_point = -7"
    arrays = {"multipliers": multipliers, "exponents": exponents}
    return fields, np.array(flat).reshape(sums.shape), arrays


@dataclass(frozen=True)
class Depthwise:
    """A depthwise convolution of an HWC image with borders, layout changes included.

    Attributes:
        iy, ix, k: size of the image; k is a multiple of 4.
        fy, fx, stride: of the filter.
        pad: rows and columns of the value ``border`` around the image.
        scaling: kind of requantization.
        border: value of what is around the image.
        seed: of the contents; multiples of 3 have limits narrower than int8.
    """

    iy: int
    ix: int
    k: int
    fy: int = 3
    fx: int = 3
    stride: int = 1
    pad: int = 1
    scaling: Scaling = "shift"
    border: int = 0
    seed: int = 0

    @property
    def oy(self) -> int:
        """Rows of the output."""
        return (self.iy + 2 * self.pad - self.fy) // self.stride + 1

    @property
    def ox(self) -> int:
        """Columns of the output."""
        return (self.ix + 2 * self.pad - self.fx) // self.stride + 1

    @property
    def macs(self) -> int:
        """Number of multiplications."""
        return self.oy * self.ox * self.k * self.fy * self.fx

    def source(self) -> str:
        """Return a C file with the arrays, the calls and the check."""
        rng = np.random.default_rng(self.seed)
        image = rng.integers(-128, 128, (self.iy, self.ix, self.k)).astype(np.int8)
        filters = rng.integers(-128, 128, (self.k, self.fy, self.fx)).astype(np.int8)
        bias = rng.integers(-9999, 9999, self.k).astype(np.int32)
        margins = ((self.pad, self.pad), (self.pad, self.pad), (0, 0))
        padded = np.pad(image, margins, constant_values=self.border).astype(np.int64)
        sums = np.zeros((self.oy, self.ox, self.k), np.int64) + bias
        for y in range(self.fy):
            for x in range(self.fx):
                part = padded[y :: self.stride, x :: self.stride][: self.oy, : self.ox]
                sums += part * filters[:, y, x]
        low, high = (-128, 127) if self.seed % 3 else (-100, 90)
        fields, scaled, arrays = scaled_sums(self.scaling, rng, sums)
        result = np.clip(scaled, low, high).astype(np.int8)
        guard = np.full(_GUARD, _FILL, np.int8)
        arrays |= {
            "in": image,
            "weights": filters,
            "bias": bias,
            "expected": np.concatenate([guard, result.reshape(-1), guard]),
        }
        row = -(-(self.ix + 2 * self.pad) // 4) * 4 + 4
        rows = self.iy + 2 * self.pad
        out_row = -(-self.ox // 4) * 4
        return (_MAIN_DEPTHWISE + _TAIL.replace(_LOOP, _GUARDS + _LOOP)).format(
            arrays="\n".join(_declare(name, values) for name, values in arrays.items()),
            guarded=result.size + 2 * _GUARD,
            guard=_GUARD,
            fill=_FILL,
            padded=self.k * rows * row,
            planes=self.k * self.oy * out_row,
            k=self.k,
            to=f".y = {self.iy}, .x = {self.ix}, .pixel = {self.k}, .top = {self.pad}, "
            f".left = {self.pad}, .planes = {{{row}, {row * rows}}}, .border = {self.border}",
            sizes=f".oy = {self.oy}, .ox = {self.ox}, .fy = {self.fy}, .fx = {self.fx}, "
            f".stride = {self.stride}, .in_planes = {{{row}, {row * rows}}}, "
            f".out_planes = {{{out_row}, {out_row * self.oy}}}",
            back=f".y = {self.oy}, .x = {self.ox}, .pixel = {self.k}, "
            f".planes = {{{out_row}, {out_row * self.oy}}}",
            requant=f".low = {low}, .high = {high}, {fields}",
            scaling=self.scaling,
        )


def packed(filters: Array) -> Array:
    """Return weights (K, taps, run) as [ceil(K / 4)][taps][run / 4][4 channels][4 bytes]."""
    k, taps, run = filters.shape
    whole = np.zeros((-(-k // 4) * 4, taps, run), np.int8)
    whole[:k] = filters
    return np.asarray(
        whole.reshape(-1, 4, taps, run // 4, 4).transpose(0, 2, 3, 1, 4), order="C"
    ).reshape(-1)


def _convolve(image: Array, filters: Array, stride: int) -> Array:
    k, fy, fx, _ = filters.shape
    oy, ox = (image.shape[0] - fy) // stride + 1, (image.shape[1] - fx) // stride + 1
    total = np.zeros((oy, ox, k), np.int64)
    for y in range(fy):
        for x in range(fx):
            part = image[y : y + stride * oy : stride, x : x + stride * ox : stride][:oy, :ox]
            total += part.astype(np.int64) @ filters[:, y, x].astype(np.int64).T
    return total


def _declare(name: str, values: Array) -> str:
    kind = {"int8": "int8_t", "int32": "int32_t"}[values.dtype.name]
    head = f"static const {kind} {name}[{values.size}] __attribute__((aligned(4))) = {{"
    return f"{head}\n{c_array(values)}\n}};"


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
.bss
.align 4
.zero 4096
stack_top:
"""

_PRINT = """
extern uint32_t spent;
int check(void);

static void put(uint32_t value)
{
    volatile uint8_t *const console = (volatile uint8_t *)0x10000000u;
    for (int digit = 28; digit >= 0; digit -= 4) {
        *console = (uint8_t)"0123456789abcdef"[value >> digit & 15u];
    }
    *console = '\\n';
}

int main(void)
{
    __asm__ volatile("csrw mcountinhibit, zero");
    (void)check(); /* so that the second call finds everything as an inner loop would */
    put((uint32_t)check());
    put(spent);
    return 0;
}
"""


def on_the_core(
    case: Product | Depthwise, folder: Path, simd: bool = True, machine: Machine | None = None
) -> tuple[int, int]:
    """Return (0 or 1 + the index of the first wrong byte, cycles) on the simulated core."""
    elf = program(case, folder, simd)
    run = run_elf(elf, machine or (bare_corev() if simd else BARE))
    wrong, cycles = (int(word, 16) for word in run.output.decode().split())
    return wrong, cycles


def program(case: Product | Depthwise, folder: Path, simd: bool = True) -> Path:
    """Return a program that prints those two numbers."""
    start, main, script = folder / "start.S", folder / "main.c", folder / "program.ld"
    start.write_text(_START)
    main.write_text(case.source() + _PRINT)
    script.write_text(SCRIPT)
    kernels = runtime_c() / "simd"
    flags = ("-mcpu=generic_rv32+m+c+zicsr+xcvmem+xcvalu+xcvmac+xcvsimd+xcvbi",) if simd else ()
    return Compiler.zig().compile_cross(
        [start, main, *sorted(kernels.glob("*.c"))],
        folder / "program.elf",
        [kernels],
        rv32_flags(),
        script,
        (*flags, "-Wall", "-Wextra", "-Werror"),
    )
