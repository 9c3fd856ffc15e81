"""QEMU's user mode: what it counts, measures and refuses, for RISC-V cores with vectors."""

from __future__ import annotations

from pathlib import Path

import pytest

from byoc_dory.errors import DependencyError, L2OverflowError, SimulationError, TargetError
from byoc_dory.soc.base import Soc
from byoc_dory.soc.registry import resolve
from htvm.firmware import user_mode
from htvm.firmware.linked import Firmware
from htvm.firmware.toolchain import Compiler
from htvm.sim.arm_run import ArmRun
from htvm.sim.qemu_user import plugin_version, run_qemu_user
from tests.sim.test_arm import HEAD, NOTHING, TAIL
from tests.tools import tool

CORES = ("rv32imcv", "rv64gcv")


@pytest.fixture(autouse=True)
def machine() -> None:
    for name in ("qemu-riscv32", "qemu-riscv64"):
        tool(name)


def run(body: str, folder: Path, core: str = "rv32imcv", limit: int = 10**6) -> ArmRun:
    soc = resolve(core).soc
    build(body, folder, soc)
    return run_qemu_user(
        Firmware.open(folder / "firmware.elf", soc, soc.host.stack),
        {"given": bytes(range(16))},
        {"result": 16},
        entry="net_run",
        kernels=["first", "second"],
        compiler=Compiler.zig(),
        max_instructions=limit,
    )


def build(body: str, folder: Path, soc: Soc) -> None:
    (folder / "main.c").write_text(HEAD + body + TAIL)
    user_mode.build_firmware([folder / "main.c"], soc, folder, Compiler.zig())


def asm(text: str) -> str:
    """A first kernel of these instructions, which get the addresses of its operands."""
    return (
        "void first(uint32_t *to, const uint32_t *from)\n{\n"
        f'    __asm__ volatile("{text}" : "+r"(to), "+r"(from) : : "memory", "t0", "t1");\n}}\n'
        + NOTHING
    )


@pytest.mark.parametrize("core", CORES)
def test_each_instruction_of_a_step_counts_once(core: str, tmp_path: Path) -> None:
    loop = "li t0, {}\\n1: addi t0, t0, -1\\n bnez t0, 1b"
    counts = []
    for times in (1, 501):
        found = run(asm(loop.format(times)), tmp_path, core)
        assert [name for name, *_ in found.steps] == ["first", "second"]
        (_, begin, end), (_, after, last) = found.steps
        assert 0 < begin < end < after < last < found.instructions
        counts.append(end - begin)
    assert counts[1] - counts[0] == 2 * 500


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("bits", [128, 256, 512, 1024])
def test_vectors_have_the_length_that_was_asked_for(bits: int, core: str, tmp_path: Path) -> None:
    text = "vsetvli t0, zero, e8, m1, ta, ma\\n sw t0, (%0)"
    found = run(asm(text), tmp_path, f"{core}:vlen={bits}")
    assert int.from_bytes(found.outputs["result"][:4], "little") == bits // 8


def test_inputs_arrive_and_the_stack_is_measured(tmp_path: Path) -> None:
    used = []
    for size in (64, 1064):
        body = (
            "void first(uint32_t *to, const uint32_t *from)\n{\n"
            f"    volatile uint8_t local[{size}];\n"
            f"    for (int i = 0; i < {size}; i++) {{ local[i] = (uint8_t)from[1]; }}\n"
            f"    to[0] = local[{size - 1}];\n}}\n"
        )
        found = run(body + NOTHING, tmp_path)
        assert found.outputs["result"][0] == 4
        used.append(found.stack_used)
    assert used[1] - used[0] == pytest.approx(1000, abs=32)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (".word 0", "faulted; .*an instruction that the core lacks"),
        ("lw t0, 0(zero)", "faulted; .*an access outside of flash and RAM"),
        ("la t0, first\\n sw t0, (t0)", "faulted; .*an access outside of flash and RAM"),
        ("1: j 1b", "too many instructions"),
        ("li a7, 93\\n li a0, 3\\n ecall", "ended with code 3"),
        ("li a7, 93\\n li a0, 0\\n ecall", "left 0 bytes of RAM"),
    ],
    ids=["no instruction", "address 0", "write to flash", "endless", "ended", "ended early"],
)
def test_failures(text: str, what: str, tmp_path: Path) -> None:
    body = asm(text).replace('"t1"', '"t1", "a0", "a7"') if "ecall" in text else asm(text)
    with pytest.raises(SimulationError, match=what):
        run(body, tmp_path, limit=10_000)


def test_without_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(DependencyError, match=r"needs qemu-riscv32.*install the package.*qemu-use"):
        run(asm("nop"), tmp_path)


def test_other_cores_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="CV32E40P.* is no RISC-V core with vectors"):
        build(asm("nop"), tmp_path, resolve("rv32imc").soc)
    assert not [*tmp_path.glob("*.elf")]


def test_memories_that_are_too_small(tmp_path: Path) -> None:
    soc = resolve("rv32imcv").soc.resized("L2", 4_096)
    with pytest.raises(L2OverflowError, match="B of RAM, there are 4,096 B"):
        build(asm("nop"), tmp_path, soc)


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("qemu-riscv64 version 7.2.22 (Debian 1:7.2+dfsg-7)", 1),
        ("qemu-riscv64 version 8.2.2", 1),
        ("qemu-riscv64 version 10.0.3", 2),
        ("", 1),
    ],
)
def test_plugins_have_the_version_that_qemu_takes(said: str, version: int) -> None:
    assert plugin_version(said) == version
