"""Estimate of a program's machine code from its C, without a compiler.

CPU kernels are estimated by what they compute, because compilers unroll similar loops very
differently; paddings and operators on reals also by the loops that are unrolled (`unrolling`);
everything else by its number of words, the runtime's functions in `library_size`.  The constants
were fitted to firmwares of the zoo's networks (RV32IMC, -O2); tests check the estimate against them
within `TOLERANCE`.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from byoc_dory.region import Kernel
from htvm.fitting.library_size import WORD, library_bytes
from htvm.fitting.unrolling import unrolled_bytes

if TYPE_CHECKING:
    from htvm.aot.cpu import CpuKernel
    from htvm.compiled import Compiled

__all__ = ["TOLERANCE", "code_bytes", "descriptor_bytes", "kernel_bytes"]

TOLERANCE = 0.35
"""Largest relative error of the estimate."""

# Bytes of a CPU kernel by what it computes; the first match in this order decides.  Floating point
# without a floating-point unit is far larger than the rest.
_CPU_BYTES: tuple[tuple[tuple[str, ...], int], ...] = (
    (("tflite_softmax", "onnx_softmax", "integer_softmax", "ita_softmax"), 930),
    (("onnx_quantize",), 1_000),
    (("dequantize",), 350),
    (("matmul", "real_matmul"), 1_050),
    (("depthwise",), 510),
    (("conv2d", "dilated_conv2d", "real_conv2d"), 780),
    (("pad", "pad_axes"), 150),
    (("average_pool2d",), 200),
    (("max_pool2d",), 200),
    (("tflite_add",), 230),
)
# Requantization in a kernel: TFLite's 64-bit products, rounded twice, and onnxruntime's, which call
# a function beside a tie.
_REQUANTIZED = {"tflite_requantize": 350, "onnx_requantize": 200}
# Bytes per word of C where this is a better estimate: other CPU kernels, accelerators' layers,
# conversions of layouts.
_CPU_WORD, _LAYER_WORD, _BORDER_WORD = 2.2, 0.8, 1.5
# Kernels that the compiler unrolls as they are: what only moves elements, and operators on reals.
_MOVES, _REAL = ("pad", "pad_axes"), "real_"
# Start-up code, entry function per call and per value passed, the compiler's floating-point
# routines.
_START, _CALL, _VALUE, _REALS = 160, 45, 6, 2_600
# Read-only data that layers pass to drivers, which are not in the program's list of constants.
_DESCRIPTORS = {"overlapped": 32, "decoupled": 32, "published": 85}

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def code_bytes(compiled: Compiled) -> int:
    """Return the estimated bytes of the firmware's code (see `TOLERANCE`)."""
    steps = compiled.program.steps
    total = _START + _CALL * len(steps) + _VALUE * sum(len(step.values) for step in steps)
    total += sum(map(kernel_bytes, _written(compiled)))
    total += round(library_bytes(compiled.program, compiled.target.soc))
    if any(re.search(r"\bfloat\b", kernel.source) for kernel in compiled.cpu_kernels):
        total += _REALS
    return total


def descriptor_bytes(compiled: Compiled) -> int:
    """Return the estimated bytes of read-only data besides the program's constants."""
    layers = sum(isinstance(k, Kernel) and k.layer is not None for k in _written(compiled))
    return layers * _DESCRIPTORS[compiled.options.tiling.schedule]


def _written(compiled: Compiled) -> list[Kernel | CpuKernel]:
    """The kernels whose functions are in the C; others share these."""
    kernels: dict[str, Kernel | CpuKernel] = {k.symbol: k for k in compiled.cpu_kernels}
    kernels |= {k.symbol: k for code in compiled.regions.values() for k in code.kernels}
    first: dict[str, str] = {}
    for step in compiled.program.steps:
        first.setdefault(step.function, step.symbol)
    return [kernels[symbol] for symbol in first.values() if symbol in kernels]


def kernel_bytes(kernel: Kernel | CpuKernel) -> int:
    """Return the estimated bytes of one function."""
    if isinstance(kernel, Kernel):
        rate = _BORDER_WORD if kernel.layer is None else _LAYER_WORD
        return math.ceil(rate * _words(kernel.source))
    simple = all(name in _MOVES or name.startswith(_REAL) for name in kernel.operators)
    unrolled = unrolled_bytes(kernel.source) if simple else 0
    for names, size in _CPU_BYTES:
        if not set(names).isdisjoint(kernel.operators):
            size += sum(_REQUANTIZED.get(name, 0) for name in set(kernel.operators))
            return max(size, unrolled)
    return max(math.ceil(_CPU_WORD * _words(kernel.source)), unrolled)


def _words(source: str) -> int:
    return len(WORD.findall(_COMMENT.sub("", source)))
