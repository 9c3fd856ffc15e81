"""The compiler's static analyzer has nothing to say of generated C: no dead stores, no null."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import ziglang

from byoc_dory.soc.base import Soc
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.soc.header import render
from byoc_dory.soc.snitch_ita.description import SNITCH_ITA
from htvm.aot.entry import model_sources
from htvm.firmware import host
from htvm.firmware.paths import runtime_c
from tests.aot import tiny
from tests.byoc_dory.program import Case, planned_cases, random_cases, sources
from tests.byoc_dory.test_snitch_native import cluster_cases, ita_cases


def complaints(files: Sequence[Path], includes: Sequence[Path]) -> str:
    """What clang's analyzer says of C files; empty if nothing."""
    # Not `zig cc`, which has nothing to say about files that it knows from an earlier run.
    command = [sys.executable, "-m", "ziglang", "clang", "--analyze", "-std=c11", "-ffreestanding"]
    command += ["-nostdlibinc", "-isystem", str(Path(ziglang.__file__).parent / "lib" / "include")]
    command += [f"-I{folder}" for folder in includes]
    done = subprocess.run(
        [*command, *map(str, files)], cwd=files[0].parent, capture_output=True, text=True
    )
    return done.stdout + done.stderr + ("" if done.returncode == 0 else "it failed")


def regions(soc: str) -> tuple[Soc, list[Case]]:
    """Layers of all kinds, tiled and whole, under both schedules."""
    if soc == "diana":
        return DIANA, random_cases(20, 100) + planned_cases(4, 100)
    return SNITCH_ITA, cluster_cases(12, 0) + ita_cases(6, 0)


@pytest.mark.parametrize("name", ["diana", "snitch_ita"])
def test_kernels_of_regions(name: str, tmp_path: Path) -> None:
    soc, cases = regions(name)
    source = tmp_path / "kernels.c"
    source.write_text(sources([case.code for case in cases]))
    (tmp_path / "htvm_soc.h").write_text(render(soc))
    assert complaints([source], [tmp_path, *host.include_folders(soc)]) == ""


def test_the_entry_function(tmp_path: Path) -> None:
    for name, text in model_sources(tiny.program()).items():
        (tmp_path / name).write_text(text)
    (tmp_path / "htvm_hal_platform.h").write_text(
        "#include <stdint.h>\nvoid htvm_hal_trace(uint32_t event);\n"
    )
    files = sorted(tmp_path.glob("*.c"))
    assert complaints(files, [tmp_path, runtime_c() / "include"]) == ""


def test_the_analyzer_finds_dead_stores(tmp_path: Path) -> None:
    source = tmp_path / "dead.c"
    source.write_text(
        "int g(int);\nint f(int a)\n{\n    int x = g(a);\n    x = 1;\n    return a;\n}\n"
    )
    assert "never read" in complaints([source], [])
