"""Compiler flags for CPU kernels, by core."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from byoc_dory.soc.cores import Host

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

# Loads that are moved together make sums spill: 64 instead of 51 instructions for 32 dot products.
_SIMD_CFLAGS = ("-mllvm", "-misched-cluster=false")


# Kernels may call memcpy and memset; everything else is freestanding.
_ARM_CFLAGS = ("-fhosted",)


def kernel_flags(host: Host, *, gcc: bool = False) -> tuple[str, ...]:
    """Return the flags of CPU kernels for a core, for clang or for GCC."""
    if gcc:  # it calls memcpy and memset without being told, and may have no C library
        return ()
    if host.arm is not None:
        return _ARM_CFLAGS
    return (*RV32_CFLAGS, *(_SIMD_CFLAGS if host.corev else ()))
