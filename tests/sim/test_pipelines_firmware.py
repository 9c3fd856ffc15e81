"""A firmware for a controller and eight cores with SIMD, and the simulator under sanitizers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.soc.header import render
from htvm.firmware import rv32
from htvm.firmware.host import sanitizing
from htvm.firmware.isa import compiled_isa, march, rv32_flags
from htvm.firmware.paths import runtime_c
from htvm.firmware.socs import machine_of
from htvm.firmware.toolchain import Compiler
from htvm.sim.iss import TrapError, _machine_options, run_elf
from tests.rtl.programs import random_program
from tests.sim import bare
from tests.sim.pipelines import SOC
from tests.sim.test_c_units import WARNINGS, iss_sources
from tests.sim.test_cluster import COMPILERS
from tests.sim.test_pipelines import shared_text

PROGRAM = Path(__file__).with_name("pipelines.c")
CORES, WORDS, ROUNDS = 8, 64, 20


def firmware(folder: Path, compiler: Compiler) -> rv32.Firmware:
    """Build the program beside this file."""
    return rv32.build_firmware(
        [PROGRAM],
        [runtime_c() / "simd"],
        machine_of(SOC),
        folder,
        compiler,
        SOC.host.stack,
        ("-Wall", "-Wextra", "-Werror"),
    )


def expected() -> np.ndarray:
    """What tests/sim/pipelines.c leaves, computed another way."""
    words = np.arange(ROUNDS * WORDS, dtype=np.uint64) * 2654435761 % 2**32
    lanes = words.astype("<u4").view(np.int8).reshape(ROUNDS, WORDS // CORES, CORES, 4)
    products = lanes.astype(np.int64) * lanes[:, ::-1]
    return products.sum(axis=(1, 2, 3)) + np.arange(ROUNDS)


def test_firmware(tmp_path: Path, compiler: Compiler) -> None:
    built = firmware(tmp_path, compiler)
    results = built.symbols["results"].address
    low, top = (built.symbols[edge].address for edge in ("__stack_low", "__stack_top"))
    run = run_elf(built.elf, built.machine, peeks={results: 4 * ROUNDS}, stack=(low, top))
    assert np.array_equal(np.frombuffer(run.memory[results], "<i4"), expected())
    kernels = [event for event in run.events if event["unit"] == "cluster"]
    assert len(kernels) == ROUNDS and len(run.harts) == 9
    assert {f"core{hart}" for hart in range(1, 9)} <= {event["unit"] for event in run.events}
    # The lowest hart's stack ends 8 KiB below: a machine with less stack for each stops it.
    with pytest.raises(TrapError, match="stack overflow.* on hart [1-8]"):
        run_elf(built.elf, built.machine, stack=(low + 1024, top))


def test_instruction_sets() -> None:
    """The compiler's name of what it may use; without what it gets wrong."""
    isa = compiled_isa(SOC.host)
    assert isa == "rv32imc_xcvalu_xcvbi_xcvmac_xcvmem_xcvsimd"
    assert march(isa) == "rv32imc_zicsr_xcvalu_xcvbi_xcvmac_xcvmem_xcvsimd"
    assert "-mcpu=generic_rv32+m+c+zicsr+xcvalu+xcvbi+xcvmac+xcvmem+xcvsimd" in rv32_flags(isa)
    assert "-mcpu=generic_rv32+m+a+zicsr" in rv32_flags("rv32ima")


@pytest.mark.parametrize("name", COMPILERS)
def test_simulator_under_sanitizers(name: str | None, tmp_path: Path, compiler: Compiler) -> None:
    """Warnings as errors; the firmware, and random instructions that nine harts share."""
    (tmp_path / "htvm_soc.h").write_text(render(SOC))
    iss = sanitizing(Compiler.zig(host=name)).compile_host(
        iss_sources(),
        tmp_path / "iss",
        [tmp_path, runtime_c() / "iss", runtime_c() / "include"],
        WARNINGS,
    )
    options = _machine_options(machine_of(SOC))
    for number, text in enumerate((None, shared_text(1), random_program(3, corev=True))):
        folder = tmp_path / str(number)
        folder.mkdir()
        elf = bare.assemble(text, folder, compiler) if text else firmware(folder, compiler).elf
        line = [str(iss), str(elf), *options, "--max-cycles", "300000"]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        # The last one is for another machine: its harts end where they print.
        assert done.returncode == (1 if number == 2 else 0), done.stderr
        assert "runtime error" not in done.stderr and "Sanitizer" not in done.stderr
