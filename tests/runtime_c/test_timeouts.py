"""Devices that never answer: drivers give up, by the hook of a board's port, and say so."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import htvm
from byoc_dory.soc.header import render
from byoc_dory.soc.registry import resolve
from htvm.aot.entry import model_sources
from htvm.firmware.host import driver_sources
from htvm.firmware.paths import driver_folders, runtime_c
from htvm.firmware.toolchain import Compiler

HAL = """
#define htvm_hal_read htvm_real_read
#define htvm_hal_write htvm_real_write
#define HTVM_PORT_POLLS 1000u
#include "{port}/htvm_hal_platform.h"
#undef htvm_hal_read
#undef htvm_hal_write

/* Every register has the same value for ever. */
static inline uint32_t htvm_hal_read(uint32_t addr)
{{
    (void)addr;
    return {value};
}}

static inline void htvm_hal_write(uint32_t addr, uint32_t value)
{{
    (void)addr;
    (void)value;
}}
"""

CALLS = {
    "diana": (
        "1u",  # busy
        '#include "diana_driver.h"\n#include "diana_analog_driver.h"\n',
        "code = diana_dma_wait();",
        "code = diana_digital_conv2d_finish();",
        "code = diana_digital_add_finish();",
    ),
    "diana.dma": (
        "0u",  # no room
        '#include "diana_driver.h"\n',
        "diana_dma_in_start(0, &word, &(diana_block_t){1, 1, 1, 1, 1, 1, 1});",
    ),
    "siracusa": (
        "0xffffffffu",
        '#include "siracusa_neureka_driver.h"\n#include "cluster_dma.h"\n',
        "siracusa_neureka_wait();",
        "siracusa_neureka_wait_for(5u);",
        "siracusa_neureka_program(&(siracusa_neureka_registers_t){0});",
    ),
    "snitch_ita": (
        "0u",
        '#include "snitch_ita_driver.h"\n#include "cluster_dma.h"\n',
        "snitch_ita_program(&(snitch_ita_task_t){0});",
        "code = snitch_ita_wait_for(1u);",
        "cluster_dma_start(&(cluster_dma_t){&word, &word, 4, 1, 4, 4});",
        "cluster_dma_wait(3u);",
    ),
    "dla": (
        "1u",
        '#include "dla_driver.h"\n',
        "code = dla_run(&word, 0u, &(const void *){&word});",
    ),
}


def built(target: str, value: str, main: str, folder: Path, sources: list[Path]) -> str:
    """Compile a program with the drivers of a SoC, run it, and return what it prints."""
    soc = resolve(target).soc
    port = runtime_c() / "platform" / "port"
    (folder / "htvm_hal_platform.h").write_text(HAL.format(port=port, value=value))
    (folder / "htvm_soc.h").write_text(render(soc))
    (folder / "main.c").write_text(main)
    out = folder / "program"
    Compiler.zig().compile_host(
        [folder / "main.c", port / "htvm_port.c", *driver_sources(soc), *sources],
        out,
        [folder, port, runtime_c() / "include", *driver_folders(soc)],
    )
    done = subprocess.run([str(out)], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0
    return done.stdout


@pytest.mark.rotating(2)
@pytest.mark.parametrize("case", CALLS)
def test_every_wait_ends_with_a_code(case: str, tmp_path: Path) -> None:
    value, headers, *calls = CALLS[case]
    text = '#include <stdio.h>\n#include "htvm_hal.h"\n' + headers
    text += "static uint32_t word;\nint main(void)\n{\n    int32_t code;\n"
    for call in calls:
        returns = call.startswith("code")
        text += f'    code = 0;\n    {call}\n    printf("%d ", (int)code);\n' * returns
        text += f"    {call}\n" * (not returns)
        text += '    printf("%d %d\\n", (int)htvm_hal_timed_out(), (int)htvm_hal_timed_out());\n'
    text += "    return (int)word;\n}\n"
    lines = built(case.split(".")[0], value, text, tmp_path, []).splitlines()
    wanted = ["-64 -64 0" if call.startswith("code") else "-64 0" for call in calls]
    assert lines == wanted


def test_the_entry_function_returns_the_code(tmp_path: Path) -> None:
    """Also when what was given up returns nothing itself; the next run begins anew."""
    program = htvm.build(htvm.zoo.digits(), "diana", "host").compiled.program
    for name, text in model_sources(program).items():
        (tmp_path / name).write_text(text)
    sources = [*tmp_path.glob("digits*.c")]
    main = """
#include <stdio.h>
#include "digits.h"
static float input[DIGITS_INPUT_0_ELEMENTS], output[DIGITS_OUTPUT_0_ELEMENTS];
int main(void)
{
    for (int i = 0; i < 2; i++) {
        printf("%d\\n", (int)digits_run(input, output));
    }
    return 0;
}
"""
    assert built("diana", "1u", main, tmp_path, sources).split() == ["-64", "-64"]
    text = (tmp_path / "digits.c").read_text()
    assert len(re.findall(r"code = htvm_hal_timed_out\(\);", text)) == sum(
        step.returns_code for step in program.steps
    )
