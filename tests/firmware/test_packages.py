"""Packages of build systems: what they say of themselves, and that they build and compute.

The build systems themselves are not here.  CMake is, where it is installed: the functions of Zephyr
and ESP-IDF that packages call are stood in for by others that record their arguments.  Everything
else is compiled as the package's own files say.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import htvm
from byoc_dory.errors import ExportError, TargetError
from byoc_dory.soc.boards.description import CORES
from byoc_dory.soc.registry import resolve
from htvm.firmware import arm
from htvm.firmware.isa import rv32_flags
from htvm.firmware.packages import FLAGS, KINDS, refuse_kind
from htvm.firmware.toolchain import Compiler
from htvm.tools.cli import main
from htvm.tools.cli.arguments import open_model
from tests.tools import tool

STRICT = ("-Wall", "-Wextra", "-Werror")
FOLDERS = tuple(KINDS)
EVERY_DAY = ("zephyr",)
SOME_DAYS = [
    kind if kind in EVERY_DAY else pytest.param(kind, marks=pytest.mark.slow) for kind in FOLDERS
]


@pytest.fixture(scope="module")
def module() -> htvm.Module:
    return htvm.build(open_model("zoo:resnet8"), "cortex_m4")


@pytest.fixture(scope="module")
def packages(module: htvm.Module, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("packages")
    espressif = htvm.build(open_model("zoo:resnet8"), "esp32-c3")
    built = {kind: espressif if kind == "esp-idf" else module for kind in FOLDERS}
    return {kind: one.export(folder / kind, kind=kind) for kind, one in built.items()}


def natively(sources: list[Path], includes: list[Path], out: Path, *flags: str) -> str:
    """Compile for this machine as strictly as users may, run, and return what is printed."""
    compiler = Compiler.zig()
    compiler.compile_host(sources, out, includes, (*FLAGS, *STRICT, *flags))
    done = subprocess.run([str(out)], capture_output=True, text=True, check=False)
    return done.stdout


def listed(kind: str, package: Path) -> tuple[list[Path], list[Path], Path]:
    """Return the C files and include folders that a package's own files name, and its example."""
    name = "resnet8"
    if kind == "cmsis":
        root = ElementTree.parse(package / f"HTVM.{name}.pdsc").getroot()
        files = root.findall("./components/component/files/file")
        sources = [package / f.attrib["name"] for f in files if f.attrib["category"] == "sourceC"]
        includes = [package / f.attrib["name"] for f in files if f.attrib["category"] == "include"]
        return sources, includes, package / "examples" / "check"
    if kind == "platformio":
        build = json.loads((package / "library.json").read_text())["build"]
        sources = sorted((package / build["srcDir"]).glob("*.c"))
        return sources, [package / build["includeDir"]], package / "examples/check/src"
    if kind == "arduino":
        return sorted((package / "src").glob("*.c")), [package / "src"], package / "examples/Check"
    place, example = {
        "zephyr": ("zephyr/CMakeLists.txt", "samples/check/src"),
        "esp-idf": ("CMakeLists.txt", "examples/check/main"),
        "cmake": ("CMakeLists.txt", "example"),
    }[kind]
    text = (package / place).read_text()
    found = re.findall(r"(?:\.\./)?(src/\w+\.c)", text)
    return [package / one for one in found], [package / "include"], package / example


@pytest.mark.parametrize("kind", SOME_DAYS)
def test_every_package_builds_and_computes(
    kind: str, packages: dict[str, Path], tmp_path: Path
) -> None:
    package = tmp_path / "unpacked"
    shutil.copytree(packages[kind], package)
    sources, includes, example = listed(kind, package)
    assert {path.name for path in sources} == {path.name for path in (package / "src").glob("*.c")}
    assert all(path.is_file() for path in sources)
    golden = example / "resnet8_golden.c"
    sketches = [*example.glob("Check.ino"), *example.glob("main.cpp")]
    if sketches:
        printed = as_a_sketch(sketches[0], [*sources, golden], [*includes, example], tmp_path)
        assert printed.startswith("PASS: resnet8_run returned 0"), printed
        return
    (program,) = [example / name for name in ("main.c", "check.c") if (example / name).is_file()]
    more = ()
    if kind == "esp-idf":
        starter = tmp_path / "starter.c"
        starter.write_text("void app_main(void);\nint main(void) { app_main(); return 0; }\n")
        more = (starter,)
    printed = natively(
        [*sources, golden, program, *more], [*includes, package / "src", example], tmp_path / "out"
    )
    assert printed.startswith("PASS: resnet8_run returned 0, 12 of 12"), printed


@pytest.mark.parametrize("given", ["kept", "streamed"])
def test_a_package_of_rows_builds_and_computes(given: str, tmp_path: Path) -> None:
    """Kernels of rows return a code, and ask the platform for a driver's, which there is none."""
    built = htvm.build(open_model("zoo:resnet8"), "cortex_m4", memory="least", input=given)
    package = built.export(tmp_path / "package", kind="cmake")
    sources, includes, example = listed("cmake", package)
    files = [*sources, example / "resnet8_golden.c", example / "check.c"]
    printed = natively(files, [*includes, package / "src", example], tmp_path / "out")
    assert printed.startswith("PASS: resnet8_run returned 0, 12 of 12"), printed


def as_a_sketch(sketch: Path, sources: list[Path], includes: list[Path], out: Path) -> str:
    """Compile C, and a sketch or C++ with a stand-in for Arduino's functions; run them."""
    compiler = Compiler.zig()
    for path in sources:
        compiler.compile_host([path], out / f"{path.stem}.o", includes, (*FLAGS, *STRICT, "-c"))
    program, given = out / "check.cpp", sketch.suffix == ".ino"
    (out / "Arduino.h").write_text(ARDUINO)
    head = "#include <Arduino.h>\n" if given else ""  # as Arduino's builder does
    program.write_text(f"{head}{sketch.read_text()}\nint main() {{ setup(); }}\n")
    line = [*compiler.host[:-1], "c++", "-std=c++17", *STRICT, str(program)]
    line += [*map(str, sorted(out.glob("*.o"))), *(f"-I{each}" for each in (*includes, out))]
    environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(compiler.cache / "zig")}
    subprocess.run([*line, "-o", str(out / "check")], check=True, env=environment, timeout=300)
    done = subprocess.run([str(out / "check")], capture_output=True, text=True, check=True)
    return done.stdout


ARDUINO = """
#pragma once
#include <cstdio>
struct Port {
    void begin(long) {}
    explicit operator bool() const { return true; }
    void print(const char *text) { std::printf("%s", text); }
    void print(long value) { std::printf("%ld", value); }
    void println(unsigned long value) { std::printf("%lu\\n", value); }
};
static Port Serial;
"""


@pytest.mark.slow
@pytest.mark.parametrize("core", CORES)
def test_packages_compile_strictly_for_the_core(core: str, tmp_path: Path) -> None:
    """All C as C11 for the core itself, without a warning, and the header as C++17."""
    module = htvm.build(open_model("zoo:digits"), core)
    package = module.export(tmp_path / "package", kind="cmake")
    compiler, soc = Compiler.zig(), resolve(core).soc
    arm_core = soc.host.arm
    flags = rv32_flags(soc.host.isa) if arm_core is None else arm.arm_flags(arm_core)
    includes = [package / "include", *arm.include_folders(soc)[1:2]]
    for path in sorted((package / "src").glob("*.c")):
        compiler.compile_cross(
            [path], tmp_path / "one.o", includes, flags, flags=(*STRICT, "-Wconversion", "-c")
        )
    header = tmp_path / "header.cpp"
    header.write_text(
        '#include "digits.h"\nHTVM_ALIGNED(4) static int8_t image[DIGITS_INPUT_0_ELEMENTS];\n'
        "int main() { return digits_run == nullptr || image[0]; }\n"
    )
    environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(compiler.cache / "zig")}
    line = [*compiler.host[:-1], "c++", "-std=c++17", *STRICT, "-Wno-tautological-compare"]
    line += ["-Wno-tautological-pointer-compare", f"-I{package / 'include'}", "-c", str(header)]
    done = subprocess.run(
        [*line, "-o", str(tmp_path / "header.o")], env=environment, check=False, timeout=300
    )
    assert done.returncode == 0


@pytest.mark.rotating(1)
@pytest.mark.parametrize(
    ("program", "core"), [("gcc", ()), ("arm-none-eabi-gcc", ("-mthumb", "-mcpu=cortex-m4"))]
)
def test_gcc_takes_the_library(
    program: str, core: tuple[str, ...], packages: dict[str, Path], tmp_path: Path
) -> None:
    """Zephyr, ESP-IDF, Arduino and PlatformIO compile with GCC."""
    tool(program)
    sources, includes, _ = listed("cmake", packages["cmake"])
    folders = [f"-I{folder}" for folder in includes]
    for level in ("-O2", "-O0"):
        line = [program, *core, "-std=c11", *FLAGS, level, *STRICT, "-Wconversion", *folders, "-c"]
        for path in sources:
            subprocess.run([*line, str(path), "-o", str(tmp_path / "one.o")], check=True)


SHIMS = """
cmake_minimum_required(VERSION 3.16)
project(shims LANGUAGES C)
set(CONFIG_HTVM_RESNET8 y)
set(COMPONENT_LIB resnet8)
macro(zephyr_include_directories)
    foreach(folder ${ARGN})
        list(APPEND PUBLIC_FOLDERS ${PACKAGE}/zephyr/${folder})
    endforeach()
endmacro()
macro(zephyr_library_named name)
    add_library(${name} STATIC)
    target_include_directories(${name} PUBLIC ${PUBLIC_FOLDERS})
    set(LIBRARY ${name})
endmacro()
macro(zephyr_library_include_directories)
    foreach(folder ${ARGN})
        target_include_directories(${LIBRARY} PRIVATE ${PACKAGE}/zephyr/${folder})
    endforeach()
endmacro()
macro(zephyr_library_compile_options)
    target_compile_options(${LIBRARY} PRIVATE ${ARGN})
endmacro()
macro(zephyr_library_sources)
    foreach(file ${ARGN})
        target_sources(${LIBRARY} PRIVATE ${PACKAGE}/zephyr/${file})
    endforeach()
endmacro()
function(idf_component_register)
    cmake_parse_arguments(IDF "" "" "SRCS;INCLUDE_DIRS;PRIV_INCLUDE_DIRS" ${ARGN})
    add_library(resnet8 STATIC ${IDF_SRCS})
    target_include_directories(resnet8 PUBLIC ${IDF_INCLUDE_DIRS} PRIVATE ${IDF_PRIV_INCLUDE_DIRS})
endfunction()
add_subdirectory(${PACKAGE}/${PLACE} package)
"""


@pytest.mark.parametrize(
    "kind",
    ["cmake", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("zephyr", "esp-idf"))],
)
def test_cmake_takes_the_package(kind: str, packages: dict[str, Path], tmp_path: Path) -> None:
    program = shutil.which("cmake")
    compilers = [name for name in ("cc", "gcc", "clang") if shutil.which(name)]
    if program is None or not compilers:
        pytest.skip("cmake, or a C compiler that it finds, is not installed")
    package, build = tmp_path / "package", tmp_path / "build"
    shutil.copytree(packages[kind], package)
    source = package
    if kind != "cmake":
        source = tmp_path / "shims"
        source.mkdir()
        (source / "CMakeLists.txt").write_text(SHIMS)
    place = "zephyr" if kind == "zephyr" else "."
    for line in (
        ["-S", source, "-B", build, f"-DPACKAGE={package}", f"-DPLACE={place}"],
        ["--build", build],
    ):
        done = subprocess.run(
            [program, *map(str, line)], capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
    if kind == "cmake":
        checked = subprocess.run(
            [build / "resnet8_check"], capture_output=True, text=True, check=True
        )
        assert checked.stdout.startswith("PASS")


def test_metadata_files(packages: dict[str, Path]) -> None:
    """The fields that the published schemas require, with values that they allow."""
    properties = dict(
        line.split("=", 1)
        for line in (packages["arduino"] / "library.properties").read_text().splitlines()
    )
    assert {"name", "version", "author", "maintainer", "sentence", "url", "architectures"} <= {
        *properties
    }
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 _.\-]{0,62}", properties["name"])
    assert properties["category"] in ARDUINO_CATEGORIES
    library = json.loads((packages["platformio"] / "library.json").read_text())
    assert {"name", "version"} <= {*library} <= PLATFORMIO_FIELDS
    assert re.fullmatch(r"\d+\.\d+\.\d+", library["version"])
    example = packages["platformio"] / library["examples"][0]["base"]
    assert all((example / name).is_file() for name in library["examples"][0]["files"])
    import yaml

    zephyr = yaml.safe_load((packages["zephyr"] / "zephyr" / "module.yml").read_text())
    assert {*zephyr} == {"name", "build", "samples"}
    assert zephyr["build"] == {"cmake": "zephyr", "kconfig": "zephyr/Kconfig"}
    assert all((packages["zephyr"] / folder).is_dir() for folder in zephyr["samples"])
    component = yaml.safe_load((packages["esp-idf"] / "idf_component.yml").read_text())
    assert re.fullmatch(r"\d+\.\d+\.\d+", component["version"])
    assert component["dependencies"] == {"idf": ">=5.0"}
    root = ElementTree.parse(packages["cmsis"] / "HTVM.resnet8.pdsc").getroot()
    # Required by PACK.xsd, in this order.
    order = ["vendor", "name", "description", "url", "releases", "conditions", "components"]
    assert root.tag == "package" and [child.tag for child in root] == order
    component_node = root.find("./components/component")
    assert component_node is not None
    assert {"Cclass", "Cgroup", "Cversion", "condition"} <= {*component_node.attrib}
    assert component_node.attrib["condition"] in {
        node.attrib["id"] for node in root.findall("./conditions/condition")
    }


ARDUINO_CATEGORIES = (
    "Display", "Communication", "Signal Input/Output", "Sensors", "Device Control", "Timing",
    "Data Storage", "Data Processing", "Other",
)  # fmt: skip
PLATFORMIO_FIELDS = {
    "$schema", "name", "version", "description", "keywords", "homepage", "repository", "authors",
    "license", "frameworks", "platforms", "headers", "examples", "dependencies", "export",
    "scripts", "build",
}  # fmt: skip


def test_model_library_format(module: htvm.Module, tmp_path: Path) -> None:
    """Field by field as version 7 has them; the C computes what the network does."""
    path = module.export(tmp_path / "net.tar", kind="mlf")
    again = module.export(tmp_path / "again.tar", kind="mlf")
    assert path.read_bytes() == again.read_bytes()
    with tarfile.open(path) as tar:
        names = tar.getnames()
        tar.extractall(tmp_path / "mlf", filter="data")
    assert all(name == "." or name.startswith("./") for name in names)
    root = tmp_path / "mlf"
    metadata = json.loads((root / "metadata.json").read_text())
    assert metadata["version"] == 7 and [*metadata["modules"]] == ["default"]
    entry = metadata["modules"]["default"]
    assert {*entry} == {
        "model_name", "export_datetime", "memory", "target", "executors", "style",
    }  # fmt: skip
    assert entry["executors"] == ["aot"] and entry["style"] == "full-model"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", entry["export_datetime"])
    (memory,) = entry["memory"]["functions"]["main"]
    assert memory["device"] == 1 and memory["workspace_size_bytes"] == module.l2_peak
    assert memory["inputs"] == {"input": {"dtype": "int8", "size": 3072}}
    assert [*memory["outputs"].values()] == [{"dtype": "int8", "size": 12}]
    assert memory["io_size_bytes"] == 3084
    for function in entry["memory"]["functions"]["operator_functions"]:
        assert {*function} == {"function_name", "workspace"}
    # An empty list of parameters, as TVM reads it.
    assert (root / "parameters" / "default.params").read_bytes() == (0xF7E58D4F05049CB7).to_bytes(
        8, "little"
    ) + bytes(24)
    header = (root / "codegen/host/include/tvmgen_default.h").read_text()
    assert "struct tvmgen_default_inputs {\n  void* input;\n};" in header
    assert "#define TVMGEN_DEFAULT_INPUT_SIZE 3072" in header
    output = next(iter(memory["outputs"]))
    inputs = htvm.inputs.seeded_inputs(module.compiled.source.inputs)
    (wanted,) = module.reference(inputs)
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "tvmgen_default.h"\n'
        f"static _Alignas(16) int8_t input[3072] = {{{', '.join(map(str, inputs[0].ravel()))}}};\n"
        "static _Alignas(16) int8_t output[12];\n"
        "int main(void)\n{\n    struct tvmgen_default_inputs inputs = {.input = input};\n"
        f"    struct tvmgen_default_outputs outputs = {{.{output} = output}};\n"
        '    printf("%d", (int)tvmgen_default_run(&inputs, &outputs));\n'
        '    for (int i = 0; i < 12; i++) {\n        printf(" %d", output[i]);\n    }\n}\n'
    )
    # Templates of TVM compile the sources without the folder of headers.
    shutil.copy(root / "codegen/host/include/tvmgen_default.h", tmp_path)
    sources = [*sorted((root / "codegen/host/src").glob("*.c")), tmp_path / "main.c"]
    printed = natively(sources, [], tmp_path / "run")
    assert printed.split() == ["0", *map(str, wanted.ravel())]


def test_unknown_kinds_and_targets_with_devices(capsys: pytest.CaptureFixture[str]) -> None:
    soc = resolve("cortex_m4").soc
    with pytest.raises(TargetError) as caught:
        refuse_kind("mbed", soc)
    assert "zephyr, esp-idf, arduino, platformio, cmsis, cmake, mlf" in str(caught.value)
    with pytest.raises(TargetError, match="DIANA has devices"):
        refuse_kind("zephyr", resolve("diana").soc)
    arguments = ["compile", "zoo:digits", "-t", "cortex_m4", "--as", "mbed", "--out", "never"]
    assert main(arguments) != 0 and not Path("never").exists()
    assert "known kinds: zephyr" in capsys.readouterr().err


@pytest.mark.parametrize(("kind", "name"), [("zephyr", "out"), ("mlf", "out.tar")])
def test_an_interrupted_export_leaves_nothing(
    kind: str, name: str, module: htvm.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / name

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        module.export(place, kind=kind)
    assert list(tmp_path.iterdir()) == []


def test_what_a_user_changed_is_kept(module: htvm.Module, tmp_path: Path) -> None:
    package = module.export(tmp_path / "package", kind="cmake")
    assert module.export(package, kind="cmake") == package
    (package / "src" / "mine.c").write_text("int mine;\n")
    with pytest.raises(ExportError, match="was added after the earlier export"):
        module.export(package, kind="cmake")
    assert sys.executable and (package / "src" / "mine.c").is_file()


def test_a_package_describes_itself(packages: dict[str, Path]) -> None:
    for kind, package in packages.items():
        facts = json.loads((package / "htvm.json").read_text())
        assert (facts["kind"], facts["build_system"], facts["name"]) == ("package", kind, "resnet8")
        (image,) = facts["inputs"]
        assert (image["shape"], image["layout"]) == ([1, 32, 32, 3], "NHWC")
        assert (image["scale"], image["zero_point"], image["halves_to_even"]) == (2.0**-7, 0, False)
        header = next(package.rglob("resnet8.h")).read_text()
        for name in ("arena", "constants", "stack"):
            macro = f"RESNET8_{name.removesuffix('s').upper()}_BYTES {facts['memory'][name]}u"
            assert macro in header
    with pytest.raises(ExportError, match="this is a package"):
        htvm.open(packages["cmake"])


def test_an_export_does_not_replace_one_of_another_kind(
    packages: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Refused before anything is built: there is no such model."""
    project = shutil.copytree(packages["zephyr"], tmp_path / "package")
    for target, more, text in (
        ("diana", [], "the folder holds a package for zephyr, and a project would replace it"),
        ("rv32imc", ["--as", "esp-idf"], "a package for zephyr, and a package for esp-idf would"),
        ("cortex_m4", [], "a package for zephyr, and a package for cmake would replace it"),
    ):
        line = ["compile", "missing.tflite", "-t", target, *more, "--out", str(project)]
        assert main(line) != 0
        assert text in capsys.readouterr().err.replace("\n", " ")
