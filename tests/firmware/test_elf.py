"""Reading ELF files: sections and symbols of sound ones, a typed error for all others."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htvm.errors import SimulationError
from htvm.firmware.elf import read_elf
from htvm.firmware.toolchain import Compiler
from htvm.sim.iss import run_elf
from tests.sim.bare import RAM, assemble, make_elf, words

TEXT = """
.globl _start
_start: la a0, table; la a1, zeros; j _start
.globl table
.type table, @object
.size table, 12
.data
table: .word 1, 2, 3
.bss
zeros: .zero 64
"""


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory, compiler: Compiler) -> Path:
    return assemble(TEXT, tmp_path_factory.mktemp("elf"), compiler)


def test_sections_and_symbols(elf: Path) -> None:
    facts = read_elf(elf)
    assert facts.symbols["_start"].address == RAM
    assert facts.symbols["table"].size == 12
    sections = {section.name: section for section in facts.sections}
    assert sections[".data"].address == facts.symbols["table"].address
    assert sections[".bss"].size == 64


def test_unreadable(tmp_path: Path) -> None:
    with pytest.raises(SimulationError, match="cannot read"):
        read_elf(tmp_path / "missing")


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_corrupt_files_give_typed_errors(elf: Path, data: st.DataObject) -> None:
    image = bytearray(elf.read_bytes())
    table = int.from_bytes(image[32:36], "little")
    places = st.one_of(st.integers(0, 51), st.integers(table, len(image) - 1))
    for at in data.draw(st.lists(places, max_size=4)):
        image[at] = data.draw(st.integers(0, 255))
    image = image[: data.draw(st.integers(0, len(image)))] if data.draw(st.booleans()) else image
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.elf"
        path.write_bytes(bytes(image))
        try:
            read_elf(path)
        except SimulationError as error:
            assert "ELF" in str(error)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_simulator_survives_corrupt_files(data: st.DataObject) -> None:
    image = bytearray(make_elf([(RAM, words(0x6F))]))  # jumps to itself
    for at in data.draw(st.lists(st.integers(0, len(image) - 1), min_size=1, max_size=4)):
        image[at] = data.draw(st.integers(0, 255))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.elf"
        path.write_bytes(bytes(image))
        with pytest.raises(SimulationError) as caught:
            run_elf(path, max_cycles=1000)
        assert "ended with code" not in str(caught.value)
