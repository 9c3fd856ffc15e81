"""Networks as packages of build systems: Zephyr, ESP-IDF, Arduino, PlatformIO, CMSIS, CMake.

A package has the model's C, the headers that it needs, a stored sample with its outputs, and an
example that compares them.  Everything here is text in memory, keyed by its path inside the
package; the same build gives the same bytes.  :mod:`htvm.firmware.mlf` makes TVM's Model Library
Format.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from byoc_dory.errors import TargetError
from htvm.aot.entry import model_sources, origin_lines, render, template_fields
from htvm.firmware.arm import linker_script
from htvm.firmware.manifest import FILE, PackageManifest, manifest_text
from htvm.firmware.on_board import ESP_IDF_CHIPS, board_of, console, gcc_flags, pio_names
from htvm.firmware.paths import network_path, runtime_c, simd_folders
from htvm.firmware.project import Golden, golden_files
from htvm.version import __version__

if TYPE_CHECKING:
    from byoc_dory.soc.base import Soc
    from byoc_dory.soc.board import Board
    from htvm.aot.program import Program

__all__ = ["FLAGS", "KINDS", "MLF", "kind_written", "library_files", "package_files", "refuse_kind"]

FLAGS = ("-O2", "-fomit-frame-pointer")
"""Without optimization the loops are plain C; a frame pointer takes a register from all others."""

MLF = "mlf"
"""Kind of the one package that is a file: TVM's Model Library Format."""

_VERSION = "1.0.0"


def refuse_kind(kind: str, soc: Soc) -> None:
    """Check that there are packages of a kind, for a SoC.

    Raises:
        TargetError: the kind is unknown (the message lists the known ones), the SoC has devices,
            whose drivers need a port and not a package, or the build system does not have its core
            or board.
    """
    known = (*KINDS, MLF)
    if kind not in known:
        raise TargetError(
            f"unknown kind of package {kind!r}",
            where="option 'as'",
            hint=f"known kinds: {', '.join(known)}",
        )
    if soc.driver != "none":
        raise TargetError(
            f"a package has no drivers, and {soc.title} has devices",
            where=f"package '{kind}'",
            hint="build for a target such as cortex_m4, or export the whole project without 'as'",
        )
    board, where = board_of(soc), f"package '{kind}'"
    if kind == "cmsis" and soc.host.arm is None:
        raise TargetError(
            f"a CMSIS pack is for Cortex-M cores, and {soc.host.name} is none",
            where=where,
            hint="build for a target such as cortex_m4, or choose cmake",
        )
    if kind == "esp-idf" and (soc.host.arm is not None or not _is_espressif(board)):
        other = soc.host.name if board is None else f"{board.title} has a {board.chip}"
        raise TargetError(
            f"ESP-IDF is for chips of Espressif with RISC-V cores: {other}",
            where=where,
            hint="build for a board such as esp32-c3, or choose zephyr, platformio or cmake",
        )
    if kind == "platformio" and board is not None and board.platformio is None:
        raise TargetError(
            f"nobody has said what PlatformIO calls the board {board.name}",
            where=where,
            hint="choose cmake or zephyr, or name the core with --target and write platformio.ini",
        )


def _is_espressif(board: Board | None) -> bool:
    """Whether ESP-IDF has a board's chip; without a board, only its core is known."""
    return board is None or board.chip.startswith(ESP_IDF_CHIPS)


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
        soc: the SoC it was built for, without devices.
        golden: inputs of one inference and the expected outputs.

    Raises:
        TargetError: as `refuse_kind`.
        InputError: the golden does not have the model's shapes and dtypes.
    """
    refuse_kind(kind, soc)
    return _Package(program, soc, golden).files(kind)


def library_files(program: Program, soc: Soc) -> dict[str, str]:
    """Return the C files of a model, and all headers that they need, by name."""
    files = dict(model_sources(program))
    files["htvm_hal.h"] = render("package/htvm_hal.h.jinja")
    folders = (runtime_c() / "include", *simd_folders(soc))
    headers = [path for folder in folders for path in folder.glob("*.h")]
    known = {path.name: path.read_text("utf-8") for path in headers if path.name not in files}
    return files | {name: known[name] for name in _headers_of(files, known)}


def _headers_of(files: Mapping[str, str], known: Mapping[str, str]) -> list[str]:
    """Return the known headers that files include, directly or not."""
    found: list[str] = []
    waiting = list(files.values())
    for text in waiting:
        new = [name for name in known if f'"{name}"' in text and name not in found]
        found += new
        waiting += [known[name] for name in new]
    return found


class _Package:
    """The texts that all kinds share."""

    def __init__(self, program: Program, soc: Soc, golden: Golden) -> None:
        self.program, self.soc = program, soc
        self.name = program.name
        self.library = library_files(program, soc)
        self.golden = golden_files(program, golden)
        self.known = template_fields(program)
        self.board = board_of(soc)

    def files(self, kind: str) -> dict[str, str]:
        """Return the files of a kind."""
        facts = PackageManifest.of(self.program, kind, self.soc.host.name)
        return dict(sorted({**KINDS[kind](self), FILE: manifest_text(facts)}.items()))

    def placed(self) -> dict[str, str]:
        """Return the library's files in two folders, as projects have them."""
        return {network_path(self.name, name): text for name, text in self.library.items()}

    def sources(self) -> list[str]:
        """Return the C files as they are placed by default."""
        return sorted(name for name in self.placed() if name.endswith(".c"))

    def sample(self, folder: str) -> dict[str, str]:
        """Return the stored sample."""
        return {f"{folder}/{name}": text for name, text in self.golden.items()}

    def check(self, head: str = "int main(void)", *, returns: bool = True) -> str:
        """Return a program that compares the network with the sample."""
        return self.text("check.c", head=head, returns=returns)

    def sketch(self, *, sketch: bool) -> str:
        """Return the same program for Arduino's framework: a sketch, or plain C++."""
        line = " ".join(origin_lines(self.program.origin).replace("*", "").split())
        return self.text("arduino_check.ino", origin_line=f" {line}", sketch=sketch)

    def text(self, template: str, **fields: Any) -> str:
        """Fill in a template of this kind of files."""
        values: dict[str, Any] = {
            **self.known,
            "version": __version__,
            "package_version": _VERSION,
            "sources": self.sources(),
            "flags": " ".join(FLAGS),
            "flag_list": ", ".join(json.dumps(flag) for flag in FLAGS),
            "flash": self.program.constant_bytes,
            "arena": self.program.plan.peak,
            "stack": self.soc.host.stack,
            "core": self.soc.host.name,
        }
        return render(f"package/{template}.jinja", **{**values, **fields})

    def readme(self, title: str, use: str) -> dict[str, str]:
        """Return the page that says how to use the package."""
        source = self.program.origin.source if self.program.origin is not None else self.name
        loops = any("__asm__" in text for text in self.library.values())
        text = self.text("README.md", title=title, use=use, network=source, loops=loops)
        return {"README.md": text}


def _cmake(package: _Package) -> dict[str, str]:
    use = (
        f"`add_subdirectory` this folder and link `{package.name}`; or build it alone:\n\n"
        "    cmake -B build && cmake --build build && ctest --test-dir build"
    )
    board, files = package.board, dict[str, str]()
    if board is not None and package.soc.host.arm is not None:
        flags = " ".join(gcc_flags(package.soc, board))
        files = {
            "toolchain.cmake": package.text("toolchain.cmake", board=board, gcc_flags=flags),
            "example/startup.c": package.text("startup.c", board=board),
            "example/link.ld": linker_script(package.soc),
        }
        use += (
            f"\n\nFor {board.title}, with Arm's GCC (`{flags}`):\n\n"
            "    cmake -B build -DCMAKE_TOOLCHAIN_FILE=toolchain.cmake && cmake --build build\n\n"
            "The example prints by semihosting: to the debugger that runs it. It starts where the "
            "core finds its vectors at the begin of flash, with the clock it has after reset; a "
            "board that boots another way (Raspberry Pi, i.MX RT) needs its SDK's start-up code "
            "and linker script."
        )
    return {
        **package.placed(),
        **package.sample("example"),
        **package.readme("a CMake library", use),
        **files,
        "example/check.c": package.check(),
        "CMakeLists.txt": package.text("cmake.txt", bare=bool(files)),
    }


def _zephyr(package: _Package) -> dict[str, str]:
    use = (
        "Add this folder to `ZEPHYR_EXTRA_MODULES` (or to your west manifest), set "
        f"`CONFIG_{package.name.upper()}=y`, and include `{package.name}.h`. The sample:\n\n"
        "    west build -b <board> samples/check\n\n"
        f"It prints over the console that Zephyr has chosen{console(package.board)}."
    )
    return {
        **package.placed(),
        **package.sample("samples/check/src"),
        **package.readme("a Zephyr module", use),
        "zephyr/module.yml": package.text("zephyr_module.yml"),
        "zephyr/CMakeLists.txt": package.text("zephyr_cmake.txt"),
        "zephyr/Kconfig": package.text("zephyr_kconfig"),
        "samples/check/CMakeLists.txt": package.text("zephyr_sample_cmake.txt"),
        "samples/check/prj.conf": package.text("zephyr_prj.conf", module=True),
        "samples/check/sample.yaml": package.text("zephyr_sample.yaml"),
        "samples/check/src/main.c": package.check(),
    }


def _esp_idf(package: _Package) -> dict[str, str]:
    use = (
        f"Copy this folder to `components/{package.name}` of your project. The example:\n\n"
        "    idf.py -C examples/check set-target <chip> build flash monitor\n\n"
        f"It prints over ESP-IDF's console{console(package.board)}."
    )
    return {
        **package.placed(),
        **package.sample("examples/check/main"),
        **package.readme("an ESP-IDF component", use),
        "CMakeLists.txt": package.text("idf_cmake.txt"),
        "idf_component.yml": package.text("idf_component.yml"),
        "examples/check/CMakeLists.txt": package.text("idf_example_cmake.txt"),
        "examples/check/main/CMakeLists.txt": package.text("idf_main_cmake.txt"),
        "examples/check/main/main.c": package.check(
            "void app_main(void);\n\nvoid app_main(void)", returns=False
        ),
    }


def _arduino(package: _Package) -> dict[str, str]:
    use = (
        f"Copy this folder to `libraries/{package.name}` of your sketchbook, or zip it and choose "
        "Sketch > Include Library > Add .ZIP Library. The example is the sketch Check; it prints "
        f"over `Serial`{console(package.board)}."
    )
    return {
        # Sketches find headers in this folder only.
        **{f"src/{name}": text for name, text in package.library.items()},
        **package.sample("examples/Check"),
        **package.readme("an Arduino library", use),
        "library.properties": package.text("arduino.properties"),
        "examples/Check/Check.ino": package.sketch(sketch=True),
    }


def _platformio(package: _Package) -> dict[str, str]:
    pio, folder = pio_names(package.board), "examples/check"
    use = (
        f"Copy this folder to `lib/{package.name}` of your project, or name it in `lib_deps`. "
        f"The example:\n\n    pio run -d {folder} -t upload -t monitor\n\n"
    )
    if pio.framework == "arduino":
        main, text, more = "main.cpp", package.sketch(sketch=False), dict[str, str]()
        use += f"It prints over Arduino's `Serial`{console(package.board)}."
    else:
        main, text = "main.c", package.check()
        more = {f"{folder}/zephyr/prj.conf": package.text("zephyr_prj.conf", module=False)}
        use += f"It prints over the console that Zephyr has chosen{console(package.board)}."
    if not pio.platform:
        use += " First write `platform` and `board` of yours into its `platformio.ini`."
    return {
        **package.placed(),
        **package.sample(f"{folder}/src"),
        **package.readme("a PlatformIO library", use),
        **more,
        "library.json": package.text("platformio.json", main=main),
        f"{folder}/platformio.ini": package.text("platformio.ini", pio=pio),
        f"{folder}/src/{main}": text,
    }


def _cmsis(package: _Package) -> dict[str, str]:
    arm = package.soc.host.arm
    assert arm is not None, "refuse_kind"
    core = "-".join(part[:1].upper() + part[1:] for part in arm.cpu.split("-"))
    dcore = core.replace("M0plus", "M0+")
    use = (
        f"Zip this folder as `HTVM.{package.name}.{_VERSION}.pack`, and add it with `cpackget add`."
        " The example prints with `printf`, which a project retargets, as with CMSIS-Compiler's "
        "STDOUT."
    )
    return {
        **package.placed(),
        **package.sample("examples/check"),
        **package.readme("a CMSIS pack", use),
        f"HTVM.{package.name}.pdsc": package.text("cmsis.pdsc", dcore=dcore),
        "examples/check/main.c": package.check(),
    }


KINDS: dict[str, Callable[[_Package], dict[str, str]]] = {
    "zephyr": _zephyr,
    "esp-idf": _esp_idf,
    "arduino": _arduino,
    "platformio": _platformio,
    "cmsis": _cmsis,
    "cmake": _cmake,
}
"""Each kind of package that is a folder, by its name."""
