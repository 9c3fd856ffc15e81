"""Networks as packages of build systems: Zephyr, ESP-IDF, Arduino, PlatformIO, CMSIS, CMake.

A package has the model's C, the headers that it needs, a stored sample with its outputs, and an
example that compares them.  Everything here is text in memory, keyed by its path inside the
package; the same build gives the same bytes.  :mod:`htvm.firmware.mlf` makes TVM's Model Library
Format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from byoc_dory.errors import TargetError
from byoc_dory.soc.board import Board, PlatformIO, board_called
from htvm.aot.entry import model_sources, origin_lines, render, template_fields
from htvm.firmware.arm import linker_script
from htvm.firmware.host import driver_sources
from htvm.firmware.isa import march
from htvm.firmware.manifest import FILE, Device, PackageManifest, manifest_text
from htvm.firmware.paths import NO_DEVICES, network_path, runtime_c, simd_folders
from htvm.firmware.project import Golden, golden_files
from htvm.version import __version__

if TYPE_CHECKING:
    from byoc_dory.soc.base import Soc
    from htvm.aot.program import Program

FLAGS = ("-O2", "-fomit-frame-pointer")
"""Without optimization the loops are plain C; a frame pointer takes a register from all others."""

MLF = "mlf"
"""Kind of the one package that is a file: TVM's Model Library Format."""

_VERSION = "1.0.0"

_ESP_IDF_CHIPS, _PICO_CHIPS = "ESP32", "RP2"
"""How the names of the chips of ESP-IDF, and of the Pico's SDK, begin."""

_NO_NAMES = PlatformIO(platform="", board="", framework="arduino")


def refuse_kind(kind: str, soc: Soc) -> None:
    """Check that there are packages of a kind, for a SoC.

    Raises:
        TargetError: the kind is unknown (the message lists the known ones), the SoC has devices,
            whose drivers need a port and not a package, the kind cannot name a vendor's driver, or
            the build system does not have its core or board.
    """
    known_kinds = (*KINDS, MLF)
    if kind not in known_kinds:
        raise TargetError(
            f"unknown kind of package {kind!r}",
            where="option 'as'",
            hint=f"known kinds: {', '.join(known_kinds)}",
        )
    if soc.driver != NO_DEVICES:
        _refuse_devices(kind, soc)
    board, where = board_of(soc), f"package '{kind}'"
    starters = _kinds_of_two_cores(soc)
    if soc.cluster is not None and kind not in starters:
        raise TargetError(
            f"only {' or '.join(KINDS[name].title for name in starters)} starts the second core, "
            f"which {soc.title} has",
            where=where,
            hint=f"choose {' or '.join(starters)}, or build for a target with one core",
        )
    if kind == "cmsis" and soc.host.arm is None:
        raise TargetError(
            f"a CMSIS pack is for Cortex-M cores, and {soc.host.name} is none",
            where=where,
            hint="build for a target such as cortex_m4, or choose cmake",
        )
    if kind == "esp-idf" and not _has_esp_idf(soc):
        other = soc.host.name if board is None else f"{board.title} has a {board.chip}"
        raise TargetError(
            f"ESP-IDF is for chips of Espressif: {other}",
            where=where,
            hint="build for a board such as esp32, or choose zephyr, platformio or cmake",
        )
    if kind == "platformio" and board is not None and board.platformio is None:
        raise TargetError(
            f"nobody has said what PlatformIO calls the board {board.name}",
            where=where,
            hint="choose cmake or zephyr, or name the core with --target and write platformio.ini",
        )


def _refuse_devices(kind: str, soc: Soc) -> None:
    """Check that all devices of a SoC have a vendor's driver, which packages of a kind name.

    Raises:
        TargetError: one has a driver of the project's own, or the kind names none.
    """
    drivers = [accelerator.vendor_driver for accelerator in soc.accelerators]
    if not drivers or None in drivers or soc.dma is not None or soc.cluster is not None:
        project = ", or export the whole project without 'as'"
        raise TargetError(
            f"a package has no drivers, and {soc.title} has devices",
            where=f"package '{kind}'",
            hint="build for a target such as cortex_m4"
            + (project if soc.host.platform == "rv32" else ""),
        )
    able = sorted(name for name, entry in KINDS.items() if entry.vendor_drivers)
    if kind not in able:
        what = "TVM's Model Library Format" if kind == MLF else KINDS[kind].title
        needed = " and ".join(dict.fromkeys(driver.title for driver in drivers if driver))
        raise TargetError(
            f"{what} cannot name what else to add, and {soc.title} needs {needed}",
            where=f"package '{kind}'",
            hint=f"choose {', '.join(able[:-1])} or {able[-1]}",
        )


def _has_esp_idf(soc: Soc) -> bool:
    """Whether ESP-IDF may have a SoC's chip; without a board, only its core is known."""
    return soc.host.arm is None and _may_be(board_of(soc), _ESP_IDF_CHIPS)


def _may_be(board: Board | None, chips: str) -> bool:
    """Whether the name of a board's chip begins so; without a board, it may."""
    return board is None or board.chip.startswith(chips)


def _kinds_of_two_cores(soc: Soc) -> list[str]:
    """Return the kinds that start a second core: by ESP-IDF's FreeRTOS, or by the Pico's SDK.

    The latter's library is also where users add how other boards do.
    """
    if not _has_esp_idf(soc):
        return ["cmake"]
    return ["cmake", "esp-idf"] if board_of(soc) is None else ["esp-idf"]


def kind_written(kind: str | None, soc: Soc) -> str | None:
    """Return the kind of package that an export writes; ``None`` for a project.

    Args:
        kind: the kind asked for; by default, a library where a project has no simulated SoC.
        soc: the SoC of the build.

    Raises:
        TargetError: as `refuse_kind`.
    """
    if kind is None and soc.host.platform != "rv32":
        kind = "cmake"
    if kind is not None:
        refuse_kind(kind, soc)
    return kind


def package_files(kind: str, program: Program, soc: Soc, golden: Golden) -> dict[str, str]:
    """Return a package: path inside the package -> text.

    Args:
        kind: one of `KINDS`.
        program: the program to export.
        soc: the SoC it was built for; its devices, if it has any, have drivers of their vendor.
        golden: inputs of one inference and the expected outputs.

    Raises:
        TargetError: as `refuse_kind`.
        InputError: the golden does not have the model's shapes and dtypes.
    """
    refuse_kind(kind, soc)
    return _Package(kind, program, soc, golden).files()


def library_files(program: Program, soc: Soc | None = None) -> dict[str, str]:
    """Return the C files of a model, and all headers that they need, by name.

    Args:
        program: the model.
        soc: the SoC it was built for; ``None`` if its kernels use no core's instructions.
    """
    files = dict(model_sources(program))
    if soc is not None and soc.driver == NO_DEVICES:  # what starts a second core
        files |= {path.name: path.read_text("utf-8") for path in driver_sources(soc)}
    # Where a header becomes part of a C file, compilers warn of functions that it does not call.
    asks = any("htvm_hal_timed_out" in text for text in files.values())
    cluster = None if soc is None else soc.cluster
    files["htvm_hal.h"] = render("package/htvm_hal.h.jinja", timed_out=asks, cluster=cluster)
    folders = (runtime_c() / "include", *(() if soc is None else simd_folders(soc)))
    headers = [path for folder in folders for path in folder.glob("*.h")]
    known = {path.name: path.read_text("utf-8") for path in headers if path.name not in files}
    return files | {name: known[name] for name in _headers_of(files, known)}


def _headers_of(files: Mapping[str, str], known_headers: Mapping[str, str]) -> list[str]:
    """Return the known headers that files include, directly or not."""
    headers: list[str] = []
    to_visit = list(files.values())
    for text in to_visit:
        new = [name for name in known_headers if f'"{name}"' in text and name not in headers]
        headers += new
        to_visit += [known_headers[name] for name in new]
    return headers


@dataclass(frozen=True)
class _Kind:
    """A kind of package.

    Attributes:
        title: of what it is, for its README.
        sample: folder of the stored sample.
        templates: path inside the package -> template.
        flat: whether all of the library's files are in one folder.
        vendor_drivers: whether it can name drivers that users add.
    """

    title: str
    sample: str
    templates: Mapping[str, str]
    flat: bool = False
    vendor_drivers: bool = False


KINDS: Mapping[str, _Kind] = {
    "zephyr": _Kind(
        "a Zephyr module",
        "samples/check/src",
        {
            "zephyr/module.yml": "zephyr_module.yml",
            "zephyr/CMakeLists.txt": "zephyr_cmake.txt",
            "zephyr/Kconfig": "zephyr_kconfig",
            "samples/check/CMakeLists.txt": "zephyr_sample_cmake.txt",
            "samples/check/prj.conf": "zephyr_prj.conf",
            "samples/check/sample.yaml": "zephyr_sample.yaml",
            "samples/check/src/main.c": "check.c",
        },
        vendor_drivers=True,
    ),
    "esp-idf": _Kind(
        "an ESP-IDF component",
        "examples/check/main",
        {
            "CMakeLists.txt": "idf_cmake.txt",
            "idf_component.yml": "idf_component.yml",
            "examples/check/CMakeLists.txt": "idf_example_cmake.txt",
            "examples/check/main/CMakeLists.txt": "idf_main_cmake.txt",
            "examples/check/main/main.c": "check.c",
        },
    ),
    "arduino": _Kind(
        "an Arduino library",
        "examples/Check",
        {
            "library.properties": "arduino.properties",
            "examples/Check/Check.ino": "arduino_check.ino",
        },
        flat=True,  # sketches find headers in src only
    ),
    "platformio": _Kind(
        "a PlatformIO library",
        "examples/check/src",
        {"library.json": "platformio.json", "examples/check/platformio.ini": "platformio.ini"},
    ),
    "cmsis": _Kind(
        "a CMSIS pack",
        "examples/check",
        {"examples/check/main.c": "check.c"},
        vendor_drivers=True,
    ),
    "cmake": _Kind(
        "a CMake library",
        "example",
        {"example/check.c": "check.c", "CMakeLists.txt": "cmake.txt"},
        vendor_drivers=True,
    ),
}
"""Each kind of package that is a folder, by its name."""


class _Package:
    """The files of a package."""

    def __init__(self, kind: str, program: Program, soc: Soc, golden: Golden) -> None:
        self.kind, self.program, self.soc = kind, program, soc
        self.board, self.pio = board_of(soc), _pio_names(board_of(soc))
        self.golden, self.library = golden_files(program, golden), library_files(program, soc)
        name, flat = program.name, KINDS[kind].flat
        self.placed = {
            f"src/{file}" if flat else network_path(name, file): text
            for file, text in self.library.items()
        }
        names = {step.accelerator for step in program.steps}
        self.devices = [device for device in soc.accelerators if device.name in names]
        self.arduino = kind == "arduino" or self.pio.framework == "arduino"
        # A program for the board alone, which needs start-up code and a linker script.
        self.bare = kind == "cmake" and self.board is not None and soc.host.arm is not None

    def files(self) -> dict[str, str]:
        """Return path inside the package -> text."""
        kind, fields = KINDS[self.kind], self._fields()
        templates = {"README.md": "README.md", **kind.templates, **self._further()}
        devices = tuple(Device(one.name, one.title, one.peak_macs) for one in self.devices)
        facts = PackageManifest.of(self.program, self.kind, self.soc.host.name, devices)
        files = {
            **self.placed,
            **{f"{kind.sample}/{name}": text for name, text in self.golden.items()},
            **{
                path: render(f"package/{template}.jinja", **fields)
                for path, template in templates.items()
            },
            FILE: manifest_text(facts),
        }
        if self.bare:
            files["example/link.ld"] = linker_script(self.soc)
        return dict(sorted(files.items()))

    def _further(self) -> dict[str, str]:
        """Return the files that depend on the board, or are named after the network."""
        if self.kind == "cmsis":
            return {f"HTVM.{self.program.name}.pdsc": "cmsis.pdsc"}
        if self.bare:
            return {"toolchain.cmake": "toolchain.cmake", "example/startup.c": "startup.c"}
        if self.kind == "platformio" and self.arduino:
            return {"examples/check/src/main.cpp": "arduino_check.ino"}
        if self.kind == "platformio":
            return {
                "examples/check/src/main.c": "check.c",
                "examples/check/zephyr/prj.conf": "zephyr_prj.conf",
            }
        return {}

    def _fields(self) -> dict[str, Any]:
        """Return the fields of the templates."""
        program, host = self.program, self.soc.host
        origin = origin_lines(program.origin)
        drivers = [device.vendor_driver for device in self.devices]
        core = "" if host.arm is None else "-".join(p.capitalize() for p in host.arm.cpu.split("-"))
        flags = () if self.board is None or host.arm is None else gcc_flags(self.soc, self.board)
        idf = self.kind == "esp-idf"
        return {
            **template_fields(program),
            "kind": self.kind,
            "title": KINDS[self.kind].title,
            "version": __version__,
            "package_version": _VERSION,
            "network": program.name if program.origin is None else program.origin.source,
            "sources": sorted(name for name in self.placed if name.endswith(".c")),
            "flags": " ".join(FLAGS),
            "flag_list": ", ".join(json.dumps(flag) for flag in FLAGS),
            "flash": program.constant_bytes,
            "arena": program.plan.peak,
            "stack": self.soc.host.stack,
            "cluster": self.soc.cluster,
            "pico": _may_be(self.board, _PICO_CHIPS),
            "core": " and ".join((host.name, *(device.title for device in self.devices))),
            "drivers": list(dict.fromkeys(drivers)),
            "vectors": "" if host.vectors is None else march(host.isa),
            "loops": any("__asm__" in text for text in self.library.values()),
            "board": self.board,
            "console": _console(self.board),
            "gcc_flags": " ".join(flags),
            "arm": host.arm,
            "bare": self.bare,
            "dcore": core.replace("M0plus", "M0+"),
            "pio": self.pio,
            # The example: its function, and whether a framework of C++ has another.
            "head": "void app_main(void);\n\nvoid app_main(void)" if idf else "int main(void)",
            "returns": not idf,
            "main": "main.cpp" if self.arduino else "main.c",
            "sketch": self.kind == "arduino",
            "origin_line": f" {' '.join(origin.replace('*', '').split())}",
            "module": self.kind == "zephyr",
        }


# ------------------------------------------------------------------------------ boards


def board_of(soc: Soc) -> Board | None:
    """Return the board of a microcontroller; ``None`` if it was built for a core alone."""
    declared = {parameter.name: parameter.default for parameter in soc.parameters}
    name = soc.settings.get("board")
    return None if name is None or name == declared["board"] else board_called(str(name))


def _pio_names(board: Board | None) -> PlatformIO:
    """Return PlatformIO's names of a board; empty ones, for the user to fill in, of no board."""
    return _NO_NAMES if board is None or board.platformio is None else board.platformio


def _console(board: Board | None) -> str:
    """Return where text that a board prints arrives, in brackets behind a space; or nothing."""
    return f" ({board.console})" if board is not None and board.console else ""


def gcc_flags(soc: Soc, board: Board) -> tuple[str, ...]:
    """Return GCC's flags for a board with a Cortex-M core, and its unit for floating point.

    Everything that is linked together must be compiled with the same ones.
    """
    core = soc.host.arm
    assert core is not None, soc.host.name
    flags = ("-mthumb", f"-mcpu={core.cpu}")
    if core.extension == "mve":  # whose vectors are in the unit's registers
        return (*flags, "-mfloat-abi=hard")
    return (*flags, f"-mfpu={board.fpu}", "-mfloat-abi=hard") if board.fpu else flags
