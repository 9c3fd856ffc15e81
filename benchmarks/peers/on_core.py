"""What runs on a Cortex-M4: instructions, flash and RAM of one inference in the emulator.

All C is compiled by GCC with ``-O2``; floating point is in software, as on all cores here.  RAM is
all variables, those of inputs and outputs included, and the stack as measured by painting it.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.peers.answer import Case
from benchmarks.tflm.compilers import Kit, kit_of
from benchmarks.tflm.firmware import core_flags
from benchmarks.tflm.run import compiled_of
from byoc_dory.soc.base import Soc
from byoc_dory.soc.registry import resolve
from htvm.firmware import arm
from htvm.firmware.build import build_arm
from htvm.firmware.linked import Firmware
from htvm.sim.arm import run_arm
from htvm.sim.runner import outcome, run

__all__ = ["CORE", "OnCore", "of_source", "ours"]

CORE = "cortex_m4"
_STACK = 256 * 1024
_RAM = 2 * 1024 * 1024
_LIBC = Path(__file__).parents[1] / "tflm" / "libc.c"
_MAIN = """#include <stdint.h>
#define NOINIT __attribute__((section(".noinit"), aligned(16), used))
NOINIT uint8_t given[{given}], computed[{computed}];
void {entry}(const void *input, void *output);
int main(void)
{{
    {entry}(given, computed);
    return 0;
}}
"""


@dataclass(frozen=True)
class OnCore:
    """What one inference took.

    Attributes:
        instructions: executed.
        flash: bytes of code and constants.
        ram: bytes of variables and stack.
        equal: whether the output was the oracle's.
    """

    instructions: int
    flash: int
    ram: int
    equal: bool


@lru_cache(maxsize=1)
def _machine() -> tuple[Soc, Kit]:
    """Return a core with more RAM than a chip has, and its compiler."""
    soc = resolve(CORE).soc
    memories = [replace(each, size=_RAM) if each.name == "L2" else each for each in soc.memories]
    soc = replace(soc, host=replace(soc.host, stack=_STACK), memories=tuple(memories))
    return soc, kit_of("gcc", "-O2", soc)


def of_source(source: Path, entry: str, case: Case) -> OnCore:
    """Build and run a C file that computes a network.

    Args:
        source: the file; what it needs of a C library is in GCC's.
        entry: its function, which takes the input's address and the output's.
        case: the network; its first inference is run.

    Raises:
        HtvmError: the file is not compiled, or its program fails.
    """
    soc, kit = _machine()
    given, wanted = _inference(case)
    with tempfile.TemporaryDirectory(prefix="htvm-peers-") as name:
        folder = Path(name)
        main = folder / "main.c"
        main.write_text(_MAIN.format(given=given.nbytes, computed=wanted.nbytes, entry=entry))
        flags = [*core_flags(soc, kit), "-w", "-std=c11", "-O2"]
        objects = [
            kit.compiler.compile_cross(
                [path], folder / f"{path.stem}.o", list(kit.c), flags, None, ["-c"]
            )
            for path in (main, source, _LIBC)
        ]
        arm.build_firmware(objects, soc, folder, kit.compiler, libraries=kit.libraries)
        firmware = Firmware.open(folder / "firmware.elf", soc, soc.host.stack)
        ran = run_arm(
            firmware,
            {"given": given.tobytes()},
            {"computed": wanted.nbytes},
            entry=entry,
            kernels=(),
            compiler=kit.compiler,
        )
    found = np.frombuffer(ran.outputs["computed"], wanted.dtype).reshape(wanted.shape)
    memory = firmware.memory
    ram = memory.ram - memory.stack + ran.stack_used
    return OnCore(ran.instructions, memory.flash, ram, bool(np.array_equal(found, wanted)))


def ours(case: Case) -> OnCore:
    """Build and run this project's program of a network.

    Raises:
        HtvmError: it is not compiled, or fails.
    """
    _, kit = _machine()
    given, wanted = _inference(case)
    compiled = compiled_of(Path(case.path), CORE)
    soc = compiled.target.soc
    built = build_arm(compiled.program, soc, kit.compiler)
    [info] = compiled.program.inputs
    raw = run(built, [given.reshape(tuple(info.shape))])
    found = np.ravel(outcome(raw, compiled.program.steps, soc).outputs[0])
    assert raw.instructions is not None and raw.stack_used is not None
    sizes = built.sizes
    return OnCore(
        raw.instructions,
        sizes.code + sizes.constants,
        sizes.arena + sizes.io + sizes.other + raw.stack_used,
        bool(np.array_equal(found, np.ravel(wanted))),
    )


def _inference(case: Case) -> tuple[np.ndarray, np.ndarray]:
    with np.load(case.golden) as golden:
        return golden["inputs"][0], golden["outputs"][0]
