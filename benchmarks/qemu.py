"""Firmware on QEMU, a machine that shares nothing with the emulator of ``platform="arm"``.

The firmware holds inputs and expected outputs, compares them itself, and says by semihosting how
many elements differ.  QEMU counts nothing: only whether a network computes the same is learnt.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.compilers_cell import Cell, linked
from byoc_dory.soc.board import boards
from byoc_dory.soc.header import render
from byoc_dory.soc.registry import board_target, resolve
from htvm.aot.entry import model_sources
from htvm.compiled import Compiled
from htvm.firmware import arm
from htvm.firmware.paths import runtime_c
from htvm.firmware.project import golden_files
from htvm.firmware.toolchain import Compiler

__all__ = ["PROGRAM", "different", "machines"]

PROGRAM = "qemu-system-arm"

MAIN = """
#include <stdint.h>
#include "{name}_golden.h"

static void call(uint32_t operation, const void *argument)
{{
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}}

static void number(uint32_t value)
{{
    char text[12] = " ";
    for (uint32_t place = 10; place > 0; place--, value /= 10) {{
        text[place] = (char)('0' + value % 10);
    }}
    call(4, text);
}}

int main(void)
{{
    const {name}_golden_t result = {name}_golden_check();
    number((uint32_t)result.code);
    number(result.elements);
    number(result.different);
    call(0x18, (const void *)0x20026);
    return 0;
}}
"""


def machines() -> dict[str, str]:
    """Return the board that QEMU models for each core."""
    return {board.core: name for name, board in boards().items() if board.qemu}


def different(
    compiled: Compiled,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    folder: Path,
    cell: Cell | None = None,
) -> int:
    """Run a network on QEMU's board with its core; return how many output elements differ.

    Args:
        compiled: the network, compiled for a core.
        inputs, outputs: arrays in its order; what it shall compute.
        folder: for its files.
        cell: the compiler and its settings, if not our own.

    Raises:
        RuntimeError: QEMU is not installed, or the firmware was not compiled, or did not come to
            its end.
    """
    program = shutil.which(PROGRAM)
    if program is None:
        raise RuntimeError(f"{PROGRAM} is not installed")
    core = compiled.target.name.split(":")[0]
    # It has no machine of the M0+, and an M3 has all of its instructions.
    board = boards()[machines()[core if core in machines() else "cortex_m3"]]
    soc = resolve(board_target(board.name)).soc
    name = compiled.program.name
    files = {
        **model_sources(compiled.program),
        **golden_files(compiled.program, (inputs, outputs)),
        "main.c": MAIN.format(name=name),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        (folder / file).write_text(text, encoding="utf-8")
    sources, compiler = sorted(folder.glob("*.c")), Compiler.zig()
    if cell is None:
        arm.build_firmware(sources, soc, folder, compiler)
    else:
        script = folder / "link.ld"
        script.write_text(arm.linker_script(soc), encoding="utf-8")
        includes = [compiler.headers([("htvm_soc.h", render(soc))]), *arm.include_folders(soc)]
        files = [*sources, runtime_c() / "platform" / "arm" / "startup.c"]
        error = linked(cell, files, includes, ("-T", str(script)), folder)
        if error:
            raise RuntimeError(f"{cell}: {error}")
        (folder / "out.elf").rename(folder / "firmware.elf")
    line = [program, "-M", board.qemu, "-kernel", str(folder / "firmware.elf"), "-nographic"]
    line += ["-semihosting-config", "enable=on,target=native", "-monitor", "none"]
    done = subprocess.run(
        line, capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL
    )
    found = re.findall(r"\d{10}", done.stdout + done.stderr)
    if len(found) != 3 or int(found[0]) != 0:
        raise RuntimeError(f"QEMU's {board.qemu} said {(done.stdout + done.stderr)[-300:]!r}")
    return int(found[2])
