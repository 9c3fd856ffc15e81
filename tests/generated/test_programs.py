"""Golden files of whole programs: entry function, headers, constants, project files.

One small network for each SoC; the C of its kernels is not repeated here.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htvm
from byoc_dory.layers import MulShift, Requant, Shift
from htvm.aot.entry import model_sources, render, template_fields
from htvm.build_options import BuildOptions
from htvm.compiled import Compiled
from htvm.firmware.diagnostics import CompileError
from htvm.firmware.project import project_files
from htvm.firmware.toolchain import Compiler
from htvm.pipeline import compile_model
from patterns.ops.add import Add
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.dense import Dense
from patterns.ops.moves.reshape import Reshape
from patterns.ops.tflite.averages import AveragePool
from patterns.ops.tflite.softmax import TfliteSoftmax
from tests.generated.golden import check_golden
from tests.generated.operators import GROUPS, module_of

TARGETS = {"diana": "diana", "snitch_ita": "snitch_ita.cluster", "generic": "generic.cpu"}


def network(requant: Requant) -> htvm.Model:
    """A residual block, a mean, a dense layer and a softmax; a second output is the input."""
    rng = np.random.default_rng(3)

    def draw(*size: int) -> Any:
        return rng.integers(-128, 128, size).astype(np.int8)

    bias = rng.integers(-500, 500, 4).astype(np.int32)

    def write(bb: Any, x: Any) -> list[Any]:
        y = conv2d_of(draw(4, 3, 3, 3), bias, Window(padding=(1, 1, 1, 1)), requant).write(
            bb, [x], "conv/1:0"
        )
        z = conv2d_of(draw(4, 4, 1, 1), bias, Window(), requant, (0, 127)).write(
            bb, [y], "conv/2:0"
        )
        y = Add(requant).write(bb, [y, z], "add")
        y = AveragePool(kernel=(6, 6), strides=(6, 6)).write(bb, [y], "mean")
        y = Reshape((1, 4)).write(bb, [y], "flat")
        y = Dense(draw(5, 4), np.resize(bias, 5), requant).write(bb, [y], "dense")
        y = TfliteSoftmax.of_scale(1 / 16).write(bb, [y], "softmax")
        return [y, Reshape((1, 108)).write(bb, [x], "same")]

    return htvm.load(module_of((((1, 6, 6, 3), "int8"),), write), name="small")


@functools.cache
def compiled(soc: str) -> Compiled:
    requant = MulShift((37,), (13,), (4096,)) if soc == "snitch_ita" else Shift(8)
    return compile_model(network(requant), TARGETS[soc], BuildOptions())


@functools.cache
def files(soc: str) -> dict[str, str]:
    """Every generated file of the exported project, and the mains of the two platforms."""
    made = compiled(soc)
    program = made.program
    golden = (
        [np.zeros(info.shape, info.dtype) for info in program.inputs],
        [np.zeros(info.shape, info.dtype) for info in program.outputs],
    )
    found = project_files(program, made.target.soc, golden)
    fields = template_fields(program)
    found["run_rv32.c"] = render("run_rv32.c.jinja", **fields, run_mark=1_000_000)
    found["run_host.c"] = render("run_host.c.jinja", **fields)
    return found


ONCE = (
    "include/small.h", "src/small.c", "src/small_kernels.h", "src/small_weights.h",
    "src/small_weights.c", "example/small_golden.h", "example/small_golden.c",
    "example/main_host.c", "example/main_rv32.c", "example/main_bare.c", "run_rv32.c",
    "run_host.c", "Makefile",
    "CMakeLists.txt", "README.md", "runtime/include/htvm_soc.h", "runtime/platform/rv32/link.ld",
)  # fmt: skip
"""Kept for DIANA."""

EACH = (
    "src/small.c", "Makefile", "runtime/include/htvm_soc.h", "runtime/platform/rv32/link.ld",
)  # fmt: skip
"""Kept for the others, which differ in little else."""


@pytest.mark.parametrize("name", ONCE)
def test_files_for_diana(name: str, update_golden: bool) -> None:
    check_golden(f"program/diana/{name.split('/')[-1]}", files("diana")[name], update_golden)


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("soc", ["snitch_ita", "generic"])
def test_files_for_others(soc: str, name: str, update_golden: bool) -> None:
    check_golden(f"program/{soc}/{name.split('/')[-1]}", files(soc)[name], update_golden)


def test_kernels_of_floats_refuse_fast_math(update_golden: bool, tmp_path: Path) -> None:
    """The compiler might drop their rounding, which adds and subtracts one number."""
    module = module_of(*GROUPS["borders"])
    made = compile_model(htvm.load(module, name="floats"), "generic.cpu", BuildOptions())
    texts = model_sources(made.program)
    check_golden("program/generic/floats_cpu.c", texts["floats_cpu.c"], update_golden)
    assert "__FAST_MATH__" not in model_sources(compiled("generic").program)["small_cpu.c"]
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    compiler, source = Compiler.zig(), tmp_path / "floats_cpu.c"
    compiler.compile_host([source], tmp_path / "out.o", [tmp_path], ("-c",))
    # The last is what GCC defines with -funsafe-math-optimizations.
    for flag in ("-ffast-math", "-ffinite-math-only", "-D__ASSOCIATIVE_MATH__"):
        with pytest.raises(CompileError, match="leave it out"):
            compiler.compile_host([source], tmp_path / "out.o", [tmp_path], ("-c", flag))


def test_the_network_has_every_kind_of_step() -> None:
    """Or the files above would show less than they seem to."""
    program = compiled("diana").program
    assert {step.kind for step in program.steps} >= {"cpu", "layer", "prologue", "epilogue", "copy"}
    assert program.buffers and program.constants
    assert set(model_sources(program)) <= {name.split("/")[-1] for name in files("diana")}
