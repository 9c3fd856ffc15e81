"""Measuring what the host does in a program, without its accelerators.

Kernels for the CPU are written by TVM and compiled by a C compiler, so their cycles follow from
neither sizes nor multiply-accumulates alone.  They are measured instead, once: the program's steps
on the host (its kernels, the conversions between layouts, copies) are simulated, those on
accelerators are left out.  Inputs are seeded, and the arena starts with seeded bytes in place of
what accelerators would write; only kernels in reals, which are computed in software, take a time
that depends on data.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import L2OverflowError
from htvm.aot.entry import model_sources, render, template_fields
from htvm.firmware.build import RUN_MARK, build_arm, build_qemu, build_rv32
from htvm.firmware.builds import kept_build
from htvm.firmware.isa import kernel_flags, rv32_flags
from htvm.firmware.toolchain import Compiler
from htvm.inputs import seeded_inputs
from htvm.sim.runner import run

if TYPE_CHECKING:
    from byoc_dory.soc.base import Soc
    from htvm.aot.program import Program

_PRODUCT = "cycles.json"
_SEED = 0
_ALIGN = 16
# More than any network here needs; the simulator allocates it.
_LARGEST_L2 = 64 * 1024 * 1024


def host_step_cycles(program: Program, soc: Soc) -> tuple[int | None, ...]:
    """Simulate the steps of a program that run on the host, and keep the result.

    If the program does not fit L2, a larger one is simulated where the address map has room: the
    cycles do not depend on its size.

    Args:
        program: the program.
        soc: the SoC it is for.

    Returns:
        For each step its cycles (on Cortex-M cores: instructions); None for an accelerator's.

    Raises:
        L2OverflowError: the steps need more memory than there are addresses.
        DependencyError: the core's emulator is not installed.
        SimulationError: the core trapped.
        ToolchainError: there is no compiler, or it fails.
    """
    numbers = [number for number, step in enumerate(program.steps) if step.kind != "layer"]
    step_cycles: list[int | None] = [None] * len(program.steps)
    if not numbers:
        return tuple(step_cycles)
    part = replace(program, steps=tuple(program.steps[number] for number in numbers))
    try:
        cycles = _measured_steps(part, soc)
    except L2OverflowError:
        cycles = _measured_steps(part, _with_larger_l2(soc))
    for number, own in zip(numbers, cycles, strict=True):
        step_cycles[number] = own
    return tuple(step_cycles)


def _measured_steps(program: Program, soc: Soc) -> list[int]:
    """Return the cycles of each step, from the cache if the same steps were simulated before."""
    files = {**model_sources(program), "main.c": _main(program)}
    compiler, flags = Compiler.zig(), (*rv32_flags(soc.host.isa), *kernel_flags(soc.host))

    def make(folder: Path, _sources: list[Path]) -> None:
        cycles = _simulated(program, soc, compiler, folder / "cache")
        (folder / _PRODUCT).write_text(json.dumps(cycles), encoding="utf-8")

    variant = ("host steps", *flags)
    path = kept_build(_PRODUCT, files, soc, variant, compiler, None, make)
    return [int(value) for value in json.loads(path.read_text(encoding="utf-8"))]


def _simulated(program: Program, soc: Soc, compiler: Compiler, cache_dir: Path) -> list[int]:
    inputs = seeded_inputs(program.inputs, _SEED)
    if soc.host.platform != "rv32":
        # No accelerator is left out, so the arena needs no contents.
        build = build_qemu if soc.host.platform == "qemu" else build_arm
        counts = run(build(program, soc, compiler, cache_dir), inputs).step_instructions
        return [0 if count is None else count[1] - count[0] for count in counts]
    built = build_rv32(program, soc, compiler, cache_dir, extra_sources={"main.c": _main(program)})
    contents = np.random.default_rng(_SEED).bytes(_arena_bytes(program))
    return run(built, inputs, arena=contents).step_cycles


def _main(program: Program) -> str:
    return render(
        "run_rv32.c.jinja",
        **template_fields(program),
        run_mark=RUN_MARK,
        own_arena=True,
    )


def _arena_bytes(program: Program) -> int:
    return max(program.plan.peak, _ALIGN)


def _with_larger_l2(soc: Soc) -> Soc:
    """Return the SoC with an L2 up to the next thing in its address map."""
    memory = soc.memory("L2")
    used_bases = [other.base for other in soc.memories]
    used_bases += [entry.registers for entry in soc.accelerators]
    used_bases += [soc.sim.putchar, soc.sim.exit, soc.sim.trace]
    used_bases += [soc.dma.registers] if soc.dma is not None else []
    used_bases += [soc.cluster.registers] if soc.cluster is not None else []
    end = min([address for address in used_bases if address > memory.base], default=2**32)
    size = min(end - memory.base, _LARGEST_L2) // _ALIGN * _ALIGN
    larger = replace(memory, size=max(size, memory.size))
    memories = tuple(larger if other.name == "L2" else other for other in soc.memories)
    return replace(soc, memories=memories)
