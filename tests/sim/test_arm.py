"""The emulator of Cortex-M cores: what it executes, refuses, counts and measures."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from byoc_dory.errors import DependencyError, L2OverflowError, SimulationError, TargetError
from byoc_dory.soc.base import Soc
from byoc_dory.soc.registry import resolve
from htvm.firmware import arm
from htvm.firmware.linked import Firmware
from htvm.firmware.toolchain import Compiler
from htvm.sim.arm import run_arm
from htvm.sim.arm_run import ArmRun

CORES = ("cortex_m0plus", "cortex_m3", "cortex_m4", "cortex_m7", "cortex_m33")
DSP = ("cortex_m4", "cortex_m7", "cortex_m33")

HEAD = """
#include <stdint.h>
#define OUTSIDE __attribute__((section(".noinit"), aligned(16)))
OUTSIDE uint32_t given[4];
OUTSIDE uint32_t result[4];
__attribute__((noinline)) void first(uint32_t *to, const uint32_t *from);
__attribute__((noinline)) void second(uint32_t *to, const uint32_t *from);
__attribute__((noinline)) int32_t net_run(void);
"""
TAIL = """
int32_t net_run(void)
{
    first(result, given);
    __asm__ volatile("" ::: "memory");
    second(result, given);
    __asm__ volatile("" ::: "memory");
    return 0;
}
int main(void) { return net_run(); }
"""
NOTHING = """
void second(uint32_t *to, const uint32_t *from)
{
    __asm__ volatile("" : : "r"(to), "r"(from) : "memory");
}
"""


def run(
    body: str, folder: Path, core: str = "cortex_m4", soc: Soc | None = None, limit: int = 10**6
) -> ArmRun:
    soc = resolve(core).soc if soc is None else soc
    source = folder / "main.c"
    source.write_text(HEAD + body + TAIL)
    compiler = Compiler.zig()
    arm.build_firmware([source], soc, folder, compiler)
    return run_arm(
        Firmware.open(folder / "firmware.elf", soc, soc.host.stack),
        {"given": bytes(range(16))},
        {"result": 16},
        entry="net_run",
        kernels=["first", "second"],
        compiler=compiler,
        max_instructions=limit,
    )


def asm(text: str) -> str:
    """Return a first kernel of assembly."""
    return (
        "void first(uint32_t *to, const uint32_t *from)\n{\n    uint32_t x = 0;\n"
        f'    __asm__ volatile("{text}" : "+r"(x), "+r"(to), "+r"(from)\n'
        '        : : "r3", "cc", "memory");\n'
        "    to[0] = x;\n}\n" + NOTHING
    )


@pytest.mark.parametrize("core", CORES)
def test_exact_counts(core: str, tmp_path: Path) -> None:
    """A loop of three instructions, 1000 times, is 3000 instructions more than once."""
    loop = "movs r3, %0\\n1: adds %0, %0, #1\\n subs r3, r3, #1\\n bne 1b"
    counts = []
    for times in (1, 1001):
        text = loop.replace("movs r3, %0", f"ldr r3, ={times}")
        found = run(asm(text), tmp_path, core)
        assert int.from_bytes(found.outputs["result"][:4], "little") == times
        assert [name for name, _, _ in found.steps] == ["first", "second"]
        (_, begin, end), (_, again, over) = found.steps
        assert 0 < begin < end <= again < over < found.instructions
        counts.append(end - begin)
    assert counts[1] - counts[0] == 3 * 1000


@pytest.mark.parametrize("core", CORES)
def test_classes_add_up_and_taken_branches_are_counted(core: str, tmp_path: Path) -> None:
    body = "str %0, [%1]\\n ldr %0, [%1]\\n adds %0, %0, #1\\n subs r3, r3, #1\\n"
    found = []
    for times in (1, 101):
        ran = run(asm(f"ldr r3, ={times}\\n1: {body} bne 1b"), tmp_path, core)
        assert ran.executed.instructions == ran.instructions
        found.append(ran.executed)
    one, many = found
    assert many.taken - one.taken == 100
    more = many.kinds - one.kinds
    assert more == {"store": 100, "next_load": 100, "plain": 300}


def test_every_length_of_instruction_counts_as_one(tmp_path: Path) -> None:
    wide, narrow, skipped = "mov.w r3, #1\\n", "nop\\n", "cmp %0, #1\\nit eq\\nmoveq %0, #7\\n"
    counts = []
    for text in (narrow, narrow + wide * 5, narrow + wide * 5 + skipped, narrow * 3):
        ((_, begin, end), _) = run(asm(text), tmp_path).steps
        counts.append(end - begin)
    assert [count - counts[0] for count in counts] == [0, 5, 8, 2]


# As numbers, which the assembler takes for all cores: SMUAD r3, r3, r3, and MOVW r3, #1.
# The emulator's M3 also executes SMUAD, which the core lacks; the compiler writes none for it.
@pytest.mark.parametrize(
    ("core", "number", "known"),
    [
        *((core, 0xFB23F303, True) for core in DSP),
        ("cortex_m0plus", 0xFB23F303, False),
        ("cortex_m3", 0xF2400301, True),
        ("cortex_m0plus", 0xF2400301, False),
    ],
)
def test_instructions_that_a_core_has(core: str, number: int, known: bool, tmp_path: Path) -> None:
    if known:
        run(asm(f".inst.w {number:#x}"), tmp_path, core)
    else:
        with pytest.raises(SimulationError, match="stopped at .* in first"):
            run(asm(f".inst.w {number:#x}"), tmp_path, core)


@pytest.mark.parametrize(("core", "allowed"), [("cortex_m0plus", False), ("cortex_m3", True)])
def test_unaligned_words(core: str, allowed: bool, tmp_path: Path) -> None:
    text = "adds %2, %2, #1\\n ldr %0, [%2]"
    if allowed:
        assert run(asm(text), tmp_path, core).outputs["result"][:4] == bytes([1, 2, 3, 4])
    else:
        with pytest.raises(SimulationError, match="in first"):
            run(asm(text), tmp_path, core)


@pytest.mark.parametrize(
    "text",
    [
        "ldr r3, =0x60000000\\n ldr %0, [r3]",
        "ldr r3, =0x60000000\\n str %0, [r3]",
        "ldr r3, =0x08000100\\n str %0, [r3]",
    ],
    ids=["read", "write", "write to flash"],
)
def test_accesses_outside_of_memory(text: str, tmp_path: Path) -> None:
    with pytest.raises(SimulationError, match="in first"):
        run(asm(text), tmp_path)


def test_an_endless_loop_ends(tmp_path: Path) -> None:
    with pytest.raises(SimulationError, match="too many instructions"):
        run(asm("1: b 1b"), tmp_path, limit=10_000)


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
    assert used[1] - used[0] == 1000


def test_a_stack_that_is_too_small(tmp_path: Path) -> None:
    soc = resolve("cortex_m4").soc
    small = replace(soc, host=replace(soc.host, stack=64))
    body = (
        "void first(uint32_t *to, const uint32_t *from)\n{\n    volatile uint8_t local[256];\n"
        "    for (int i = 0; i < 256; i++) { local[i] = (uint8_t)from[0]; }\n"
        "    to[0] = local[0];\n}\n"
    )
    with pytest.raises(SimulationError, match="used all 64 B of its stack"):
        run(body + NOTHING, tmp_path, soc=small)


def test_memories_that_are_too_small(tmp_path: Path) -> None:
    soc = resolve("cortex_m4").soc
    flash, ram = soc.memories
    for memories, name in (
        ((replace(flash, size=128), ram), "flash"),
        ((flash, replace(ram, size=4096 + 16)), "RAM"),
    ):
        with pytest.raises(L2OverflowError, match=f"B of {name}, there are"):
            run(asm("nop"), tmp_path, soc=replace(soc, memories=memories))


def test_without_an_emulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "unicorn" else real(name)
    )
    with pytest.raises(DependencyError, match=r"the Python package unicorn.*pip install unicorn"):
        run(asm("nop"), tmp_path)


def test_other_cores_are_refused() -> None:
    with pytest.raises(TargetError, match="is no Cortex-M core"):
        arm.core_of(resolve("generic.cpu").soc)
