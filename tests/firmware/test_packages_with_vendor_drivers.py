"""Packages for devices whose driver is their vendor's: what they name, refuse and compile to."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import htvm
from byoc_dory.errors import TargetError
from byoc_dory.soc.board import boards
from byoc_dory.soc.registry import resolve
from htvm.firmware.elf import read_elf
from htvm.firmware.packages import FLAGS, kind_written, refuse_kind
from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import Compiler
from htvm.tools.cli import main
from tests.frontend.flatfile import small_network
from tests.tools import tool

KINDS = ("cmake", "cmsis", "zephyr")
PROTOTYPES = """
#include <stddef.h>
#include <stdint.h>
struct ethosu_driver;
struct ethosu_driver *ethosu_reserve_driver(void);
void ethosu_release_driver(struct ethosu_driver *drv);
int ethosu_invoke_v3(struct ethosu_driver *drv, const void *custom_data_ptr,
                     const int custom_data_size, uint64_t *const base_addr,
                     const size_t *base_addr_size, const int num_base_addr, void *user_arg);
"""


def built(folder: Path, target: str, seed: int = 0) -> htvm.Module:
    """Build a small network, which a device of Arm's takes as a whole."""
    pytest.importorskip("ethosu.regor", reason="ethos-u-vela is not installed")
    path = folder / "small.tflite"
    path.write_bytes(small_network(seed=seed).file())
    return htvm.build(path, target=target, platform="host")


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> htvm.Module:
    return built(tmp_path_factory.mktemp("network"), "ethos_u55:macs=128")


def test_a_package_names_the_driver_and_does_not_carry_it(
    module: htvm.Module, tmp_path: Path
) -> None:
    package = module.export(tmp_path / "small")  # CMake's, by default
    assert not list(package.rglob("ethosu*"))
    text = (package / "README.md").read_text()
    for told in (
        "https://gitlab.arm.com/artificial-intelligence/ethos-u/ethos-u-core-driver",
        "`src/ethosu_driver.c`, `src/ethosu_device_u55_u65.c`, `src/ethosu_pmu.c` and the folder "
        "`include`",
        "`HTVM_ETHOS_U_DRIVER`", "`ETHOSU_TARGET_NPU_CONFIG=ethos-u55-128`", "`ethosu_init`",
        "whole cache lines of 32 B", "`htvm_cache.h`", "0x4E04",
        "Commands, weights and arena begin at multiples of 16 B",
        "may stay in flash", "Ethos-U55 with 128 MACs per cycle", "0x4E01", "0x4E02", "0x4E03",
    ):  # fmt: skip
        assert told in text
    facts = json.loads((package / "htvm.json").read_text())
    assert facts["build_system"] == "cmake" and facts["devices"] == [
        {"name": "ethos_u55", "title": "Ethos-U55 with 128 MACs per cycle", "macs_per_cycle": 128}
    ]


@pytest.mark.parametrize("kind", ["arduino", "esp-idf", "platformio", "mlf"])
def test_kinds_that_cannot_name_a_driver(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Refused before anything is opened or built."""
    with pytest.raises(TargetError, match="cannot name what else to add.*core driver") as caught:
        refuse_kind(kind, resolve("ethos_u55:macs=64").soc)
    assert caught.value.hint == "choose cmake, cmsis or zephyr"
    assert main(["compile", "no.tflite", "-t", "ethos_u55", "--as", kind, "--out", "never"]) != 0
    assert f"package '{kind}'" in capsys.readouterr().err and not Path("never").exists()


def test_which_socs_have_packages() -> None:
    assert kind_written(None, resolve("ethos_u65").soc) == "cmake"
    for kind in KINDS:
        refuse_kind(kind, resolve("ethos_u55").soc)
    for name in ("diana", "siracusa", "dla"):
        with pytest.raises(TargetError, match="a package has no drivers") as caught:
            refuse_kind("cmake", resolve(name).soc)
        assert "export the whole project without 'as'" in (caught.value.hint or "")


@pytest.mark.slow
def test_without_layers_on_the_device_no_driver_is_needed(tmp_path: Path) -> None:
    package = built(tmp_path, "ethos_u.cpu").export(tmp_path / "package", kind="cmake")
    texts = "".join(path.read_text() for path in package.rglob("*") if path.is_file())
    assert "ethosu" not in texts.lower()
    assert "devices" not in json.loads((package / "htvm.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", ["ethos_u55:macs=32", "ethos_u65"])
def test_the_library_compiles_strictly(target: str, kind: str, tmp_path: Path) -> None:
    """With nothing but the driver's three functions declared."""
    compiler = tool("arm-none-eabi-gcc")
    package = built(tmp_path, target).export(tmp_path / "package", kind=kind)
    standin = tmp_path / "standin"
    standin.mkdir()
    (standin / "ethosu_driver.h").write_text(PROTOTYPES)
    line = [compiler, "-mthumb", "-mcpu=cortex-m55", "-mfloat-abi=hard", "-std=c11", *FLAGS]
    line += ["-Wall", "-Wextra", "-Werror", f"-I{package / 'include'}", f"-I{standin}", "-c"]
    for path in sorted((package / "src").glob("*.c")):
        subprocess.run([*line, str(path), "-o", str(tmp_path / "one.o")], check=True)


CALLS = """
#include "small.h"
#include <stdio.h>
static HTVM_ALIGNED(16) small_arena_t arenas[2];
static HTVM_ALIGNED(16) int8_t in[SMALL_INPUT_0_ELEMENTS], out[SMALL_OUTPUT_0_ELEMENTS];
int main(void)
{
    printf("%X ", (unsigned)small_run(in, out));
    for (int shift = 0; shift <= 16; shift += 8) {
        void *arena = (char *)arenas + shift;
        printf("%d ", (int)small_run_in(arena, in, out) == SMALL_ERROR_ALIGN);
    }
    return 0;
}
"""


def test_a_run_refuses_a_misaligned_arena_and_data_of_another_export(
    module: htvm.Module, tmp_path: Path
) -> None:
    """The model of the device is in the driver's place."""
    own, other = module.export(tmp_path / "own"), built(tmp_path, "ethos_u55:macs=128", seed=1)
    foreign = other.export(tmp_path / "other") / "src" / "small_weights.c"
    (tmp_path / "main.c").write_text(CALLS)
    folder = runtime_c() / "soc" / "ethos_u"
    models = [path for path in folder.glob("model/*.c") if path.name != "ethos_u_soc.c"]
    includes = [own / "include", own / "src", folder, folder / "model", runtime_c() / "include"]
    sources = [path for path in own.glob("src/*.c") if path.name != foreign.name]
    said = []
    for weights in (own / "src" / foreign.name, foreign):
        program = Compiler.zig().compile_host(
            [tmp_path / "main.c", *sources, weights, *models], tmp_path / "run", includes
        )
        done = subprocess.run([program], capture_output=True, text=True, check=True, timeout=60)
        said.append(done.stdout.split())
    # An arena at any multiple of 16 is one, also where its cache lines begin elsewhere.
    assert said == [["0", "0", "1", "0"], ["4E04", "0", "1", "0"]]


COUNTING = """
#include "ethosu_driver.h"
#include "small.h"
#include <stdio.h>
static HTVM_ALIGNED(16) int8_t in[SMALL_INPUT_0_ELEMENTS], out[SMALL_OUTPUT_0_ELEMENTS];
static int calls;
struct ethosu_driver *ethosu_reserve_driver(void) { return (struct ethosu_driver *)&calls; }
void ethosu_release_driver(struct ethosu_driver *drv) { (void)drv; }
int ethosu_invoke_v3(struct ethosu_driver *drv, const void *custom_data_ptr,
                     const int custom_data_size, uint64_t *const base_addr,
                     const size_t *base_addr_size, const int num_base_addr, void *user_arg)
{
    (void)drv, (void)custom_data_ptr, (void)custom_data_size, (void)base_addr;
    (void)base_addr_size, (void)num_base_addr, (void)user_arg;
    return calls++ < 0;
}
int main(void)
{
    printf("%X ", (unsigned)small_run(in, out));
    printf("%d", calls);
    return 0;
}
"""


def test_data_of_another_export_is_found_before_the_first_program(
    module: htvm.Module, tmp_path: Path
) -> None:
    """Whichever program's it is: none has started by then."""
    own = module.export(tmp_path / "own")
    (tmp_path / "main.c").write_text(COUNTING)
    includes = [own / "include", own / "src", runtime_c() / "soc" / "ethos_u"]
    includes.append(runtime_c() / "include")
    weights = own / "src" / "small_weights.c"
    programs = [step.symbol for step in module.compiled.program.steps]
    sources = [tmp_path / "main.c", *own.glob("src/*.c")]

    def said() -> str:
        program = Compiler.zig().compile_host(sources, tmp_path / "run", includes)
        done = subprocess.run([program], capture_output=True, text=True, check=True, timeout=60)
        return done.stdout

    assert len(programs) > 2 and said() == f"0 {len(programs)}"
    text = weights.read_text()
    for name in (f"{programs[-1]}_commands", f"{programs[1]}_weights"):
        head, declared, rest = text.partition(f" {name}[")
        before, brace, numbers = rest.partition("{")
        weights.write_text(f"{head}{declared}{before}{brace} 1 +{numbers}")
        assert said() == "4E04 0"


def test_caches_are_maintained_line_by_line(tmp_path: Path) -> None:
    """What the generated C does to a cache of 32-byte lines around a run of the device."""
    (tmp_path / "main.c").write_text("""
        #include <stdint.h>
        #include <stdio.h>
        static uint32_t control;
        #define HTVM_CACHE 1
        #define HTVM_CACHE_READ(address) ((address) == 0xE000ED14u ? control : 0u)
        #define HTVM_CACHE_WRITE(address, value) printf("%X:%X ", (address), (unsigned)(value))
        #define HTVM_CACHE_WAIT() (void)0
        #include "htvm_cache.h"
        int main(void)
        {
            htvm_cache_give((void *)0x40, 64u);  /* the cache is off */
            control = 1u << 16;
            htvm_cache_give((void *)0x40, 65u);
            htvm_cache_take((void *)0x4C, 20u);
            htvm_cache_take((void *)0x4C, 21u);
            htvm_cache_take((void *)0x4C, 0u);
            return 0;
        }""")
    program = Compiler.zig().compile_host(
        [tmp_path / "main.c"], tmp_path / "run", [runtime_c() / "include"]
    )
    done = subprocess.run([program], capture_output=True, text=True, check=True, timeout=60)
    give, take = "E000EF70", "E000EF5C"
    assert done.stdout.split() == [
        f"{give}:40", f"{give}:60", f"{give}:80", f"{take}:40", f"{take}:40", f"{take}:60"
    ]  # fmt: skip


@pytest.mark.slow
def test_build_systems_are_told(module: htvm.Module, tmp_path: Path) -> None:
    zephyr = module.export(tmp_path / "zephyr", kind="zephyr")
    assert "\tdepends on ETHOS_U\n" in (zephyr / "zephyr" / "Kconfig").read_text()
    options = (zephyr / "samples/check/prj.conf").read_text()
    assert "CONFIG_ETHOS_U=y\nCONFIG_HTVM_SMALL=y\n" in options
    assert "`CONFIG_ETHOS_U_DCACHE`" in (zephyr / "README.md").read_text()
    cmsis = module.export(tmp_path / "cmsis", kind="cmsis")
    root = ElementTree.parse(cmsis / "HTVM.small.pdsc").getroot()
    required = root.find("./conditions/condition/require")
    assert required is not None and required.attrib["Csub"] == "Ethos-U Driver"
    assert "`ARM::ethos-u-core-driver`" in (cmsis / "README.md").read_text()


NPU = [board.name for board in boards().values() if board.npu]


@pytest.mark.rotating(1)
@pytest.mark.parametrize("board", NPU)
def test_gcc_links_the_example_for_every_board_with_an_npu(board: str, tmp_path: Path) -> None:
    """For its memories, with what answers that there is no NPU in the driver's place."""
    cmake = tool("cmake")
    tool("arm-none-eabi-gcc")
    package, build = built(tmp_path, board).export(tmp_path / "package"), tmp_path / "build"
    absent = runtime_c() / "soc" / "ethos_u"
    (tmp_path / "CMakeLists.txt").write_text(
        PROJECT.format(
            library="ethosu_core_driver", sources=absent / "absent" / "ethos_u_absent.c",
            folder=absent, includes="", package=package,
        )
    )  # fmt: skip
    toolchain = f"-DCMAKE_TOOLCHAIN_FILE={package / 'toolchain.cmake'}"
    environment = {**os.environ, "CFLAGS": "-Wall -Wextra -Werror"}
    for line in (["-S", tmp_path, "-B", build, "-DSMALL_CHECK=ON", toolchain], ["--build", build]):
        done = subprocess.run(
            [cmake, *map(str, line)],
            capture_output=True, text=True, check=False, timeout=300, env=environment,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    elf = read_elf(build / "package" / "small_check")
    flash, ram = boards()[board].flash, boards()[board].ram
    assert flash.address <= elf.symbols["small_run"].address < flash.address + flash.size
    assert ram.address <= elf.symbols["small_arena"].address < ram.address + ram.size
    readme = (package / "README.md").read_text()
    assert f"ethos-u55-{boards()[board].npu_macs}`" in readme and "toolchain.cmake` for" in readme


PROJECT = """
cmake_minimum_required(VERSION 3.16)
project(firmware LANGUAGES C)
add_library({library} STATIC {sources})
target_include_directories({library} PUBLIC {folder} {folder}/model {includes})
add_subdirectory({package} package)
enable_testing()
"""


@pytest.mark.slow
@pytest.mark.parametrize("library", ["ethosu_core_driver", "of_an_sdk"])
def test_cmake_wants_the_driver_and_builds_with_it(
    library: str, module: htvm.Module, tmp_path: Path
) -> None:
    """In place of Arm's driver is the model of the device, so that the example runs here."""
    cmake = tool("cmake")
    if not any(shutil.which(name) for name in ("cc", "gcc", "clang")):
        pytest.skip("no C compiler that CMake finds is installed")
    package, build = module.export(tmp_path / "package", kind="cmake"), tmp_path / "build"
    alone = subprocess.run(
        [cmake, "-S", str(package), "-B", str(tmp_path / "alone")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = " ".join(alone.stderr.split())
    assert alone.returncode != 0
    assert "small needs Arm's Ethos-U core driver, and there is no library" in said
    assert "add_subdirectory() the driver" in said and "-DHTVM_ETHOS_U_DRIVER=<library>" in said
    folder = runtime_c() / "soc" / "ethos_u"
    sources = [path for path in folder.glob("model/*.c") if path.name != "ethos_u_soc.c"]
    project = PROJECT.format(
        library=library, sources=" ".join(map(str, sorted(sources))), folder=folder,
        includes=runtime_c() / "include", package=package,
    )  # fmt: skip
    (tmp_path / "CMakeLists.txt").write_text(project)
    given = ["-DSMALL_CHECK=ON", "-DCMAKE_BUILD_TYPE=Release"]
    given += [] if library == "ethosu_core_driver" else [f"-DHTVM_ETHOS_U_DRIVER={library}"]
    for line in (["-S", tmp_path, "-B", build, *given], ["--build", build]):
        done = subprocess.run(
            [cmake, *map(str, line)], capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run(
        [str(build / "package" / "small_check")], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("PASS: small_run returned 0, 5 of 5"), done.stdout
