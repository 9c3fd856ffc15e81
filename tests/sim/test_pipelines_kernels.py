"""Kernels with SIMD on eight cores that share L1, ordered by a controller that goes on."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from htvm.firmware.elf import read_elf
from htvm.firmware.isa import compiled_isa, rv32_flags
from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import Compiler
from htvm.sim.causes import EventLog
from htvm.sim.iss import IssResult, run_elf
from tests.runtime_c.simd import Product, on_the_core
from tests.sim.harts import CONTROL, END, L1, SLEEP
from tests.sim.pipelines import L1_BYTES, SOC, assemble, bare_hart, machine

CORES = 8

# Code in L2, everything else in L1; the stacks of 1 KiB at its end.
_SCRIPT = """ENTRY(_start)
SECTIONS {
    . = 0x80000000;
    .text : { *(.text.start) *(.text .text.*) }
    . = 0x10000000;
    .data : { *(.rodata .rodata.* .srodata .srodata.*) *(.data .data.* .sdata .sdata.*) }
    .bss : ALIGN(16) { *(.bss .bss.* .sbss .sbss.*) }
}
"""

_START = f"""
.section .text.start, "ax"
.globl _start
_start:
    csrw mcountinhibit, zero
    csrr a0, mhartid
    li sp, {L1 + L1_BYTES:#x}
    slli t0, a0, 10
    sub sp, sp, t0
    call main
{END}
1:  j 1b
"""

# Hart 0 wakes the cores, counts up to a number meanwhile, and meets them at the barrier.
_MAIN = f"""
int check(uint32_t core);
volatile uint32_t cores, wrong[9], spent_by[9];

static void meet(void) {{ (void)*(volatile uint32_t *){CONTROL + 4:#x}u; }}

int main(int hart)
{{
    if (hart != 0) {{
        for (;;) {{
            __asm__ volatile("wfi" ::: "memory");
            if ((uint32_t)hart <= cores) {{
                wrong[hart] = (uint32_t)check((uint32_t)hart - 1u);
                spent_by[hart] = spent[hart];
            }}
            meet();
        }}
    }}
    *(volatile uint32_t *){CONTROL:#x}u = 0x1ffu;
    for (uint32_t round = 0; round < 2; round++) {{ /* the second finds all in one step */
        *(volatile uint32_t *){CONTROL + 8:#x}u = 0x1feu;
        for (volatile uint32_t i = 0; i < 100; i++) {{
        }}
        meet();
    }}
    return 0;
}}
"""


def source(product: Product) -> str:
    """Return a C file in which each core computes its rows of a product."""
    text = product.source()
    text = text.replace("int check(void)", "int check(uint32_t core)")
    text = text.replace("uint32_t spent;", "extern volatile uint32_t cores;\nuint32_t spent[9];")
    text = text.replace(
        "    const uint32_t start",
        "    htvm_product_t part = product;\n"
        "    part.rows = product.rows / cores;\n"
        "    part.in += core * part.rows * part.in_row;\n"
        "    part.out += core * part.rows * part.out_row;\n"
        "    const uint32_t start",
    )
    text = text.replace("_shift(&product)", "_shift(&part)")
    text = text.replace("    spent = cycles_()", "    spent[core + 1] = cycles_()")
    # Only the core's own rows: the others may not be done.
    return text.replace("    for (uint32_t i = 0; i < sizeof out; i++) {\n        if", _OWN_ROWS)


_OWN_ROWS = """    const uint32_t first = (uint32_t)(part.out - out);
    for (uint32_t i = first; i < first + part.rows * part.out_row; i++) {
        if"""


def on_the_cores(product: Product, cores: int, folder: Path) -> tuple[list[int], IssResult]:
    """Return the cycles of each core, and the run."""
    start, main, script = folder / "start.S", folder / "main.c", folder / "program.ld"
    start.write_text(_START)
    main.write_text(source(product) + _MAIN)
    script.write_text(_SCRIPT)
    kernels = runtime_c() / "simd"
    elf = Compiler.zig().compile_cross(
        [start, main, kernels / "product.c"],
        folder / "program.elf",
        [kernels],
        rv32_flags(compiled_isa(SOC.host)),
        script,
        ("-Wall", "-Wextra", "-Werror"),
    )
    places = {name: read_elf(elf).symbols[name].address for name in ("cores", "wrong", "spent_by")}
    run = run_elf(
        elf,
        machine(9),
        pokes={places["cores"]: struct.pack("<I", cores)},
        peeks={places["wrong"]: 36, places["spent_by"]: 36},
    )
    assert not any(run.memory[places["wrong"]])
    return list(struct.unpack("<9I", run.memory[places["spent_by"]])[1 : cores + 1]), run


PRODUCTS = [Product(16, 32, 16, 16, 3, 3), Product(16, 8, 64, 64), Product(8, 16, 32, 32, 3, 3)]


@pytest.mark.rotating(1)
@pytest.mark.parametrize("product", PRODUCTS, ids=str)
def test_conflicts_cost_little(product: Product, tmp_path: Path) -> None:
    """Eight cores on 16 interleaved banks lose little to what one loses."""
    together, run = on_the_cores(product, CORES, tmp_path)
    share = Product(product.oy // CORES, *_rest(product))
    (alone,), _ = on_the_cores(share, 1, tmp_path)
    loss = max(together) / alone - 1
    print(f"{product}: {alone} cycles alone, {max(together)} of {CORES}, {100 * loss:.1f} % lost")
    assert 0 < loss < 0.08
    found = units(run)
    assert len(found) == 2 + CORES and len(found["cluster"]) == 2


def _rest(product: Product) -> tuple[int, int, int, int, int]:
    return product.ox, product.k, product.c, product.fy, product.fx


@pytest.mark.parametrize("near", [False, True], ids=["L2", "L1"])
def test_one_hart_counts_as_the_core_alone(near: bool, tmp_path: Path) -> None:
    product = Product(4, 16, 16, 16, 3, 3)
    assert on_the_core(product, tmp_path) == on_the_core(
        product, tmp_path, machine=bare_hart(near=near)
    )


# --- what is told of kernels ------------------------------------------------------------------

# The controller wakes two cores, which count to different numbers, and goes on with `{own}`; the
# cores then do `{leave}`.
_ASIDE = f"""
.globl _start
_start:
    csrw mcountinhibit, zero
    csrr s0, mhartid
    li s1, {CONTROL:#x}
    bnez s0, 2f
    li t0, {{mask}}
    sw t0, 0(s1)
    li t0, 6
    csrr s2, mcycle
    sw t0, 8(s1)
{{own}}
    {END}
2:
    wfi
    li t0, 100
    mul t0, t0, s0
1:
    addi t0, t0, -1
    bnez t0, 1b
{{leave}}
{SLEEP}
"""


def aside(mask: int, own: str, leave: str, folder: Path, compiler: Compiler) -> IssResult:
    text = _ASIDE.format(mask=mask, own=own.replace(";", "\n"), leave=leave.replace(";", "\n"))
    return run_elf(assemble(text, folder, compiler), machine(3), compiler=compiler)


def units(run: IssResult) -> dict[str, list[tuple[int, int]]]:
    found: dict[str, list[tuple[int, int]]] = {}
    for event in run.events:
        found.setdefault(event["unit"], []).append((event["start"], event["end"]))
    return found


def test_a_kernel_beside_the_controller(tmp_path: Path, compiler: Compiler) -> None:
    """The controller works meanwhile, waits at the barrier, and counts as no core."""
    own = "li t1, 50; 3: addi t1, t1, -1; bnez t1, 3b; lw t0, 4(s1)"
    run = aside(7, own, "lw t0, 4(s1)", tmp_path, compiler)
    found = units(run)
    assert set(found) == {"core1", "core2", "cluster", "host"}
    ((begin, end),) = found["cluster"]
    assert end == found["core2"][0][1] > found["core1"][0][1] > begin
    assert found["core2"][0][0] == begin + SOC.cluster.wake if SOC.cluster else False
    ((arrived, released),) = found["host"]
    assert begin + 200 < arrived < begin + 230 and released == end + 2
    causes = EventLog(run.events).causes(0, run.cycles)
    assert causes.computing == 0 and causes.array == end - begin
    assert causes.waiting == released - arrived
    assert causes.host == run.cycles - causes.waiting
    assert causes.host_alone == run.cycles - (end - begin)


@pytest.mark.parametrize("late", [False, True])
def test_a_controller_that_comes_late(late: bool, tmp_path: Path, compiler: Compiler) -> None:
    """The kernel ends when its cores have arrived, whenever the controller does."""
    own = f"li t1, {900 if late else 1}; 3: addi t1, t1, -1; bnez t1, 3b; lw t0, 4(s1)"
    ((begin, end),) = units(aside(7, own, "lw t0, 4(s1)", tmp_path, compiler))["cluster"]
    # 200 rounds of two instructions and a taken branch, less the last one's.
    assert 200 * 4 <= end - begin < 200 * 4 + 20


def test_cores_that_meet_without_the_controller(tmp_path: Path, compiler: Compiler) -> None:
    """They meet twice and sleep, one of them wakes the controller: one kernel."""
    leave = "lw t0, 4(s1); lw t0, 4(s1); li t0, 2; bne t0, s0, 4f; li t0, 1; sw t0, 8(s1); 4:"
    found = units(aside(6, "wfi", leave, tmp_path, compiler))
    ((begin, end),) = found["cluster"]
    assert 200 * 4 <= end - begin < 200 * 4 + 40
    ((asleep, awake),) = found["host"]
    assert asleep < begin + 10 and abs(awake - end) < 10
