"""Firmware of TFLite Micro: which of its sources are compiled, and how.

Compiler, core, start-up code and linker script are those of our own firmware.  As TFLite Micro's
own build does, its kernels and CMSIS-NN are compiled with ``-O2`` (like all of ours), its
interpreter with ``-Os``, without exceptions and without error texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import ziglang

from byoc_dory.soc.base import Soc
from htvm.firmware import arm
from htvm.firmware.toolchain import Compiler
from htvm.frontend.tflite.file import TfliteFile, TfliteTensor

__all__ = ["OPERATORS", "Sources", "build", "compiled_sources"]

OPERATORS = {
    "ADD": ("add", "AddAdd(tflite::Register_ADD_INT8())"),
    "AVERAGE_POOL_2D": ("pooling", "AddAveragePool2D(tflite::Register_AVERAGE_POOL_2D_INT8())"),
    "CONV_2D": ("conv", "AddConv2D(tflite::Register_CONV_2D_INT8())"),
    "DEPTHWISE_CONV_2D": (
        "depthwise_conv",
        "AddDepthwiseConv2D(tflite::Register_DEPTHWISE_CONV_2D_INT8())",
    ),
    "FULLY_CONNECTED": (
        "fully_connected",
        "AddFullyConnected(tflite::Register_FULLY_CONNECTED_INT8())",
    ),
    "RESHAPE": ("reshape", "AddReshape()"),
    "SOFTMAX": ("softmax", "AddSoftmax(tflite::Register_SOFTMAX_INT8())"),
}
"""Operator of a file -> its kernel's source, the call that makes the interpreter know it."""

_MAIN, _LIBC = (Path(__file__).with_name(name) for name in ("main.cc", "libc.c"))
_ARENA = 512 * 1024

# Sources that are not part of a program: tests, and what tests and tools alone need.
_UNUSED = re.compile(r"_test\.cc$|^test_|^testing_|^mock_|^fake_|^recording_|_test_")
_OTHER_TYPES = re.compile(r"_(f16|f32|flt)\.c$")
_OTHER_KERNELS = {
    "Bindings", "ConcatenationFunctions", "LSTMFunctions", "PadFunctions", "ReshapeFunctions",
    "SVDFunctions", "TransposeFunctions",
}  # fmt: skip

_CXX = (
    "-std=c++17", "-nostdinc++", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics",
)  # fmt: skip
_DEFINED = (
    "-w", "-DNDEBUG", "-DTF_LITE_STATIC_MEMORY", "-DTF_LITE_STRIP_ERROR_STRINGS",
    "-DTF_LITE_DISABLE_X86_NEON", "-DFLATBUFFERS_LOCALE_INDEPENDENT=0",
    "-DARM_NN_ENABLE_F16=0", "-DARM_NN_ENABLE_F32=0",
)  # fmt: skip
# What the compiler's package would say of its C++ headers if it built their library.
_CXX_HEADERS = (
    "-D_LIBCPP_ABI_VERSION=1", "-D_LIBCPP_ABI_NAMESPACE=__1", "-D_LIBCPP_HAS_THREADS=0",
    "-D_LIBCPP_HARDENING_MODE=2", "-D_LIBCPP_HARDENING_MODE_DEFAULT=2",
    "-D_LIBCPP_ASSERTION_SEMANTIC_DEFAULT=2", "-D_LIBCPP_HAS_MUSL_LIBC=1",
    "-D_LIBCPP_HAS_MONOTONIC_CLOCK=0", "-D_LIBCPP_HAS_FILESYSTEM=0", "-D_LIBCPP_HAS_UNICODE=1",
    "-D_LIBCPP_HAS_WIDE_CHARACTERS=1", "-D_LIBCPP_HAS_LOCALIZATION=1",
    "-D_LIBCPP_HAS_RANDOM_DEVICE=0", "-D_LIBCPP_HAS_TERMINAL=0",
    "-D_LIBCPP_HAS_TIME_ZONE_DATABASE=0", "-D_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS=0",
    "-D_LIBCPP_PSTL_BACKEND_SERIAL",
)  # fmt: skip


@dataclass(frozen=True)
class Sources:
    """Folders of the sources, as their projects publish them.

    Attributes:
        tflm, flatbuffers, gemmlowp, ruy: TFLite Micro and the headers it includes.
        cmsis_nn, cmsis: the kernels for Arm cores, and the headers of cores; None without them.
    """

    tflm: Path
    flatbuffers: Path
    gemmlowp: Path
    ruy: Path
    cmsis_nn: Path | None = None
    cmsis: Path | None = None


def build(
    sources: Sources, file: TfliteFile, network: Path, soc: Soc, folder: Path, compiler: Compiler
) -> Path:
    """Build the firmware of a network for a Cortex-M core; return it (ELF).

    Args:
        sources: with ``cmsis_nn``, its kernels are used, else TFLite Micro's reference kernels.
        file, network: the network, and its path.
        soc: the core with memories.
        folder: for objects and the firmware.
        compiler: the compiler of our own firmware.

    Raises:
        KeyError: an operator is not in `OPERATORS`.
        ToolchainError: the compiler failed.
    """
    names = sorted({operator.kind for operator in file.operators})
    slow, fast = compiled_sources(sources, names)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "network.h").write_text(_header(names, file))
    (folder / "network.S").write_text(_assembly(network))
    nn = ["-DCMSIS_NN"] if sources.cmsis_nn is not None else []
    jobs = [(_MAIN, ["-Os", *nn, f"-I{folder}"])]
    jobs += [(path, ["-Os"]) for path in (*slow, _LIBC)]
    jobs += [(path, ["-O2", *nn]) for path in fast]

    def compiled(job: tuple[Path, list[str]]) -> Path:
        path, own = job
        out = folder / f"{'_'.join(path.parts[-4:])}.o"
        cxx = path.suffix == ".cc"
        flags = [*_DEFINED, *own, "-c", "-Wl,--no-gc-sections"]
        flags += [*_CXX, *_CXX_HEADERS] if cxx else ["-std=c11"]
        return compiler.compile_cross([path], out, _includes(sources, cxx), _core(soc), None, flags)

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compiled, jobs))
    arm.build_firmware([*objects, folder / "network.S"], soc, folder, compiler)
    return folder / "firmware.elf"


def compiled_sources(sources: Sources, operators: Sequence[str]) -> tuple[list[Path], list[Path]]:
    """Return the sources of the interpreter, and those of the kernels of some operators.

    Raises:
        KeyError: an operator is not in `OPERATORS`.
    """
    kernels = [OPERATORS[name][0] for name in operators]
    return [*_interpreter(sources.tflm)], [*_kernels(sources, kernels)]


def _core(soc: Soc) -> list[str]:
    """The flags of our firmware without those that TFLite Micro's own build sets otherwise."""
    ours = arm.arm_flags(arm.core_of(soc))
    kept = [flag for flag in ours if flag not in ("-std=c11", "-O2", "-ffreestanding")]
    # Without it, memcpy of four bytes, which CMSIS-NN's inner loops have, would be a call.
    return [*kept, "-fhosted"]


def _includes(sources: Sources, cxx: bool) -> list[Path]:
    package = Path(ziglang.__file__).parent / "lib"
    libc = package / "libc" / "include"
    found = []
    if cxx:
        found += [sources.tflm, sources.flatbuffers / "include", sources.gemmlowp, sources.ruy]
    if sources.cmsis_nn is not None and sources.cmsis is not None:
        found += [sources.cmsis_nn, sources.cmsis_nn / "Include"]
        found += [sources.cmsis / "CMSIS" / "Core" / "Include"]
    if cxx:
        found += [package / "libcxx" / "include", package / "libcxxabi" / "include"]
    return [*found, libc / "arm-linux-musl", libc / "generic-musl"]


def _interpreter(tflm: Path) -> Iterator[Path]:
    lite = tflm / "tensorflow" / "lite"
    folders = [lite / "micro" / name for name in ("", "arena_allocator", "memory_planner")]
    folders += [lite / "micro" / "tflite_bridge", lite / "core" / "api", lite / "core" / "c"]
    folders += [lite / "kernels", lite / "kernels" / "internal"]
    folders += [
        tflm / "tensorflow" / "compiler" / "mlir" / "lite" / name for name in ("core/api", "schema")
    ]
    for folder in folders:
        for path in sorted(folder.glob("*.cc")):
            if not _UNUSED.search(path.name):
                yield path


def _kernels(sources: Sources, names: Sequence[str]) -> Iterator[Path]:
    """Yield the sources of kernels; what CMSIS-NN has replaces TFLite Micro's own."""
    folder = sources.tflm / "tensorflow" / "lite" / "micro" / "kernels"
    yield folder / "kernel_util.cc"
    for name in names:
        theirs = folder / "cmsis_nn" / f"{name}.cc"
        used = sources.cmsis_nn is not None and theirs.is_file()
        yield theirs if used else folder / f"{name}.cc"
        common = folder / f"{name}_common.cc"
        if common.is_file():
            yield common
    if sources.cmsis_nn is not None:
        for path in sorted((sources.cmsis_nn / "Source").rglob("*.c")):
            if not _OTHER_TYPES.search(path.name) and path.parent.name not in _OTHER_KERNELS:
                yield path


def _header(names: Sequence[str], file: TfliteFile) -> str:
    [first], [last] = file.inputs, file.outputs
    calls = " && ".join(f"resolver.{OPERATORS[name][1]} == kTfLiteOk" for name in names)
    return (
        f"#define OPERATORS {len(names)}\n"
        f"#define ARENA_BYTES {_ARENA}\n"
        f"#define INPUT_BYTES {_bytes(first)}\n"
        f"#define OUTPUT_BYTES {_bytes(last)}\n"
        "static inline bool add_operators(tflite::MicroMutableOpResolver<OPERATORS> &resolver)\n"
        f"{{\n    return {calls};\n}}\n"
    )


def _bytes(tensor: TfliteTensor) -> int:
    return math.prod(tensor.shape) * np.dtype(tensor.dtype).itemsize


def _assembly(network: Path) -> str:
    return (
        '.section .rodata.network, "a"\n.balign 16\n.global network\nnetwork:\n'
        f'.incbin "{network.resolve()}"\n'
    )
