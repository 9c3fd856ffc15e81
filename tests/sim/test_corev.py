"""The CORE-V extensions: their timing, the rules for hardware loops, and where there are none."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from byoc_dory.errors import TargetError
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.soc.header import render
from byoc_dory.soc.snitch_ita.description import soc as snitch_ita
from htvm.firmware.elf import read_elf
from htvm.firmware.machine import BARE, SocModel
from htvm.firmware.toolchain import Compiler
from htvm.sim.iss import IssResult, TrapError, run_elf
from htvm.sim.look import Look, Range, Watch
from tests.rtl.corev_text import EXTENSIONS, PRINT_HEX, hardware_loop
from tests.sim.bare import COREV_HEADERS, assemble, bare_corev
from tests.sim.corev_timing_rules import COREV_CASES
from tests.sim.test_polls import FRAME, MODEL
from tests.sim.timing_rules import Case, program

END = ["    li a0, 0x5555", "    li a1, 0x100000", "    sw a0, 0(a1)"]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, compiler: Compiler) -> dict[Case, int]:
    text = EXTENSIONS + "\n" + program(COREV_CASES)
    elf = assemble(text, tmp_path_factory.mktemp("timing"), compiler)
    lines = run_elf(elf, bare_corev(), compiler=compiler).output.split()
    return dict(zip(COREV_CASES, (int(line, 16) for line in lines), strict=True))


@pytest.mark.parametrize("case", COREV_CASES, ids=lambda case: case.rule)
def test_timing_rule(case: Case, measured: dict[Case, int]) -> None:
    assert measured[case] == case.cycles, case.assembly


def run(lines: list[str], folder: Path, compiler: Compiler) -> IssResult:
    """Run these lines, then print a0."""
    head = [EXTENSIONS, ".option norvc", ".option norelax", ".globl _start", "_start:"]
    text = [*head, "    la sp, stack_top", *lines, "    call print_hex", *END, *PRINT_HEX]
    data = [".bss", ".balign 16", "buffer:", "    .space 64", "stack_top:"]
    elf = assemble("\n".join([*text, *data]) + "\n", folder, compiler)
    return run_elf(elf, bare_corev(), compiler=compiler, max_cycles=100_000)


BODY = ["addi a0, a0, 1"] * 3


def test_loops_and_their_registers(compiler: Compiler, tmp_path: Path) -> None:
    """A loop's count falls to 0; the registers stay, and a body without a count runs once."""
    lines = ["li a0, 0", hardware_loop("setupi", 1, "5", "1f"), *BODY, "csrr a1, 0xcc6", "1:"]
    lines += ["slli a0, a0, 8", "add a0, a0, a1", "csrr a1, 0xcc6", "slli a0, a0, 8"]
    lines += ["add a0, a0, a1", "csrr a1, 0xcc5", "csrr a2, 0xcc4", "sub a1, a1, a2"]
    lines += ["slli a0, a0, 8", "add a0, a0, a1"]
    # 15 increments, the last body with count 1, 0 behind it, 16 bytes of body.
    assert run(lines, tmp_path, compiler).output == b"0f010010\n"


def test_a_loop_can_be_cleared_before_it_starts(compiler: Compiler, tmp_path: Path) -> None:
    lines = [
        "li a0, 0",
        *AHEAD,
        hardware_loop("counti", 0, "9"),
        hardware_loop("counti", 0, "0"),
        "fence.i",
    ]
    lines += ["1:", *BODY, "2:"]
    assert run(lines, tmp_path, compiler).output == b"00000003\n"


def test_fence_i_keeps_loops(compiler: Compiler, tmp_path: Path) -> None:
    lines = ["li a0, 0", *AHEAD, hardware_loop("counti", 0, "9"), "fence.i", "1:", *BODY, "2:"]
    assert run(lines, tmp_path, compiler).output == b"0000001b\n"


AHEAD = [hardware_loop("starti", 0, target="1f"), hardware_loop("endi", 0, target="2f")]
SETUP = hardware_loop("setupi", 0, "5", "1f")
INNER = hardware_loop("setupi", 0, "5", "2f")
OUTER = hardware_loop("setupi", 1, "5", "1f")
WRONG = {
    "at least 3 instructions": [SETUP, *BODY[:2], "1:"],
    "must be behind its start": [hardware_loop("setupi", 0, "5", "777b"), *BODY, "1:"],
    "a 16-bit instruction": [SETUP, *BODY, ".option rvc", "c.nop", "c.nop", "1:"],
    "a branch or jump": [SETUP, *BODY, "beqz zero, 1f", "1:"],
    "a fence or wfi": [SETUP, *BODY, "fence", "1:"],
    "counter or trap register": [SETUP, *BODY, "csrr a1, mcycle", "nop", "1:"],
    "must be on word boundaries": [
        "la a1, 1f",
        "addi a1, a1, 2",
        hardware_loop("end", 0, "a1"),
        "1:",
    ],
    "must be on a word boundary": [
        ".option rvc",
        "c.nop",
        ".option norvc",
        SETUP,
        *BODY,
        "nop",
        "1:",
    ],
    "must not change before its count is 0": [SETUP, SETUP, *BODY, "1:"],
    "must not change in its body": [SETUP, *BODY, hardware_loop("counti", 0, "1"), "1:"],
    "leads to its end": [*AHEAD, hardware_loop("counti", 0, "5"), "j 2f", "1:", *BODY, "2:"],
    "at least 8 bytes before": [OUTER, INNER, *BODY, "2:", "nop", "1:"],
    "must be the inner one": [SETUP, OUTER.replace("1f", "2f"), *BODY, "2:", "nop", "nop", "1:"],
}


@pytest.mark.parametrize("rule", WRONG)
def test_broken_rule(rule: str, compiler: Compiler, tmp_path: Path) -> None:
    with pytest.raises(TrapError, match=f"hardware loop [01] .*{rule}"):
        run(WRONG[rule], tmp_path, compiler)


def test_endless_loop(compiler: Compiler, tmp_path: Path) -> None:
    """A loop of many rounds still meets the limit of cycles."""
    lines = ["li s9, -1", hardware_loop("setup", 0, "s9", "1f"), "nop", "nop", "nop", "1:"]
    with pytest.raises(TrapError, match="not finished after 100000 cycles"):
        run(lines, tmp_path, compiler)


@pytest.mark.parametrize("rounds", [40, 4000])
def test_polls_in_a_loop(rounds: int, compiler: Compiler, tmp_path: Path) -> None:
    """A hardware loop's count is state: its rounds are not skipped as those of a poll are."""
    body = ["li a2, 0", hardware_loop("setupi", 0, str(rounds), "1f"), "lw t0, 0(s0)"]
    body += ["nop", "nop", "1:", "lw a2, 0(s0)"]
    text = "\n".join([".option norvc", ".option norelax", ".balign 4", *body])
    elf = assemble(FRAME.format(body=text), tmp_path, compiler)
    soc_model = SocModel(sources=(MODEL,), headers=COREV_HEADERS)
    machine = replace(BARE, name="timers-corev", soc_model=soc_model)
    memory = read_elf(elf).symbols["memory"].address
    stepped, skipped = (
        run_elf(
            elf,
            machine,
            pokes={memory: struct.pack("<2I", 3000, 100)},
            peeks={memory: 32},
            step_polls=step,
            compiler=compiler,
        )
        for step in (True, False)
    )
    assert stepped == skipped and stepped.instructions > 3 * rounds


def test_watched_stores(compiler: Compiler, tmp_path: Path) -> None:
    lines = [".option norvc", "la a1, buffer", "cv.sw a0, (a1), 4"]
    # The program's end is a store, too, but to another place.
    lines += END
    text = [EXTENSIONS, ".globl _start", "_start:", *lines, ".bss", "buffer:", "    .space 64"]
    elf = assemble("\n".join(text) + "\n", tmp_path, compiler)
    look = Look(watches=(Watch(Range(0x8000_0000, 1 << 20), 1000),))
    seen = run_elf(elf, bare_corev(), compiler=compiler, look=look).seen
    assert seen is not None and seen.last[0] is not None
    assert seen.last[0].pcs == (0x8000_0008,)


def test_stack_overflow_by_an_increment(compiler: Compiler, tmp_path: Path) -> None:
    text = [EXTENSIONS, ".globl _start", "_start:", "    la sp, stack_top"]
    text += ["1:", "    cv.sw a0, (sp), -32", "    j 1b", ".bss", "    .space 64", "stack_top:"]
    elf = assemble("\n".join(text) + "\n", tmp_path, compiler)
    with pytest.raises(TrapError, match="stack overflow"):
        run_elf(elf, bare_corev(), compiler=compiler, stack=(0x8000_0000, 0x8000_1000))


ILLEGAL = {
    "cv.elw": 0x0000_300B,
    "no such load": 0x0600_302B | 1 << 25,
    "add with bit 25": 0x0200_007B,
    "shift by more than a byte": 0x4080_707B,
    "a count with a source": 0x0008_442B,
}


@pytest.mark.parametrize("name", ILLEGAL)
def test_reserved_encoding(name: str, compiler: Compiler, tmp_path: Path) -> None:
    with pytest.raises(TrapError, match="illegal instruction"):
        run([f".word {ILLEGAL[name]:#x}"], tmp_path, compiler)


@pytest.mark.parametrize(
    "text",
    ["cv.lw a0, (sp), 0", "cv.min a0, a0, a0", "cv.addn a0, a0, a0, 1", "cv.add.b a0, a0, a0"],
)
def test_without_the_extensions(text: str, compiler: Compiler, tmp_path: Path) -> None:
    """On a core that does not have them, each of the four opcodes is illegal."""
    lines = [EXTENSIONS, ".globl _start", "_start:", "la sp, end", text, *END, "end:"]
    elf = assemble("\n".join(lines) + "\n", tmp_path, compiler)
    assert run_elf(elf, bare_corev(), compiler=compiler).exit_code == 0
    with pytest.raises(TrapError, match="illegal instruction"):
        run_elf(elf, compiler=compiler)


def test_switch() -> None:
    macro = "#define HTVM_CORE_COREV 1"
    assert macro not in render(DIANA) and macro not in render(snitch_ita())
    assert macro in render(replace(DIANA, host=replace(DIANA.host, corev=True)))
    cluster = snitch_ita()
    with pytest.raises(TargetError, match="scoreboard"):
        render(replace(cluster, host=replace(cluster.host, corev=True)))
