"""Command streams of the Ethos-U as text."""

from __future__ import annotations

import struct

import pytest

from htvm.errors import InputError
from htvm.sim.ethos_u import commands, disassemble
from tests.runtime_c.ethos_u_stream import LONG, OPERATIONS, SHORT, Map, Stream, kernel


def average() -> Stream:
    ifm, ofm = Map((4, 8, 16), 0), Map((4, 8, 16), 0x400, bricks=True, zero_point=-3)
    return Stream().set(**kernel(ifm, ofm, scale=(5, 2))).op("POOL", 1)


def test_operations_alone() -> None:
    lines = list(disassemble(average().payload(), registers=False))
    assert lines == [
        "    61 POOL AVERAGE kernel 1x1 stride 1x1 pad 0,0,0,0 IFM [1]0x0 depth 16 int8 NHWC zero 0"
        " -> OFM [1]0x400 4x8x16 int8 NHCWB16 NATURAL global scale zero -3 scale 5 >> 2"
        " clamp -32768..32767 block 2x4x16 blockdep 0",
        "    62 STOP 65535",
    ]


def test_every_write_has_a_line() -> None:
    lines = list(disassemble(average().payload()))
    assert lines[0] == "     0   IFM_REGION = 1"
    assert any(line.endswith("   OFM_BASE0 = 0x400") for line in lines)
    assert any(line.endswith("OFM_SCALE = 5 >> 2") for line in lines)


def test_every_code_has_its_name() -> None:
    """Of the tests' own list of them."""
    stream = Stream().set(**dict.fromkeys([*SHORT, *LONG], 1))
    for name in OPERATIONS:
        stream.op(name)
    found = [command.name for command in commands(stream.payload())]
    given = [{"POOL": "POOL MAX", "ELEMENTWISE": "ELEMENTWISE MUL"}.get(n, n) for n in OPERATIONS]
    assert found == [*SHORT, *LONG, *given, "STOP"]


def test_strange_words_are_shown() -> None:
    stream = average()
    stream.words += [0x0004, 0x0106]
    lines = list(disassemble(stream.payload()))
    assert lines[-3:-1] == ["    62 ? 0x004 0", "    63   ? 0x106 = 0"]


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (b"", "not a payload of driver actions"),
        (b"COP1" + struct.pack("<I", 7), "0x00000007 is no driver action"),
        (b"COP1" + struct.pack("<I", 2 | 5 << 16), "a command stream of 5 words is cut short"),
        (b"COP1" + struct.pack("<2I", 2 | 1 << 16, 0x4000), "ends within a command"),
    ],
)
def test_bad_payloads(payload: bytes, text: str) -> None:
    with pytest.raises(InputError, match=text):
        list(disassemble(payload))
