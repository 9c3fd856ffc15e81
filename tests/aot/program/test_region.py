"""A real region of the digital core as a program: planned, built, run on both platforms."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.options import TilingOptions
from byoc_dory.soc.diana.description import DIANA
from htvm.aot.program import Assembly, ModelCall, Program, Value, assemble
from htvm.firmware.build import build_host, build_rv32
from htvm.firmware.export import export
from htvm.firmware.socs import machine_of
from htvm.sim.iss import run_elf
from htvm.sim.runner import RawResult, run
from tests.aot.tiny import Info
from tests.byoc_dory.program import Case, make_case
from tests.byoc_dory.test_emit_native import residual_region
from tests.tools import tool


def _program(case: Case) -> Program:
    names = [f"out{i}" for i in range(len(case.outputs))]
    call = ModelCall(
        case.code.name,
        tuple(f"in{i}" for i in range(len(case.inputs))),
        tuple(Value(name, o.shape, "int8") for name, o in zip(names, case.outputs, strict=True)),
    )
    return assemble(
        Assembly(
            name="net",
            inputs=[Info(f"in{i}", array.shape) for i, array in enumerate(case.inputs)],
            outputs=[
                Info(name, array.shape) for name, array in zip(names, case.outputs, strict=True)
            ],
            calls=[call],
            results=names,
            regions={case.code.name: case.code},
        )
    )


@pytest.fixture(scope="module")
def case() -> Case:
    return make_case(residual_region(), TilingOptions(l1_budget=7_000), "net", 5)


def _check(result: RawResult, case: Case) -> None:
    for got, want in zip(result.outputs, case.outputs, strict=True):
        np.testing.assert_array_equal(got, want)


def test_both_platforms_equal_the_reference(case: Case, tmp_path: Path) -> None:
    program = _program(case)
    result = run(build_rv32(program, DIANA, cache_dir=tmp_path), case.inputs)
    _check(result, case)
    native = run(build_host(program, DIANA, cache_dir=tmp_path, sanitize=True), case.inputs)
    _check(native, case)
    # The devices did the same work on both.
    for unit in ("dma", "digital"):
        work = [
            [event["bytes"] for event in events if event["unit"] == unit]
            for events in (result.events, native.events)
        ]
        assert work[0] == work[1] and len(work[0]) > 7


def test_device_times_lie_inside_their_steps(case: Case, tmp_path: Path) -> None:
    program = _program(case)
    result = run(build_rv32(program, DIANA, cache_dir=tmp_path), case.inputs)
    assert result.cycles is not None
    for event in result.events:
        (step,) = [i for i, (a, b) in enumerate(result.spans) if a <= event["start"] < b]
        assert event["end"] <= result.spans[step][1]
        assert program.steps[step].kind == "layer"


def test_the_arena_is_as_small_as_what_lives_at_once(case: Case) -> None:
    plan = _program(case).plan
    assert plan.peak == plan.live


def test_the_exported_firmware_checks_itself(case: Case, tmp_path: Path) -> None:
    tool("make")
    export(_program(case), DIANA, tmp_path / "p", (case.inputs, case.outputs))
    zig = f"{sys.executable} -m ziglang cc"
    command = ["make", "rv32", f"PYTHON={sys.executable}", f"RV32_CC={zig}"]
    done = subprocess.run(command, cwd=tmp_path / "p", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result = run_elf(tmp_path / "p" / "build" / "net.elf", machine_of(DIANA))
    assert result.output == b"PASS: net\n"
