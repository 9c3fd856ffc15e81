"""QEMU as a machine: it counts what the other emulator counts, and its failures are named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import htvm
from byoc_dory.errors import DependencyError, SimulationError, TargetError
from byoc_dory.soc.registry import resolve
from htvm.firmware import arm
from htvm.firmware.linked import Firmware
from htvm.firmware.toolchain import Compiler
from htvm.inputs import seeded_inputs
from htvm.sim.arm import run_arm
from htvm.sim.arm_run import ArmRun
from htvm.sim.qemu import PROGRAM, run_qemu
from htvm.tools.cli.arguments import open_model
from tests.sim.test_arm import HEAD, NOTHING, TAIL, asm
from tests.tools import tool

CORES = ("cortex_m3", "cortex_m4", "cortex_m7", "cortex_m33")


@pytest.fixture(autouse=True)
def machine() -> None:
    tool(PROGRAM)


def firmware_of(body: str, folder: Path, core: str) -> arm.ArmFirmware:
    soc, source = arm.on_qemu(resolve(core).soc), folder / "main.c"
    source.write_text(HEAD + body + TAIL)
    arm.build_firmware([source], soc, folder, Compiler.zig())
    return Firmware.open(folder / "firmware.elf", soc, soc.host.stack)


def run(body: str, folder: Path, core: str = "cortex_m55", limit: int = 10**6) -> ArmRun:
    return run_qemu(
        firmware_of(body, folder, core),
        {"given": bytes(range(16))},
        {"result": 16},
        entry="net_run",
        kernels=["first", "second"],
        max_instructions=limit,
    )


@pytest.mark.rotating(1)
@pytest.mark.parametrize("core", CORES)
def test_counts_are_those_of_the_other_emulator(core: str, tmp_path: Path) -> None:
    """The same firmware: instructions, steps, outputs and stack."""
    loop = "ldr r3, =1001\\n1: adds %0, %0, #1\\n it eq\\n moveq %0, #7\\n subs r3, #1\\n bne 1b"
    firmware = firmware_of(asm(loop), tmp_path, core)
    what = {"entry": "net_run", "kernels": ["first", "second"]}
    given, wanted = {"given": bytes(range(16))}, {"result": 16}
    one = run_arm(firmware, given, wanted, compiler=Compiler.zig(), **what)
    other = run_qemu(firmware, given, wanted, **what)
    assert (
        replace(one, executed=None, step_executed=()) == other
        and one.instructions > 5000
        and len(one.steps) == 2
    )


@pytest.mark.slow
@pytest.mark.parametrize("core", CORES)
def test_counts_of_a_network_are_those_of_the_other_emulator(core: str) -> None:
    model = open_model("zoo:digits")
    boards = {
        "cortex_m3": "an385",
        "cortex_m4": "an386",
        "cortex_m7": "an500",
        "cortex_m33": "an505",
    }
    results = []
    for platform in ("arm", "qemu"):
        module = htvm.build(model, f"{core}:board=mps2-{boards[core]}", platform)
        results.append(module.run(seeded_inputs(module.compiled.source.inputs)))
    one, other = results
    assert one.instructions == other.instructions and one.stack_bytes == other.stack_bytes
    assert [a.instructions for a in one.layers] == [b.instructions for b in other.layers]
    np.testing.assert_array_equal(one.outputs[0], other.outputs[0])


def test_vector_instructions_count_as_one(tmp_path: Path) -> None:
    """A loop of three instructions and its end; the beginning is one."""
    counts = []
    for times in (1, 101):
        text = (
            f"ldr r3, ={times}\\n dls lr, r3\\n1: vmov.i8 q0, #1\\n vadd.i8 q0, q0, q0\\n"
            "adds %0, %0, #1\\n le lr, 1b"
        )
        body = asm(text).replace('"r3", "cc"', '"r3", "lr", "q0", "cc"')
        found = run(body, tmp_path)
        assert int.from_bytes(found.outputs["result"][:4], "little") == times
        ((_, begin, end), _) = found.steps
        counts.append(end - begin)
    assert counts[1] - counts[0] == 4 * 100


def test_the_stack_is_measured(tmp_path: Path) -> None:
    used = []
    for size in (64, 1064):
        body = (
            "void first(uint32_t *to, const uint32_t *from)\n{\n"
            f"    volatile uint8_t local[{size}];\n"
            f"    for (int i = 0; i < {size}; i++) {{ local[i] = (uint8_t)from[0]; }}\n"
            f"    to[0] = local[{size - 1}];\n}}\n"
        )
        used.append(run(body + NOTHING, tmp_path).stack_used)
    assert used[1] - used[0] == pytest.approx(1000, abs=32)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (".inst.w 0xffffffff", "faulted after"),
        ("1: b 1b", "too many instructions"),
    ],
    ids=["no instruction", "endless"],
)
def test_failures(text: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(SimulationError, match=what):
        run(asm(text), tmp_path, limit=10_000)


def test_without_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(DependencyError, match=r"needs qemu-system-arm.*install the package"):
        run(asm("nop"), tmp_path)


def test_cores_without_a_machine_are_refused() -> None:
    model = open_model("zoo:digits")
    with pytest.raises(TargetError, match="no machine with the core Arm Cortex-M0\\+"):
        htvm.build(model, "cortex_m0plus", "qemu")
    with pytest.raises(TargetError, match=r"is no Cortex-M core.*platform 'qemu'"):
        htvm.build(model, "generic.cpu", "qemu")
