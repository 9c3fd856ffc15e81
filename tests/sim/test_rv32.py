"""Firmware for the rv32 platform: linking, memory, running, and what is said when it fails."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from htvm.errors import ExportError, L2OverflowError, SimulationError, ToolchainError
from htvm.firmware.machine import BARE
from htvm.firmware.rv32 import Firmware, build_firmware
from htvm.firmware.toolchain import Compiler
from htvm.sim.rv32 import run_rv32

FLAGS = ("-Wall", "-Wextra", "-Werror")
NOINIT = '__attribute__((aligned(16), section(".noinit")))'

PROGRAM = f"""
#include "htvm_hal.h"
#include <math.h>
#include <string.h>

uint8_t input[1000] {NOINIT};
uint8_t output[1000] {NOINIT};
uint32_t jobs[3] {NOINIT};
float rounded[8] {NOINIT};
uint32_t zeroed[100];
uint32_t initialised = 7;
const uint32_t constants[4] = {{1, 2, 3, 4}};

static uint32_t recurse(volatile uint8_t *above, uint32_t depth)
{{
    volatile uint8_t frame[256];
    frame[depth % 256] = above[0];
    return depth == 0 ? frame[0] : recurse(frame, depth - 1) + frame[depth % 256];
}}

int main(void)
{{
    volatile uint8_t start = 1;
    htvm_hal_trace(0);
    switch (jobs[0]) {{
    case 0:
        memcpy(output + jobs[1], input + jobs[2], 500);
        break;
    case 1:
        memmove(input + jobs[1], input + jobs[2], 500);
        memcpy(output, input, 1000);
        break;
    case 2:
        memset(output + jobs[1], (int)jobs[2], 500);
        break;
    case 3:
        for (int i = 0; i < 8; ++i) {{
            rounded[i] = nearbyintf(rounded[i]);
        }}
        break;
    case 4:
        return (int)jobs[1];
    case 5:
        output[0] = (uint8_t)recurse(&start, jobs[1]);
        break;
    case 6:
        output[0] = (uint8_t)(memcmp(input, input + 500, jobs[1]) + 1);
        output[1] = (uint8_t)strlen((const char *)input);
        break;
    default:
        htvm_putchar('?');
        htvm_exit(70000 + (int32_t)zeroed[99] + (int32_t)initialised + (int32_t)constants[3]);
    }}
    htvm_hal_trace(1);
    return 0;
}}
"""


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory, compiler: Compiler) -> Firmware:
    folder = tmp_path_factory.mktemp("firmware")
    (folder / "main.c").write_text(PROGRAM)
    return build_firmware([folder / "main.c"], [], BARE, folder / "out", compiler, 4096, FLAGS)


def job(*numbers: int) -> bytes:
    return struct.pack("<3I", *numbers)


INPUT = bytes((7 * i + i // 256) % 256 for i in range(1000))


@pytest.mark.parametrize(("to", "start"), [(0, 0), (1, 1), (2, 0), (0, 3), (3, 2), (500, 499)])
def test_memcpy(to: int, start: int, firmware: Firmware) -> None:
    inputs = {"jobs": job(0, to, start), "input": INPUT, "output": bytes(1000)}
    result = run_rv32(firmware, inputs, {"output": 1000})
    expected = bytearray(1000)
    expected[to : to + 500] = INPUT[start : start + 500]
    assert result.outputs["output"] == expected


@pytest.mark.parametrize(("to", "start"), [(0, 1), (1, 0), (100, 104), (104, 100), (500, 0)])
def test_memmove(to: int, start: int, firmware: Firmware) -> None:
    result = run_rv32(firmware, {"jobs": job(1, to, start), "input": INPUT}, {"output": 1000})
    expected = bytearray(INPUT)
    expected[to : to + 500] = INPUT[start : start + 500]
    assert result.outputs["output"] == expected


@pytest.mark.parametrize("to", [0, 1, 2, 3, 500])
def test_memset(to: int, firmware: Firmware) -> None:
    inputs = {"jobs": job(2, to, 0x1A5), "output": bytes(1000)}
    expected = bytes(to) + b"\xa5" * 500 + bytes(500 - to)
    assert run_rv32(firmware, inputs, {"output": 1000}).outputs["output"] == expected


def test_copying_is_done_in_words(firmware: Firmware) -> None:
    result = run_rv32(firmware, {"jobs": job(0, 0, 0)}, {})
    (first, _), (last, _) = result.marks
    assert last - first < 600  # 500 bytes; byte by byte it is 5 cycles each


@pytest.mark.parametrize(("count", "order"), [(500, 0), (10, 1)])
def test_memcmp_and_strlen(count: int, order: int, firmware: Firmware) -> None:
    half = bytearray(b"abc" * 100 + b"\0" * 200)
    data = bytes(half[:100]) + b"A" + bytes(half[101:500]) + bytes(half[:500])
    result = run_rv32(firmware, {"jobs": job(6, count, 0), "input": data}, {"output": 2})
    assert result.outputs["output"] == bytes([order, 300 % 256])


def test_nearbyintf_rounds_ties_to_even(firmware: Firmware) -> None:
    values = (0.5, 1.5, 2.5, -0.5, -1.5, 1e9, 8388607.5, 0.49999997)
    inputs = {"jobs": job(3, 0, 0), "rounded": struct.pack("<8f", *values)}
    result = run_rv32(firmware, inputs, {"rounded": 32})
    expected = (0.0, 2.0, 2.0, -0.0, -2.0, 1e9, 8388608.0, 0.0)
    assert result.outputs["rounded"] == struct.pack("<8f", *expected)


def test_code_of_main_is_an_error(firmware: Firmware) -> None:
    with pytest.raises(SimulationError, match="firmware ended with code 42"):
        run_rv32(firmware, {"jobs": job(4, 42, 0)}, {})


def test_exit_and_printing_and_memory_at_the_start(firmware: Firmware) -> None:
    """The low 16 bits of the code: zeroed data is 0, initialised data 7, the constant 4."""
    with pytest.raises(SimulationError, match=rf"code {(70000 + 7 + 4) % 65536}: \?"):
        run_rv32(firmware, {"jobs": job(9, 0, 0)}, {})


def test_stack_use_is_measured(firmware: Firmware) -> None:
    shallow = run_rv32(firmware, {"jobs": job(5, 0, 0)}, {}).stack_used
    deep = run_rv32(firmware, {"jobs": job(5, 4, 0)}, {}).stack_used
    assert 4 * 256 <= deep - shallow <= 4 * 350


def test_stack_overflow_is_noticed(firmware: Firmware) -> None:
    with pytest.raises(SimulationError, match="stack overflow"):
        run_rv32(firmware, {"jobs": job(5, 15, 0)}, {})


def test_memory_use(firmware: Firmware) -> None:
    use = firmware.memory
    assert use.zeroed >= 400 and use.uninitialised >= 2044 and use.stack == 4096
    assert use.constants >= 16 and use.data >= 4 and 500 < use.code < 5000


def test_unknown_symbol(firmware: Firmware) -> None:
    with pytest.raises(SimulationError, match="no symbol 'nothing'"):
        run_rv32(firmware, {"nothing": b""}, {})


def test_input_that_is_too_long(firmware: Firmware) -> None:
    with pytest.raises(SimulationError, match="13 bytes do not fit into 'jobs', which has 12"):
        run_rv32(firmware, {"jobs": bytes(13)}, {})


def test_input_that_the_start_would_clear(firmware: Firmware) -> None:
    with pytest.raises(SimulationError, match=r"'zeroed' is in .bss.*noinit"):
        run_rv32(firmware, {"zeroed": bytes(4)}, {})


# Not even the variables fit; all fits but the stack.
@pytest.mark.parametrize("size", [2000, 8000])
def test_overflow_says_what_needs_how_much(size: int, tmp_path: Path, compiler: Compiler) -> None:
    (tmp_path / "main.c").write_text(PROGRAM)
    machine = replace(BARE, name="small", ram=((0x8000_0000, size),))
    with pytest.raises(L2OverflowError) as caught:
        build_firmware([tmp_path / "main.c"], [], machine, tmp_path / "out", compiler, 8192)
    message = str(caught.value)
    assert f"there are {size:,} B" in message and "machine small" in message
    assert "stack 8,192 B" in message and "zeroed 400 B" in message
    assert not list((tmp_path / "out").glob("*.elf"))


def test_compile_error_is_not_an_overflow(tmp_path: Path, compiler: Compiler) -> None:
    (tmp_path / "main.c").write_text("int main(void) { return missing(); }\n")
    with pytest.raises(ToolchainError, match="missing"):
        build_firmware([tmp_path / "main.c"], [], BARE, tmp_path / "out", compiler)


def test_folder_that_cannot_be_written(tmp_path: Path, compiler: Compiler) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(ExportError, match="cannot write the firmware"):
        build_firmware([], [], BARE, tmp_path / "out", compiler)


def test_two_builds_are_identical(tmp_path: Path, compiler: Compiler) -> None:
    (tmp_path / "main.c").write_text(PROGRAM)
    elfs = [
        build_firmware([tmp_path / "main.c"], [], BARE, tmp_path / name, compiler).elf.read_bytes()
        for name in ("a", "b")
    ]
    assert elfs[0] == elfs[1]
