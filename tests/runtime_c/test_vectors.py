"""Functions for RISC-V's vectors: as vectors of any length, and as plain C, they equal numpy."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from byoc_dory.soc.registry import resolve
from htvm.firmware import user_mode as firmwares
from htvm.firmware.linked import Firmware
from htvm.firmware.toolchain import Compiler
from htvm.sim.qemu_user import run_qemu_user
from tests.aot.cpu.native import FOLDERS, STRICT, trapping
from tests.runtime_c import vectors
from tests.runtime_c.vectors import GIVEN, PROGRAM, RESULT, Section
from tests.tools import tool

SEEDS = st.integers(0, 2**32 - 1)
MANY = st.builds(vectors.many, st.integers(1, 16), SEEDS)
WINDOWS = st.builds(
    vectors.windows,
    st.integers(1, 13),
    st.integers(1, 40),
    st.integers(1, 3),
    st.integers(1, 10),
    SEEDS,
)
ROWS = st.builds(
    vectors.row,
    st.integers(1, 9),
    st.integers(1, 40),
    st.integers(1, 9),
    st.integers(1, 2),
    SEEDS,
)
SECTIONS = st.tuples(MANY, WINDOWS, ROWS)


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
def firmware(folder: Path, target: str) -> Firmware:
    soc = resolve(target).soc
    (folder / "main.c").write_text(PROGRAM)
    firmwares.build_firmware([folder / "main.c"], soc, folder, Compiler.zig())
    return Firmware.open(folder / "firmware.elf", soc, soc.host.stack)


@pytest.mark.rotating(2)
@pytest.mark.parametrize(
    "target", ["rv32imcv", "rv32imcv:vlen=1024", "rv64gcv", "rv64gcv:vlen=256"]
)
@pytest.mark.parametrize("count", [20, pytest.param(300, marks=pytest.mark.slow)])
def test_vector_instructions_equal_numpy(target, count, tmp_path_factory):
    tool("qemu-riscv64" if target.startswith("rv64") else "qemu-riscv32")
    folder = tmp_path_factory.mktemp("vectors")

    @settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))
    @given(SECTIONS)
    def equal(sections):
        done = run_qemu_user(
            firmware(folder, target),
            {"given": memory_of(sections)},
            {"result": RESULT},
            entry="net_run",
            kernels=["first", "second"],
            compiler=Compiler.zig(),
        )
        check(sections, done.outputs["result"])

    equal()


def test_plain_c_equals_numpy(tmp_path, compiler):
    source = tmp_path / "plain.c"
    source.write_text(PROGRAM.replace("int main(void) { return net_run(); }", ""))
    built = trapping(compiler).compile_host(
        [source], tmp_path / "plain.so", FOLDERS, STRICT, shared=True
    )
    library = ctypes.CDLL(str(built))

    @settings(max_examples=100, deadline=None)
    @given(SECTIONS)
    def equal(sections):
        written = ctypes.create_string_buffer(RESULT)
        library.first(written, memory_of(sections))
        check(sections, written.raw)

    equal()
