"""Compiler flags for CPU kernels on the simulated core."""

from __future__ import annotations

__all__ = ["RV32_CFLAGS"]

RV32_CFLAGS: tuple[str, ...] = (
    "-mllvm",
    "-riscv-enable-machine-combiner=false",
    "-mllvm",
    "-misched-prera-direction=bottomup",
    "-fhosted",
)
"""Flags for clang, besides -O2, that scheduled kernels rely on.

Without the first two, LLVM reorders the additions of an unrolled sum and moves loads up until
registers run out: 4.6 instead of 2.9 cycles per MAC in the inner loop of a convolution.  The last
one lets it use ``memcpy`` and ``memset``, which the platform has.
"""
