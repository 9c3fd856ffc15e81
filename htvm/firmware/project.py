"""The files of a C project, compiled for a run and written by an export.

Everything here is text in memory, keyed by its path inside the project; :mod:`htvm.firmware.export`
writes it.  The same program, SoC and golden give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from byoc_dory.errors import InputError
from byoc_dory.plain import markdown
from byoc_dory.soc.base import Soc
from byoc_dory.soc.header import render as render_soc_header
from htvm.aot.entry import (
    model_sources,
    place,
    render,
    template_fields,
)
from htvm.aot.literals import c_array
from htvm.aot.program import Program
from htvm.firmware import rv32
from htvm.firmware.host import driver_sources
from htvm.firmware.host import model_sources as device_sources
from htvm.firmware.isa import compiled_isa, kernel_flags, march, rv32_flags
from htvm.firmware.machine import linker_script
from htvm.firmware.paths import network_path, runtime_c, simd_folders, soc_folder
from htvm.firmware.sizes import tensor_bytes
from htvm.firmware.socs import machine_of
from htvm.model import TensorInfo

Arrays: TypeAlias = Sequence[npt.NDArray[np.generic]]
Golden: TypeAlias = tuple[Arrays, Arrays]


class LayerFacts(Protocol):
    """What a README says of a step: its tile, their number, and bytes of L1, where it has any."""

    @property
    def tile(self) -> str: ...
    @property
    def tiles(self) -> int | None: ...
    @property
    def l1_bytes(self) -> int | None: ...


class BuildFacts(Protocol):
    """What a README says of a build: a report's fields ``summary``, ``l1`` and, of steps, these."""

    @property
    def layers(self) -> Sequence[LayerFacts]: ...


_CODE = (".c", ".h", ".S")
_LINKER_SCRIPT = "runtime/platform/rv32/link.ld"


def check_arrays(what: str, infos: Sequence[TensorInfo], arrays: Arrays) -> None:
    """Check arrays against the declared tensors (``what``: "input" or "output").

    Raises:
        InputError: the number of arrays, a shape or a dtype differs.
    """
    if len(infos) != len(arrays):
        raise InputError(f"{len(arrays)} {what}s given, the model has {len(infos)}")
    for info, array in zip(infos, arrays, strict=True):
        shape, dtype = tuple(info.shape), np.dtype(info.dtype)
        if array.shape != shape or array.dtype != dtype:
            raise InputError(
                f"{array.dtype.name}{list(array.shape)} given where {dtype.name}{list(shape)} "
                "is needed",
                where=f"{what} '{info.name}'",
            )


def project_files(
    program: Program,
    soc: Soc,
    golden: Golden,
    report: BuildFacts | None = None,
    loop: Mapping[str, str] | None = None,
) -> dict[str, str | bytes]:
    """Return the complete project: path inside the project -> text, or bytes.

    Args:
        program: the program to export.
        soc: the SoC it was built for.
        golden: inputs of one inference and the expected outputs.
        report: report of the build, whose sizes and tiles appear in the README.
        loop: C files of a language model's token loop, name to text.

    Raises:
        InputError: the golden does not have the model's shapes and dtypes.
    """
    network = {**model_sources(program), **(loop or {})}
    files: dict[str, str | bytes] = {
        network_path(program.name, file): text for file, text in network.items()
    }
    # What a device may also read from a file system instead of from constants.
    files |= {f"src/{c.file}": c.data.tobytes() for c in program.constants if c.file}
    files |= {f"example/{name}": text for name, text in _golden_files(program, golden).items()}
    own_libraries = [
        name for name in _relative(soc, simd_folders(soc)) if name not in soc.libraries
    ]
    folders = ("include", "soc/common", "platform/host", "platform/rv32", "platform/port")
    carried = {name: runtime_c() / name for name in (*folders, *soc.libraries, *own_libraries)}
    carried[f"soc/{soc.driver}"] = soc_folder(soc)
    for name, folder in carried.items():
        found = folder.glob("*") if name in soc.libraries else folder.rglob("*")
        for path in sorted(found):
            if path.suffix in _CODE and path.is_file():
                place = placed_name(f"{name}/{path.relative_to(folder).as_posix()}")
                files[place] = path.read_text("utf-8")
    script = linker_script(machine_of(soc), soc.host.stack)
    files[_LINKER_SCRIPT] = script
    files["runtime/include/htvm_soc.h"] = render_soc_header(soc)
    golden_file = f"example/{program.name}_golden.c"
    sources = sorted(
        name
        for name in files
        if name == golden_file or (name.startswith("src/") and name.endswith(".c"))
    )
    fields = {
        **template_fields(program),
        "stack_bytes": soc.host.stack,
        "loop": bool(loop),
        "host_title": soc.host.name,
        **_sources(program, soc, sources, golden_file, own_libraries),
        **_flags(soc),
        **_facts(program, soc, report),
    }
    for name in ("Makefile", "CMakeLists.txt", "README.md"):
        files[name] = render(f"{name}.jinja", **fields)
    return files


def _relative(soc: Soc, paths: Iterable[Path]) -> list[str]:
    """Return paths of the runtime relative to its folder."""
    root, own = runtime_c(), soc_folder(soc)
    return [
        f"soc/{soc.driver}/{path.relative_to(own).as_posix()}"
        if path.is_relative_to(own)
        else path.relative_to(root).as_posix()
        for path in paths
    ]


def _golden_files(program: Program, golden: Golden) -> dict[str, str]:
    known = template_fields(program)
    return {
        **golden_files(program, golden),
        "main_host.c": render("main_host.c.jinja", **known),
        "main_rv32.c": render("main_rv32.c.jinja", **known),
        "main_bare.c": render("main_bare.c.jinja", **known),
    }


def golden_files(program: Program, golden: Golden) -> dict[str, str]:
    """Return the C of a stored sample and its expected outputs: file name -> text.

    Raises:
        InputError: the golden does not have the model's shapes and dtypes.
    """
    inputs, outputs = golden
    check_arrays("input", program.inputs, inputs)
    check_arrays("output", program.outputs, outputs)
    known = template_fields(program)
    for tensors, arrays in ((known["inputs"], inputs), (known["outputs"], outputs)):
        for tensor, array in zip(tensors, arrays, strict=True):
            tensor["text"] = c_array(array)
    name = program.name
    return {
        f"{name}_golden.h": render("golden.h.jinja", **known),
        f"{name}_golden.c": render("golden.c.jinja", **known),
    }


def placed_name(name: str) -> str:
    """Return where a project has a file of the runtime: firmware apart from the simulator."""
    simulated = (
        name.startswith(("platform/host/", "soc/common/", "include/htvm_soc_"))
        or "/model/" in name
        or name.endswith("_model.c")
    )
    return f"{'simulator' if simulated else 'runtime'}/{name}"


def _sources(
    program: Program, soc: Soc, sources: Sequence[str], golden: str, own_libraries: Sequence[str]
) -> dict[str, Any]:
    """Return the C files of each part, their include folders, and flags of their own.

    Args:
        program, soc: as for `project_files`.
        sources: the model's C files, and that with the golden.
        golden: the latter.
        own_libraries: include folders of the model's own code besides HAL and driver.
    """

    def files(paths: Iterable[Path]) -> list[str]:
        return [placed_name(name) for name in _relative(soc, paths)]

    kernels = [name for name in sources if name == f"src/{program.name}_cpu.c"]
    driver, rv32_sources = files(driver_sources(soc)), files(rv32.platform_sources())
    drivers = [f"soc/{soc.driver}", *soc.libraries] if driver else []
    includes = [f"runtime/{name}" for name in (*drivers, *own_libraries)]
    return {
        "model_sources": [name for name in sources if name not in kernels],
        "kernel_sources": kernels,
        "kernel_flags": " ".join(kernel_flags(soc.host) if kernels else ()),
        "library_sources": [*(name for name in sources if name != golden), *driver],
        "golden": golden,
        "driver_sources": driver,
        "device_sources": files(device_sources(soc)),
        "host_sources": files(sorted((runtime_c() / "platform" / "host").glob("*.c"))),
        "rv32_sources": rv32_sources,
        # A board ends its runs in its own way.
        "bare_sources": [name for name in rv32_sources if not name.endswith("/platform.c")],
        "includes": ["include", "runtime/include", *includes],
        "driver_include": "".join(f" -I{folder}" for folder in includes),
        # The driver's and HAL's own folders are among those of both platforms.
        "rv32_includes": [
            f"runtime/{name}"
            for name in _relative(soc, rv32.include_folders())
            if name != "include"
        ],
        "linker_script": _LINKER_SCRIPT,
    }


def _flags(soc: Soc) -> dict[str, str]:
    """Return the compilers of the simulated core, and their flags."""
    isa = compiled_isa(soc.host)
    flags = rv32_flags(isa)
    position = flags.index("-std=c11")
    # The Makefile adds these itself, or leaves them to the user.
    own_flags = {"-std=c11", "-O2", "-Wl,--gc-sections"}
    return {
        "march": march(isa),
        "rv32_compilers": "riscv32-unknown-elf-gcc riscv64-unknown-elf-gcc riscv-none-elf-gcc",
        "zig_target": " ".join(flags[:position]),
        "rv32_flags": " ".join(flag for flag in flags[position:] if flag not in own_flags),
    }


def _facts(program: Program, soc: Soc, report: BuildFacts | None) -> dict[str, Any]:
    """Return what the README says of the build."""
    rows = [None] * len(program.steps) if report is None else report.layers
    return {
        "soc_title": soc.title,
        "method": program.plan.method,
        "io_bytes": tensor_bytes((*program.l2_inputs, *program.outputs)),
        "report": report,
        "table": [
            {
                "layer": markdown(step.layer),
                "where": place(step),
                "comment": markdown(step.comment),
                "macs": step.macs,
                "tile": "" if row is None else row.tile,
                "tiles": "" if row is None or row.tiles is None else row.tiles,
                "l1": "" if row is None or row.l1_bytes is None else row.l1_bytes,
            }
            for step, row in zip(program.steps, rows, strict=True)
        ],
    }
