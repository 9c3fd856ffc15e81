"""The instruction set: encoding, decoding, disassembly, the C header, and wrong streams."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import runtime_c
from byoc_dory.errors import SimulationError, UnsupportedError
from byoc_dory.soc.dla.assemble import Stream, assemble
from byoc_dory.soc.dla.design import Design
from byoc_dory.soc.dla.header import render_isa
from byoc_dory.soc.dla.isa import (
    BY_NAME,
    FLAGS,
    INSTRUCTIONS,
    REGISTERS,
    Command,
    decode,
    disassemble,
    encode,
)
from byoc_dory.soc.dla.memory import plan
from byoc_dory.soc.dla.page import render_page
from byoc_dory.soc.dla.region_file import lower
from byoc_dory.soc.dla.simulator import Executed, Simulator, trace_lines
from tests.byoc_dory.dla_draws import draw_region, library, run_region

DESIGN = Design(pes_in=1, pes_out=8, sram=1 << 16)

PUBLISHED = (
    "OP_CONV OP_CONV_RELU OP_DEPTH_CONV OP_MAT_MUL OP_ACT_RELU OP_ACT_LRELU OP_POOL OP_E_ABS "
    "OP_C_MIN OP_C_MAX OP_E_ADD OP_E32_ADD OP_DMA_READ OP_DMA_WRITE"
).split()


@st.composite
def commands(draw: st.DrawFn) -> Command:
    if draw(st.booleans()):
        register = draw(st.sampled_from(REGISTERS))
        return Command(0, "SET", register=register.name, value=draw(st.integers(0, 2**32 - 1)))
    instruction = draw(st.sampled_from(INSTRUCTIONS))
    flags = draw(st.sets(st.sampled_from(instruction.flags or (None,))))
    return Command(0, instruction.name, flags=sum(flag.mask for flag in flags if flag))


@given(st.lists(commands()))
def test_decoding_reverses_encoding(given: list[Command]) -> None:
    words = encode(given)
    assert [replace(command, at=0) for command in decode(words)] == given
    assert len(list(disassemble(words))) == len(given)


def test_the_published_instructions_are_all_there() -> None:
    assert set(PUBLISHED) < set(BY_NAME)
    assert len({instruction.opcode for instruction in INSTRUCTIONS}) == len(INSTRUCTIONS)
    assert len({flag.bit for flag in FLAGS}) == len(FLAGS)


def test_the_header_is_that_of_the_table() -> None:
    path = Path(runtime_c.__file__).parent / "soc" / "dla" / "dla_isa.h"
    assert path.read_text(encoding="utf-8") == render_isa()


def test_the_page_is_that_of_the_table() -> None:
    path = Path(__file__).parents[2] / "docs" / "reference" / "dla-isa.md"
    assert path.read_text(encoding="utf-8") == render_page()


def test_a_stream_is_disassembled() -> None:
    words = encode(
        [
            Command(0, "SET", register="CLIP", value=(-128 & 0xFFFF) << 16 | 127),
            Command(0, "OP_CONV", flags=0b101),
        ]
    )
    assert list(disassemble(words)) == [
        "     0  SET CLIP = -128, 127",
        "     2  OP_CONV .REQUANT .BIAS",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([0x7F000000], "there is no instruction 0x7f"),
        ([0x01000063, 1], "register 99 is written"),
        ([0x01000000], "the stream ends"),
        ([0x20000001], "OP_ACT_RELU has no flags 0x1"),
        ([0x10000000], None),
    ],
)
def test_wrong_words_are_refused_by_decoder_and_simulator(
    words: list[int], message: str | None
) -> None:
    """The last one is right, but its registers are not."""
    if message is not None:
        with pytest.raises(UnsupportedError, match=message):
            list(decode(words))
    with pytest.raises(
        SimulationError, match=message or "OP_CONV reads register IN0, which nobody wrote"
    ):
        run_words(words)


def run_words(words: list[int]) -> None:
    region = draw_region(np.random.default_rng(1), 1)
    file, weights = lower(region)
    own = assemble(file, DESIGN, plan(file, DESIGN))
    own.words[:] = type(own.words)("I", words)
    stream = Stream(own.words, (0, len(words)), 0, 0)
    x = np.zeros(region.inputs[0].shape, np.int8)
    Simulator(library(), DESIGN).run(file, weights, {"in": x}, stream)


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("IN0", 1 << 16, "the operand at SRAM 0x10000 .* leaves the SRAM"),
        ("WEIGHTS", 0x8000, "the weights reads SRAM 0x8000, which nobody wrote"),
        ("BIAS", 0x8001, "the biases at SRAM 0x8001 are not aligned to 4 B"),
        ("SHIFT", 32, "a shift of 32 bits"),
        ("CLIP", 5 << 16 | 4, r"a clip to 5\.\.4"),
        ("OUT_PIXEL", 0, "elements of the result overlap"),
        ("KERNEL", 0, "a window of 0x0"),
        ("SLOT", 4, "slot 4"),
        ("OFFSET", 1 << 30, "not in system memory"),
        ("LOCAL", 0xFFFF, "leaves the SRAM of 65536 B"),
        ("ROWS", 0, "0 rows"),
    ],
)
def test_wrong_registers_are_complained_about(name: str, value: int, complaint: str) -> None:
    """The last write of a register of a right stream gets a wrong value."""
    region = draw_region(np.random.default_rng(12), 1)
    assert region.layers[0].op == "conv2d"
    file, weights = lower(region)
    right = assemble(file, DESIGN, plan(file, DESIGN))
    found = list(decode(right.words))
    place = max(n for n, command in enumerate(found) if command.register == name)
    found[place] = replace(found[place], value=value)
    words = right.words[:0]
    words.extend(encode(found))
    x = np.zeros(region.inputs[0].shape, np.int8)
    with pytest.raises(SimulationError, match=complaint) as caught:
        Simulator(library(), DESIGN).run(file, weights, {"in": x}, replace(right, words=words))
    assert "layer 'layer_0'" in str(caught.value) and "word " in str(caught.value)


def test_a_trace_has_every_instruction_with_its_cycles() -> None:
    region = draw_region(np.random.default_rng(12), 3)
    x = np.zeros(region.inputs[0].shape, np.int8)
    done: list[Executed] = []
    _, counts, stream = run_region(region, DESIGN, x, done)
    lines = list(trace_lines(stream.words, done, DESIGN.pes))
    assert sum(" cycles, " in line for line in lines) == len(done)
    assert len(lines) == len(done) + stream.written
    assert sum(each.cycles for each in done) == sum(sum(c.cycles.values()) for c in counts)
    products = [each for each in done if each.macs]
    assert products and all(0 < each.utilisation(DESIGN.pes) <= 1 for each in products)
    assert any("% of the PEs" in line and "OP_CONV" in line for line in lines)
