"""Users' compilers: exports are compiled, linked and run with their settings."""

from __future__ import annotations

import os
from itertools import combinations
from pathlib import Path

import pytest

import htvm
from benchmarks import qemu
from benchmarks.compilers import NETWORKS, cells, exported, pairwise, table
from benchmarks.compilers_cell import COMPILERS, LEVELS, PLACES, Cell, compiled, kinds_of, missing
from htvm.inputs import seeded_inputs
from htvm.tools.cli.arguments import open_model

EVERY_DAY = "cortex_m4"
CORES = tuple(dict.fromkeys(core for core, _ in PLACES))
CASES = [
    core if core == EVERY_DAY else pytest.param(core, marks=pytest.mark.slow) for core in CORES
]


def need(*programs: str) -> None:
    """Skip where programs are not installed, and fail in CI, which installs them."""
    left = missing(programs) if programs else missing()
    if left and os.environ.get("CI"):
        pytest.fail(f"not installed: {', '.join(left)}")
    if left:
        pytest.skip(f"not installed: {', '.join(left)}")


def of_core(core: str) -> list[Cell]:
    return [cell for cell in cells(["resnet8"]) if cell.core == core]


@pytest.mark.parametrize("core", CASES)
def test_pairs_of_settings_compile_without_a_warning(core: str, tmp_path: Path) -> None:
    need()
    # Every day 8 of the 25 cells; among them each compiler, level, and float ABI.
    chosen = pairwise(of_core(core))[: 8 if core == EVERY_DAY else None]
    exported(NETWORKS["resnet8"], core, tmp_path, {cell.kind for cell in chosen})
    failed = {cell: error for cell in chosen if (error := compiled(cell, tmp_path))}
    assert not failed


@pytest.mark.slow
@pytest.mark.parametrize("core", [core for core in CORES if core.startswith("cortex")])
def test_registers_that_platforms_keep_are_not_needed(core: str, tmp_path: Path) -> None:
    need()
    exported(NETWORKS["resnet8"], core, tmp_path, ["cmake"])
    flags = ("-fno-omit-frame-pointer", "-ffixed-r9", "-fPIC")
    for abi in (abi for place, abi in PLACES if place == core):
        for compiler in COMPILERS:
            for level in ("-Os", "-O3"):
                cell = Cell("resnet8", core, abi, compiler, level, False, "cmake")
                assert not compiled(cell, tmp_path, flags), cell


def test_all_pairs_of_settings_are_chosen() -> None:
    every = cells(["one", "two"])
    chosen = pairwise(every)
    assert len(every) == len(set(every)) == 2 * 15 * 2 * 4 * 2 and len(chosen) < 70

    def pairs(of: list[Cell]) -> set[tuple[tuple[int, object], ...]]:
        return {pair for cell in of for pair in combinations(enumerate(vars(cell).values()), 2)}

    assert pairs(chosen) == pairs(every)
    # The kind takes turns, and still meets every other setting.
    for core, abi in PLACES:
        met = {(c.kind, c.compiler, c.level) for c in every if (c.core, c.abi) == (core, abi)}
        assert {kind for kind, _, _ in met} == {*kinds_of(core)}
    for kind in {cell.kind for cell in every}:
        mine = [cell for cell in every if cell.kind == kind]
        assert {c.level for c in mine} == {*LEVELS} and {c.lto for c in mine} == {True, False}
        assert {c.compiler for c in mine} == {*COMPILERS}


def test_the_table_counts_what_failed() -> None:
    one, two = [cell for cell in cells(["one"]) if cell.abi == "hard"][:2]
    text = table({one: "", two: "error: no", **dict.fromkeys(cells(["three"]), "")})
    (line,) = [line for line in text.splitlines() if line.startswith("| cortex_m4 | hard |")]
    assert line.split(" | ")[2:4] == ["3 of 4", "2 of 2"] and "| rv32imc | none | 2 of 2" in text


@pytest.mark.parametrize(
    ("core", "abi", "compiler", "level", "lto"),
    [
        ("cortex_m4", "hard", "GCC", "-O2", False),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in [
                ("cortex_m4", "hard", "Clang", "-O2", False),
                ("cortex_m4", "softfp", "GCC", "-Os", True),
                ("cortex_m4", "softfp", "Clang", "-O3", True),
                ("cortex_m7", "hard", "GCC", "-O3", True),
                ("cortex_m7", "hard", "Clang", "-Os", False),
                ("cortex_m33", "hard", "GCC", "-Og", False),
                ("cortex_m33", "hard", "Clang", "-O2", True),
                ("cortex_m55", "hard", "GCC", "-Os", False),
                ("cortex_m55", "softfp", "GCC", "-O3", True),
                ("cortex_m55", "soft", "GCC", "-O2", False),
                ("cortex_m55", "hard", "Clang", "-O2", False),
                ("cortex_m3", "soft", "GCC", "-Os", False),
                ("cortex_m3", "soft", "Clang", "-O3", True),
                ("cortex_m0plus", "soft", "GCC", "-Os", False),
                ("cortex_m0plus", "soft", "GCC", "-Os", True),
                ("cortex_m0plus", "soft", "GCC", "-O3", True),
                ("cortex_m0plus", "soft", "Clang", "-O2", False),
            ]
        ),
    ],
)
def test_firmware_of_users_compilers_computes_the_same(
    core: str, abi: str, compiler: str, level: str, lto: bool, tmp_path: Path
) -> None:
    need()
    need(qemu.PROGRAM)
    module = htvm.build(open_model("zoo:digits"), core)
    inputs = seeded_inputs(module.compiled.source.inputs)
    cell = Cell("digits", core, abi, compiler, level, lto, "cmake")
    outputs = module.reference(inputs)
    assert qemu.different(module.compiled, inputs, outputs, tmp_path, cell) == 0
