"""The instruction sets that firmware is compiled for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from byoc_dory.soc.cores import Host

__all__ = ["compiled_isa", "features_of", "march"]

# Without xcvbitmanip, with which the compiler in use (LLVM 22) miscompiles __builtin_clz, and
# without hardware loops, which it does not know; kernels write those in assembly.
_COREV = ("xcvalu", "xcvbi", "xcvmac", "xcvmem", "xcvsimd")


def compiled_isa(host: Host) -> str:
    """Return the instruction set for the compiler: the core's, with the extensions that are safe.

    For example "rv32imc", or "rv32imc_xcvalu_xcvbi_xcvmac_xcvmem_xcvsimd" for a core with the
    CORE-V extensions, where the kernels in ``runtime_c/simd`` then use SIMD.
    """
    return "_".join([host.isa, *(_COREV if host.corev else ())])


def features_of(isa: str) -> tuple[str, ...]:
    """Return the extensions of an instruction set, as the compiler calls them.

    Args:
        isa: "rv32i", the letters of standard extensions, and further names, each behind "_".
    """
    standard, *others = isa.removeprefix("rv32i").split("_")
    return (*standard, "zicsr", *others)


def march(isa: str) -> str:
    """Return the value of ``-march``, which names standard extensions before those of vendors."""
    standard, *others = isa.split("_")
    return "_".join([standard, "zicsr", *others])
