"""Packages of build systems for boards: names, refusals, and what GCC makes of them."""

from __future__ import annotations

import configparser
import json
import os
import subprocess
from pathlib import Path

import pytest

import htvm
from byoc_dory.errors import TargetError
from byoc_dory.soc.board import boards
from byoc_dory.soc.registry import resolve
from htvm.firmware.packages import gcc_flags, refuse_kind
from htvm.tools.cli import main
from htvm.tools.cli.arguments import open_model
from tests.tools import tool

STRICT = ("-Wall", "-Wextra", "-Werror")


@pytest.fixture(scope="module")
def digits() -> htvm.Model:
    return open_model("zoo:digits")


@pytest.mark.rotating(1)
@pytest.mark.parametrize(
    ("board", "names", "main"),
    [
        ("nucleo-f446re", ("ststm32", "nucleo_f446re", "arduino"), "main.cpp"),
        ("teensy-41", ("teensy", "teensy41", "arduino"), "main.cpp"),
        ("mimxrt1060-evk", ("nxpimxrt", "mimxrt1060_evk", "zephyr"), "main.c"),
        pytest.param(
            "esp32-c3", ("espressif32", "esp32-c3-devkitm-1", "arduino"), "main.cpp",
            marks=pytest.mark.slow,
        ),
        ("", ("", "", "arduino"), "main.cpp"),
    ],
)  # fmt: skip
def test_platformio_follows_the_board(
    board: str, names: tuple[str, str, str], main: str, digits: htvm.Model, tmp_path: Path
) -> None:
    """Its three names are the board's; the example prints over what that framework initialises."""
    package = htvm.build(digits, board or "cortex_m4").export(tmp_path / "lib", kind="platformio")
    ini = configparser.ConfigParser()
    ini.read(package / "examples/check/platformio.ini")
    check = ini["env:check"]
    assert (check["platform"], check["board"], check["framework"]) == names
    (example,) = json.loads((package / "library.json").read_text())["examples"]
    assert f"src/{main}" in example["files"]
    text = (package / "examples/check/src" / main).read_text()
    assert ("Serial.begin(" in text) == (names[2] == "arduino") == ("printf(" not in text)
    prj = package / "examples/check/zephyr/prj.conf"
    assert prj.is_file() == (names[2] == "zephyr")
    assert names[2] != "zephyr" or "CONFIG_STDOUT_CONSOLE=y" in prj.read_text().split()
    assert ("First write `platform` and `board`" in (package / "README.md").read_text()) == (
        not board
    )


@pytest.mark.parametrize(
    ("target", "kind", "said"),
    [
        ("cortex_m4", "esp-idf", "ESP-IDF is for chips of Espressif.*Cortex-M4"),
        ("nucleo-l4r5zi", "esp-idf", "ESP-IDF is for.*NUCLEO-L4R5ZI has a STM32L4R5ZI"),
        ("longan-nano", "esp-idf", "ESP-IDF is for.*Longan Nano has a GD32VF103CB"),
        ("nrf54l15-dk", "platformio", "what PlatformIO calls the board nrf54l15-dk"),
        ("esp32-c6", "cmsis", "a CMSIS pack is for Cortex-M cores"),
    ],
)
def test_build_systems_without_the_board(
    target: str, kind: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Refused before anything is opened or built."""
    with pytest.raises(TargetError, match=said):
        refuse_kind(kind, resolve(target).soc)
    assert main(["compile", "no.tflite", "-t", target, "--as", kind, "--out", "never"]) != 0
    assert f"package '{kind}'" in capsys.readouterr().err and not Path("never").exists()
    for known in ("zephyr", "cmake", "arduino"):
        refuse_kind(known, resolve(target).soc)


@pytest.mark.parametrize(
    "board",
    [
        "mps2-an385",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("mps2-an386", "mps2-an500", "mps2-an505", "mps3-an547")
        ),
    ],
)
def test_cmake_builds_and_runs_for_a_board(board: str, digits: htvm.Model, tmp_path: Path) -> None:
    """By the package's own toolchain file, start-up code and linker script, printed in QEMU."""
    tool("qemu-system-arm")
    build = built_by_gcc(board, digits, tmp_path)
    done = subprocess.run(
        ["ctest", "--test-dir", str(build), "--verbose"],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0 and "PASS: digits_run returned 0, 10 of 10" in done.stdout


ARM = [b.name for b in boards().values() if b.core.startswith("cortex") and not b.npu]


@pytest.mark.rotating(1)
@pytest.mark.parametrize("board", ARM)
def test_gcc_links_for_every_board(board: str, digits: htvm.Model, tmp_path: Path) -> None:
    """For its memories, with its unit for floating point, and with newlib's printf."""
    build = built_by_gcc(board, digits, tmp_path)
    told = subprocess.run(
        [tool("arm-none-eabi-readelf"), "-A", str(build / "digits_check")],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    hard = "-mfloat-abi=hard" in gcc_flags(resolve(board).soc, boards()[board])
    assert ("Tag_ABI_VFP_args: VFP registers" in told) == hard


@pytest.mark.parametrize(
    ("known", "chosen"), [("cortex-m85", "cortex-m85"), ("cortex-m55", "cortex-m55")]
)
def test_an_older_gcc_compiles_for_the_core_before(
    known: str, chosen: str, digits: htvm.Model, tmp_path: Path
) -> None:
    """The toolchain file asks the compiler whether it knows a core that is newer than most GCCs."""
    cmake = tool("cmake")
    package = htvm.build(digits, "ek-ra8m1", platform="arm").export(tmp_path / "p", kind="cmake")
    gcc = tmp_path / "arm-none-eabi-gcc"
    gcc.write_text(f"#!/bin/sh\n[ $1 = -mcpu={known} ]\n")
    gcc.chmod(0o755)
    (tmp_path / "flags.cmake").write_text(
        f'include("{package / "toolchain.cmake"}")\nmessage("${{CMAKE_C_FLAGS_INIT}}")\n'
    )
    told = subprocess.run(
        [cmake, "-P", tmp_path / "flags.cmake"],
        capture_output=True, text=True, check=True,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    ).stderr  # fmt: skip
    assert told.startswith(f"-mthumb -mcpu={chosen} -mfloat-abi=hard ")


def built_by_gcc(board: str, digits: htvm.Model, folder: Path) -> Path:
    """Return the folder where CMake built the package for a board with Arm's GCC, strictly."""
    cmake = tool("cmake")
    tool("arm-none-eabi-gcc")
    package = htvm.build(digits, board, platform="arm").export(folder / "package", kind="cmake")
    build, environment = folder / "build", {**os.environ, "CFLAGS": " ".join(STRICT)}
    toolchain = f"-DCMAKE_TOOLCHAIN_FILE={package / 'toolchain.cmake'}"
    for line in (["-S", package, "-B", build, toolchain], ["--build", build]):
        done = subprocess.run(
            [cmake, *map(str, line)],
            capture_output=True, text=True, check=False, timeout=300, env=environment,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    return build


def test_a_board_has_the_flags_of_its_core() -> None:
    """All objects of a program must agree in the registers of floating point."""
    for board in boards().values():
        soc = resolve(board.name).soc
        if soc.host.arm is None:
            continue
        flags = gcc_flags(soc, board)
        assert f"-mcpu={board.core.replace('_', '-')}" in flags
        hard = "-mfloat-abi=hard" in flags
        vectors = soc.host.simd == "mve"
        assert hard == bool(board.fpu or vectors)
        assert (f"-mfpu={board.fpu}" in flags) == (hard and not vectors)
