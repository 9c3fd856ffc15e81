"""Firmware of TFLite Micro: which of its sources are compiled, and how.

Core, start-up code and linker script are those of our own firmware.  As in TFLite Micro's own
build, its interpreter is compiled with ``-Os``, without exceptions and without error texts; its
kernels and CMSIS-NN with the level of optimization that is asked for.  The interpreter's files are
compiled as one, in a tenth of the time.  Object files are kept, as networks share all but one.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.tflm.compilers import Kit
from byoc_dory.errors import InputError
from byoc_dory.soc.base import Soc
from htvm.firmware import arm
from htvm.frontend.tflite.file import TfliteFile, TfliteTensor

__all__ = [
    "OPERATORS", "Sources", "build", "cmsis_nn_sources", "compiled_sources", "core_flags",
    "sources_below",
]  # fmt: skip

OPERATORS = {
    "ADD": ("add", "AddAdd(tflite::Register_ADD_INT8())"),
    "AVERAGE_POOL_2D": ("pooling", "AddAveragePool2D(tflite::Register_AVERAGE_POOL_2D_INT8())"),
    "CONV_2D": ("conv", "AddConv2D(tflite::Register_CONV_2D_INT8())"),
    # The operator of what Vela compiled.
    "ETHOS_U": ("ethos_u/ethosu", "AddEthosU()"),
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
_ARENA = 192 * 1024

# Sources that are not part of a program: tests, and what tests and tools alone need.
_UNUSED = re.compile(r"_test\.cc$|^test_|^testing_|^mock_|^fake_|^recording_|_test_")
_OTHER_TYPES = re.compile(r"_(f16|f32|flt)\.c$")
_OTHER_KERNELS = {
    "Bindings", "ConcatenationFunctions", "LSTMFunctions", "ReshapeFunctions", "SVDFunctions",
}  # fmt: skip

_CXX = (
    "-std=c++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics",
)  # fmt: skip
_DEFINED = (
    "-w", "-DNDEBUG", "-DTF_LITE_STATIC_MEMORY", "-DTF_LITE_STRIP_ERROR_STRINGS",
    "-DTF_LITE_DISABLE_X86_NEON", "-DFLATBUFFERS_LOCALE_INDEPENDENT=0",
    "-DARM_NN_ENABLE_F16=0", "-DARM_NN_ENABLE_F32=0",
)  # fmt: skip


@dataclass(frozen=True)
class Sources:
    """Folders of the sources, as their projects publish them.

    Attributes:
        tflm, flatbuffers, gemmlowp, ruy: TFLite Micro and the headers it includes.
        cmsis_nn, cmsis: the kernels for Arm cores, and the headers of cores; None without them.
        versions: what is known of them, as text.
    """

    tflm: Path
    flatbuffers: Path
    gemmlowp: Path
    ruy: Path
    cmsis_nn: Path | None = None
    cmsis: Path | None = None
    versions: tuple[str, ...] = ()

    @classmethod
    def below(cls, folder: Path) -> Sources:
        """Return the sources in a folder: one each, such as ``tflm@90b983c`` or ``tflm``.

        Raises:
            InputError: one is not there.
        """
        found, versions = sources_below(
            folder, ("tflm", "flatbuffers", "gemmlowp", "ruy", "cmsis_nn", "cmsis")
        )
        return cls(**found, versions=versions)


def sources_below(folder: Path, names: Sequence[str]) -> tuple[dict[str, Path], tuple[str, ...]]:
    """Return the sources in a folder, one each, such as ``tflm@90b983c`` or ``tflm``, and versions.

    Raises:
        InputError: one is not there.
    """
    found = {}
    for name in names:
        places = [each for each in sorted(folder.glob(f"{name}*")) if each.is_dir()]
        places = [each for each in places if each.name.partition("@")[0] == name]
        if not places:
            raise InputError(
                f"there is no folder {name} or {name}@VERSION",
                where=str(folder),
                hint=f"put the sources there: {', '.join(names)}",
            )
        found[name] = places[-1].resolve()
    return found, tuple(path.name.replace("@", " ") for path in found.values())


def build(
    sources: Sources,
    file: TfliteFile,
    network: Path,
    soc: Soc,
    folder: Path,
    kit: Kit,
    *,
    defined: Sequence[str] = (),
    objects: Path | None = None,
    operators: Sequence[str] = (),
    emulated: bool = False,
) -> Path:
    """Build the firmware of a network for a Cortex-M core; return it (ELF).

    Args:
        sources: with ``cmsis_nn``, its kernels are used, else TFLite Micro's reference kernels.
        file, network: the network, and its path.
        soc: the core with memories.
        folder: for the firmware.
        kit: the compiler and the level of optimization of the kernels.
        defined: macros of CMSIS-NN.
        objects: folder of object files that are kept; ``folder`` if not given.
        operators: those of the network, if it is not ``file`` but made of it.
        emulated: as for `htvm.firmware.arm.build_firmware`.

    Raises:
        KeyError: an operator is not in `OPERATORS`.
        ToolchainError: the compiler failed.
    """
    names = sorted(operators or {operator.kind for operator in file.operators})
    slow, fast = compiled_sources(sources, names)
    folder.mkdir(parents=True, exist_ok=True)
    header = _header(names, file)
    (folder / "network.h").write_text(header)
    (folder / "network.S").write_text(_assembly(network))
    nn = ["-DCMSIS_NN"] if sources.cmsis_nn is not None else []
    kept = folder if objects is None else objects
    core = [*core_flags(soc, kit), *_DEFINED]
    compiler, level = kit.compiler, kit.compiler.kernel_flags[-1]
    macros = [f"-D{name}" for name in defined]
    together = folder / "interpreter.cc"
    together.write_text("".join(f'#include "{path}"\n' for path in slow))
    jobs = [(_MAIN, ["-Os", *nn]), (together, ["-Os"]), (_LIBC, ["-Os"])]
    for path in fast:
        # Wrappers hardly compute, and without CMSIS-NN they are the kernels.
        follows = path.suffix == ".c" or not nn
        jobs.append((path, [level, *nn, *macros] if follows else ["-O2", *nn]))

    def compiled(job: tuple[Path, list[str]]) -> Path:
        path, more = job
        cxx = path.suffix == ".cc"
        flags = [*core, *more, *((*_CXX, *kit.cxx_flags) if cxx else ("-std=c11",))]
        own = header if path == _MAIN else ""
        key = repr((compiler.name, flags, sources.versions, path.read_bytes())) + own
        out = kept / f"{path.stem}-{hashlib.sha256(key.encode()).hexdigest()[:20]}.o"
        if out.is_file():
            return out
        includes = [*_includes(sources, cxx, kit), *([folder] if own else [])]
        tail = ["-c", "-Wl,--no-gc-sections"] if not compiler.is_gcc else ["-c"]
        return compiler.compile_cross([path], out, includes, flags, None, tail)

    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(compiled, jobs))
    parts = [*made, folder / "network.S", *kit.libraries]
    arm.build_firmware(parts, soc, folder, compiler, emulated=emulated)
    return folder / "firmware.elf"


def compiled_sources(sources: Sources, operators: Sequence[str]) -> tuple[list[Path], list[Path]]:
    """Return the sources of the interpreter, and those of the kernels of some operators.

    Raises:
        KeyError: an operator is not in `OPERATORS`.
    """
    kernels = [OPERATORS[name][0] for name in operators]
    return [*_interpreter(sources.tflm)], [*_kernels(sources, kernels)]


def core_flags(soc: Soc, kit: Kit) -> list[str]:
    """Return the flags of our firmware without those that others' own builds set otherwise."""
    compiler = kit.compiler
    ours = arm.arm_flags(arm.core_of(soc), gcc=compiler.is_gcc, cpu=compiler.cpu)
    kept = [flag for flag in ours if flag not in ("-std=c11", "-O2", "-ffreestanding")]
    # Without it, memcpy of four bytes, which CMSIS-NN's inner loops have, would be a call.
    return [*kept, "-fhosted"]


def _includes(sources: Sources, cxx: bool, kit: Kit) -> list[Path]:
    found = []
    if cxx:
        found += [sources.tflm, sources.flatbuffers / "include", sources.gemmlowp, sources.ruy]
    if sources.cmsis_nn is not None and sources.cmsis is not None:
        found += [sources.cmsis_nn, sources.cmsis_nn / "Include"]
        found += [sources.cmsis / "CMSIS" / "Core" / "Include"]
    return [*found, *(kit.cxx if cxx else ()), *kit.c]


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
        yield from cmsis_nn_sources(sources.cmsis_nn)


def cmsis_nn_sources(folder: Path) -> Iterator[Path]:
    """Yield the sources of CMSIS-NN's kernels that networks of 8 bits may call."""
    for path in sorted((folder / "Source").rglob("*.c")):
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
