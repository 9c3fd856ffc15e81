"""Firmware of ExecuTorch: which of its sources are compiled, and how.

Core, start-up code and linker script are those of our own firmware, and so is the compiler.  As
where ExecuTorch is built for size, its runtime is compiled with ``-Os``, without exceptions, texts
and checks beyond the least; its kernels and CMSIS-NN with the level that is asked for.  Only the
operators of the program are registered, as by its selective build.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.tflm.compilers import Kit
from benchmarks.tflm.firmware import cmsis_nn_sources, core_flags, sources_below
from byoc_dory.errors import InputError
from byoc_dory.soc.base import Soc
from htvm.firmware import arm

__all__ = ["LOADED_BYTES", "TEMPORARY_BYTES", "Exported", "Sources", "build", "headers"]

LOADED_BYTES, TEMPORARY_BYTES = 48 * 1024, 4 * 1024
"""Memory that the runtime gets for a loaded program, and for what it forgets behind a step."""

_HERE = Path(__file__).parent
_LIBC = _HERE.parent / "tflm" / "libc.c"
_NAMES = ("executorch", "cmsis_nn", "cmsis", "flatbuffers")
_RUNTIME = (
    "runtime/backend/interface.cpp", "runtime/core/*.cpp", "runtime/core/portable_type/*.cpp",
    "runtime/core/exec_aten/util/tensor_util_portable.cpp",
    "runtime/core/exec_aten/util/tensor_shape_to_c_string.cpp",
    "runtime/executor/method.cpp", "runtime/executor/method_meta.cpp",
    "runtime/executor/program.cpp", "runtime/executor/pte_data_map.cpp",
    "runtime/executor/tensor_parser_exec_aten.cpp", "runtime/executor/tensor_parser_portable.cpp",
    "runtime/kernel/operator_registry.cpp", "runtime/platform/*.cpp",
    "runtime/platform/default/minimal.cpp", "schema/extended_header.cpp",
    "kernels/portable/cpu/util/broadcast_util.cpp",
    "kernels/portable/cpu/util/broadcast_indexes_range.cpp",
    "kernels/portable/cpu/util/kernel_ops_util.cpp",
    "kernels/portable/cpu/util/copy_ops_util.cpp",
)  # fmt: skip
_CXX = ("-std=c++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics")
_DEFINED = (
    "-w", "-DNDEBUG", "-DET_LOG_ENABLED=0", "-DET_ENABLE_PROGRAM_VERIFICATION=0",
    "-DET_ENABLE_ENUM_STRINGS=0", "-DC10_USING_CUSTOM_GENERATED_MACROS",
    "-DFLATBUFFERS_LOCALE_INDEPENDENT=0", "-DARM_NN_ENABLE_F16=0", "-DARM_NN_ENABLE_F32=0",
)  # fmt: skip
_OF_THE_PROGRAM = ("main.cc", "operator_registry.cpp")
_CLONE = """namespace torch::executor::native {
Tensor &_clone_dim_order_out(KernelRuntimeContext &, const Tensor &, bool,
                             executorch::aten::OptionalArrayRef<int64_t>, Tensor &);
}
"""


@dataclass(frozen=True)
class Sources:
    """Folders of the sources, as their projects publish them.

    Attributes:
        executorch, cmsis_nn, cmsis, flatbuffers: the runtime, the kernels for Arm cores, the
            headers of cores, and the headers that read a program.
        versions: what is known of them, as text.
    """

    executorch: Path
    cmsis_nn: Path
    cmsis: Path
    flatbuffers: Path
    versions: tuple[str, ...]

    @classmethod
    def below(cls, folder: Path) -> Sources:
        """Return the sources in a folder: one each, such as ``cmsis_nn@dbf45db``.

        Raises:
            InputError: one is not there.
        """
        found, versions = sources_below(folder, _NAMES)
        return cls(**found, versions=versions)


@dataclass(frozen=True)
class Exported:
    """A program for ExecuTorch's runtime (`benchmarks.executorch.export`).

    Attributes:
        path: the program.
        operators: names of its operators with their overloads.
        planned: bytes of memory that it plans for its tensors.
        input, output: bytes.
    """

    path: Path
    operators: tuple[str, ...]
    planned: int
    input: int
    output: int

    @classmethod
    def read(cls, folder: Path, name: str, given: int, made: int) -> Exported:
        """Return a network's program: its folder and name, bytes of the input and the output."""
        known = json.loads((folder / f"{name}.json").read_text())
        path = folder / f"{name}.pte"
        return cls(path, tuple(known["operators"]), known["planned"], given, made)


def headers(sources: Sources, flatc: str, root: Path) -> None:
    """Lay out the runtime's headers below ``root`` as its sources include them.

    Args:
        sources: the sources.
        flatc: the compiler of flatbuffers, of the version of their headers.
        root: a new folder.

    Raises:
        CalledProcessError: ``flatc`` failed.
    """
    schema = root / "executorch" / "schema"
    schema.mkdir(parents=True)
    for each in ("runtime", "kernels", "extension", "backends"):
        (root / "executorch" / each).symlink_to(sources.executorch / each)
    theirs = sources.executorch / "schema"
    (schema / "extended_header.h").symlink_to(theirs / "extended_header.h")
    subprocess.run(
        [flatc, "--cpp", "--cpp-std", "c++11", "--scoped-enums", "-o", schema,
         theirs / "program.fbs", theirs / "scalar_type.fbs"],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip


def build(
    sources: Sources, root: Path, exported: Exported, soc: Soc, folder: Path, kit: Kit
) -> Path:
    """Build the firmware of a program for a Cortex-M core; return it (ELF).

    Args:
        sources: the sources.
        root: their headers (`headers`); object files that programs share are kept there.
        exported: the program.
        soc: the core with memories.
        folder: for the firmware.
        kit: the compiler and the level of optimization of the kernels.

    Raises:
        InputError: an operator has no source.
        ToolchainError: the compiler failed.
    """
    folder.mkdir(parents=True)
    operators = {name: _source(sources, name) for name in exported.operators}
    (folder / "network.h").write_text(_header(exported, operators))
    (folder / "network.S").write_text(_assembly(exported.path))

    core = [*core_flags(soc, kit), *_DEFINED]
    level = kit.compiler.kernel_flags[-1]
    includes = [
        root, folder, sources.executorch / "runtime" / "core" / "portable_type" / "c10",
        sources.executorch / "backends" / "cortex_m" / "ops", sources.flatbuffers / "include",
        sources.cmsis_nn, sources.cmsis_nn / "Include",
        sources.cmsis / "CMSIS" / "Core" / "Include", *kit.cxx, *kit.c,
    ]  # fmt: skip
    runtime = [path for each in _RUNTIME for path in sorted(sources.executorch.glob(each))]
    jobs = [(path, "-Os") for path in (_HERE / "main.cc", _LIBC, *runtime)]
    jobs += [(path, level) for path in dict.fromkeys(operators.values())]
    jobs += [(path, level) for path in cmsis_nn_sources(sources.cmsis_nn)]
    objects = []
    for path, level_of in jobs:
        flags = [*core, level_of]
        own = path.name in _OF_THE_PROGRAM
        flags += [f"-DMAX_KERNEL_NUM={len(operators)}"] if own else []
        flags += ["-std=c11"] if path.suffix == ".c" else [*_CXX, *kit.cxx_flags]
        out = (folder if own else root) / f"{path.parent.name}-{path.stem}.o"
        if not out.is_file():
            kit.compiler.compile_cross([path], out, includes, flags, None, ["-c"])
        objects.append(out)
    parts = [*objects, folder / "network.S"]
    arm.build_firmware(parts, soc, folder, kit.compiler, emulated=soc.host.platform == "arm")
    return folder / "firmware.elf"


def _source(sources: Sources, operator: str) -> Path:
    """Return the file that defines an operator's function."""
    space, function = _function(operator)
    place = "backends/cortex_m/ops" if space == "cortex_m" else "kernels/portable/cpu"
    for path in sorted((sources.executorch / place).glob("op_*.cpp")):
        if re.search(rf"^Tensor& {function}\(", path.read_text(), re.M):
            return path
    raise InputError(f"no source defines the operator {operator}", where=str(sources.executorch))


def _function(operator: str) -> tuple[str, str]:
    space, name, overload = re.split(r"::|\.", operator)
    return space, f"{name}_{overload}"


def _header(exported: Exported, operators: dict[str, Path]) -> str:
    """Return sizes, declarations of the operators' functions, and their list."""
    declared, listed = [], []
    for operator, path in operators.items():
        space, function = _function(operator)
        home = "cortex_m::native" if space == "cortex_m" else "torch::executor::native"
        if space == "cortex_m":
            found = re.search(rf"^Tensor& {function}\(.*?\)", path.read_text(), re.M | re.S)
            assert found is not None
            declared.append(f"namespace {home} {{\n{found[0]};\n}}\n")
        else:
            declared.append(_CLONE)
        listed.append(
            f'executorch::extension::make_boxed_kernel("{operator}", '
            f"EXECUTORCH_FN({home}::{function}, name_of_{function}))"
        )
        declared.append(f'static constexpr const char name_of_{function}[] = "{operator}";\n')
    return (
        '#include "cortex_m_ops_common.h"\n'
        f"#define PLANNED_BYTES {exported.planned}\n#define INPUT_BYTES {exported.input}\n"
        f"#define OUTPUT_BYTES {exported.output}\n#define LOADED_BYTES {LOADED_BYTES}\n"
        f"#define TEMPORARY_BYTES {TEMPORARY_BYTES}\n"
        f"{''.join(declared)}#define KERNELS {', '.join(listed)}\n"
    )


def _assembly(network: Path) -> str:
    return (
        '.section .rodata.network, "a"\n.balign 16\n.global network\nnetwork:\n'
        f'.incbin "{network.resolve()}"\n.global network_end\nnetwork_end:\n'
    )
