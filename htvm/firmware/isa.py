"""The instruction sets that firmware is compiled for on RISC-V and Xtensa, and kernels' flags."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from byoc_dory.soc.cores import Host

# Without xcvbitmanip, with which the compiler in use (LLVM 22) miscompiles __builtin_clz, and
# without hardware loops, which it does not know; kernels write those in assembly.
_COREV = ("xcvalu", "xcvbi", "xcvmac", "xcvmem", "xcvsimd")

_BITS = ("zba", "zbb", "zbs", "zcb")

_RV32_TARGET = ("-target", "riscv32-freestanding-none")
_RV32_FLAGS = (
    "-mabi=ilp32",
    "-std=c11",
    "-O2",
    "-fomit-frame-pointer",
    # A loop head at an address of 2 modulo 4 costs a cycle per iteration, 10 % of a hot loop.
    "-falign-loops=4",
    "-falign-functions=4",
    "-ffunction-sections",
    "-fdata-sections",
    "-fno-sanitize=all",
    "-fno-stack-protector",
    "-g0",
    "-Wl,--gc-sections",
)

_USER_MODE_FLAGS = (
    "-std=c11",
    "-O2",
    "-fomit-frame-pointer",
    "-ffunction-sections",
    "-fdata-sections",
    "-ffreestanding",
    # A product and a sum fused into one instruction are rounded once, the source's own arithmetic
    # rounds twice.
    "-ffp-contract=off",
    "-fno-sanitize=all",
    "-fno-stack-protector",
    "-fno-unwind-tables",
    "-g0",
    "-Wl,--gc-sections",
)

# Constants of a function are beside it, and calls reach all of a flash.
_XTENSA_FLAGS = ("-mtext-section-literals", "-mlongcalls")


def compiled_isa(host: Host) -> str:
    """Return the instruction set for the compiler: the core's, with the extensions that are safe.

    For example "rv32imc", or "rv32imc_xcvalu_xcvbi_xcvmac_xcvmem_xcvsimd" for a core with the
    CORE-V extensions, where the kernels in ``runtime_c/simd`` then use SIMD.
    """
    return "_".join([host.isa, *(_COREV if host.corev else ())])


def _features(isa: str) -> tuple[str, ...]:
    """Return the extensions of an instruction set, as the compiler calls them.

    Args:
        isa: "rv32i" or "rv64i", the letters of standard extensions, and further names, each behind
            "_".
    """
    standard, *others = isa[len("rv32i") :].split("_")
    return (*standard, "zicsr", *others)


def rv32_flags(isa: str = "rv32imc", *, gcc: bool = False) -> tuple[str, ...]:
    """Return the flags of every build for a simulated core, for clang or for GCC.

    Args:
        isa: the core's instruction set: "rv32i" followed by the letters of extensions, and by the
            names of others, each behind "_" (`compiled_isa`).
        gcc: whether they are GCC's.
    """
    if gcc:
        # Of this version, the base has the registers of zicsr, whose name finds no library.
        return (f"-march={_of_gcc(isa)}", "-misa-spec=2.2", *_RV32_FLAGS, "-ffreestanding")
    features = "".join(f"+{name}" for name in _features(isa))
    return (*_RV32_TARGET, f"-mcpu=generic_rv32{features}", *_RV32_FLAGS)


def vector_flags(isa: str, *, gcc: bool = False) -> tuple[str, ...]:
    """Return the flags of every build for a core with vectors, for clang or for GCC.

    Args:
        isa: the core's instruction set: "rv32i" or "rv64i", and the rest as for `rv32_flags`.
        gcc: whether they are GCC's.
    """
    bits = isa[2:4]
    # With the double precision of the general-purpose set, its registers pass arguments.
    standard = isa.partition("_")[0]
    abi = {"32": "ilp32", "64": "lp64"}[bits] + ("d" if "d" in standard[5:] else "")
    # Variables are addressed without a register that start-up code would have to set.
    own = (f"-mabi={abi}", "-mcmodel=medany", "-msmall-data-limit=0")
    common = (*own, *_USER_MODE_FLAGS)
    if gcc:
        return (f"-march={march(isa)}", *common)
    features = "".join(f"+{name}" for name in _features(isa))
    target = ("-target", f"riscv{bits}-freestanding-none")
    return (*target, f"-mcpu=generic_rv{bits}{features}", *common)


def user_mode_flags(host: Host, *, gcc: bool = False) -> tuple[str, ...]:
    """Return the flags of every build for a core in QEMU's user mode, for clang or for GCC.

    Args:
        host: a core with vectors, or an Xtensa core, for which there is only GCC.
        gcc: whether they are GCC's.
    """
    if host.xtensa is not None:
        return (*_XTENSA_FLAGS, *_USER_MODE_FLAGS)
    return vector_flags(host.isa, gcc=gcc)


def march(isa: str) -> str:
    """Return the value of ``-march``, which names standard extensions before those of vendors."""
    standard, *others = _of_gcc(isa).split("_")
    return "_".join([standard, "zicsr", *others])


def _of_gcc(isa: str) -> str:
    """Return the part of an instruction set that any GCC compiles and links.

    Without extensions on bits: GCC finds no library for a set with them, 12 ends with an internal
    error in zbs and does not know zcb.
    """
    return "_".join(name for name in isa.split("_") if name not in _BITS)


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
_FLASH_CFLAGS = ("-fhosted",)

# With it, LLVM 22 crashes in loops of a few columns on cores with eight registers for operands.
_SMALL_CFLAGS = ("-mllvm", "-disable-machine-licm")


def kernel_flags(host: Host, *, gcc: bool = False) -> tuple[str, ...]:
    """Return the flags of CPU kernels for a core, for clang or for GCC."""
    if gcc:  # it calls memcpy and memset without being told, and may have no C library
        return ()
    if host.arm is not None or host.vectors is not None:
        return (*_FLASH_CFLAGS, *(_SMALL_CFLAGS if host.isa == "armv6-m" else ()))
    return (*RV32_CFLAGS, *(_SIMD_CFLAGS if host.corev else ()))
