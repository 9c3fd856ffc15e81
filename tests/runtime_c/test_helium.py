"""Functions for vectors: as instructions of a Cortex-M55, and as plain C, they equal numpy."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from byoc_dory.soc.registry import resolve
from htvm.firmware import arm
from htvm.firmware.linked import Firmware
from htvm.firmware.toolchain import Compiler
from htvm.sim import qemu
from tests.aot.cpu.native import FOLDERS, STRICT, trapping
from tests.runtime_c import helium
from tests.runtime_c.helium import GIVEN, PROGRAM, RESULT, Section
from tests.tools import tool

SEEDS = st.integers(0, 2**32 - 1)
ROWS = st.builds(
    helium.rows,
    st.sampled_from([1, 3]),
    st.integers(1, 9),
    st.integers(1, 40),
    st.integers(1, 4),
    SEEDS,
)
TAPS = st.builds(helium.taps, st.integers(1, 5), st.just(8), st.integers(1, 10), SEEDS)
LANES = st.builds(helium.lanes, SEEDS)
RESCALED = st.builds(helium.rescaled, st.sampled_from([1, 3]), st.integers(1, 9), SEEDS)
NINES = st.builds(
    helium.nines,
    st.integers(1, 20),
    st.integers(2, 9),
    st.sampled_from([1, 2]),
    st.integers(0, 2),
    SEEDS,
)
POOL = st.builds(
    helium.pool,
    st.integers(1, 16),
    st.integers(1, 16),
    st.sampled_from([1, 3, 4, 8, 12, 13]),
    SEEDS,
)
SECTIONS = st.tuples(ROWS, TAPS, LANES, ROWS, TAPS, RESCALED, NINES, POOL)

WITHOUT_LOOPS = "#undef __OPTIMIZE__\n"
"""Leaves the loops of assembly out."""


def memory_of(sections: tuple[Section, ...]) -> bytes:
    words = np.concatenate([*(section.given for section in sections), np.zeros(1, "uint32")])
    assert words.nbytes <= GIVEN and sum(s.expected.nbytes for s in sections) <= RESULT
    return words.tobytes().ljust(GIVEN, b"\0")


def check(sections: tuple[Section, ...], written: bytes) -> None:
    words = np.frombuffer(written, "int32")
    for number, section in enumerate(sections):
        made, words = np.split(words, [len(section.expected)])
        np.testing.assert_array_equal(made, section.expected, err_msg=f"section {number}")


@cache
def firmware(folder: Path, before: str) -> arm.ArmFirmware:
    soc = arm.on_qemu(resolve("cortex_m55").soc)
    (folder / "main.c").write_text(before + PROGRAM)
    arm.build_firmware([folder / "main.c"], soc, folder, Compiler.zig())
    return Firmware.open(folder / "firmware.elf", soc, soc.host.stack)


def on_the_core(sections: tuple[Section, ...], folder: Path, before: str) -> bytes:
    done = qemu.run_qemu(
        firmware(folder, before),
        {"given": memory_of(sections)},
        {"result": RESULT},
        entry="net_run",
        kernels=["first", "second"],
    )
    return done.outputs["result"]


@pytest.mark.rotating(1)
@pytest.mark.parametrize("before", ["", WITHOUT_LOOPS], ids=["loops", "intrinsics"])
@pytest.mark.parametrize("count", [4, pytest.param(40, marks=pytest.mark.slow)])
def test_vector_instructions_equal_numpy(before, count, tmp_path_factory):
    tool(qemu.PROGRAM)
    folder = tmp_path_factory.mktemp("helium")

    @settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))
    @given(SECTIONS)
    def equal(sections):
        check(sections, on_the_core(sections, folder, before))

    equal()


def test_plain_c_equals_numpy(tmp_path, compiler):
    source = tmp_path / "plain.c"
    source.write_text(PROGRAM.replace("int main(void) { return net_run(); }", ""))
    library = ctypes.CDLL(
        str(
            trapping(compiler).compile_host(
                [source], tmp_path / "plain.so", FOLDERS, STRICT, shared=True
            )
        )
    )

    @settings(max_examples=200, deadline=None)
    @given(SECTIONS)
    def equal(sections):
        written = ctypes.create_string_buffer(RESULT)
        library.first(written, memory_of(sections))
        check(sections, written.raw)

    equal()
