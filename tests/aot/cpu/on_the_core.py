"""Helper: run modules of one input on a simulated host core, scalar or with SIMD."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from byoc_dory.soc.base import Soc
from byoc_dory.soc.cores import CV32E40P_SIMD
from byoc_dory.soc.registry import resolve
from htvm.aot.program import Assembly, Program, assemble
from htvm.firmware.build import build_arm, build_qemu, build_rv32
from htvm.firmware.toolchain import Compiler
from htvm.model import TensorInfo
from htvm.sim.runner import RawResult, run
from tests.aot.cpu.modules import int8
from tests.aot.cpu.native import compiled


def soc_of(mode: str) -> Soc:
    """A microcontroller with the host core that kernels of a mode are for (`native.MODES`)."""
    soc = resolve("generic.cpu").soc
    if mode != "simd":
        return soc
    return replace(soc, host=replace(CV32E40P_SIMD, stack=soc.host.stack))


def program_of(built: Any, mode: str) -> tuple[Program, int]:
    """The program of a module with one input and one output, and its multiply-accumulates."""
    code = compiled(built, "net", mode)
    shape = tuple(int(size) for size in built["main"].params[0].ty.shape)
    output = code.calls[-1].outputs[0]
    program = assemble(
        Assembly(
            name="net",
            inputs=(TensorInfo("x", shape, "int8"),),
            outputs=(TensorInfo("y", output.shape, output.dtype),),
            calls=code.calls,
            results=code.results,
            cpu_kernels=code.kernels,
            regions={},
            constants=code.constants,
        )
    )
    return program, sum(call.macs for call in code.calls)


def on_the_core(
    built: Any, data: np.ndarray, compiler: Compiler, folder: Path, mode: str
) -> RawResult:
    """Run a module on the core."""
    if mode.startswith(("cortex_m", "rv32imcv", "rv64gcv")):
        soc = resolve(mode).soc
        program, _ = program_of(built, soc.host.simd)
        build = build_qemu if soc.host.platform == "qemu" else build_arm
        return run(build(program, soc, compiler, folder), [data])
    program, _ = program_of(built, mode)
    return run(build_rv32(program, soc_of(mode), compiler, folder), [data])


def cycles_per_mac(built: Any, compiler: Compiler, folder: Path, mode: str = "scheduled") -> float:
    """Cycles of all kernels of a module by its multiply-accumulates."""
    program, macs = program_of(built, mode)
    data = int8(np.random.default_rng(0), *program.inputs[0].shape)
    result = run(build_rv32(program, soc_of(mode), compiler, folder), [data])
    return sum(result.step_cycles) / macs
