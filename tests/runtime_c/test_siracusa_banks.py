"""The banks of L1 that N-EUREKA and the DMA take from the cores."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest

from byoc_dory.soc.siracusa.memories import L1, SRAM
from tests.reference import neureka as reference
from tests.runtime_c.banks import Banks, Port
from tests.runtime_c.siracusa import MRAM, SOC, WEIGHT_BYTES, Engine, library
from tests.runtime_c.test_neureka import job_of, registers

DMA = 0x00202000
COMMAND, STATUS, IN, INCREMENT, ROWS_L1 = DMA, DMA + 4, 1 << 17, 1 << 18, 1 << 23
FOREVER = 2**64 - 1


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = Engine(library())
    made._lib.htvm_soc_banks.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    made._lib.htvm_soc_banks.restype = Banks
    yield made
    made.close()


def banks(engine: Engine, at: int) -> tuple[tuple[int, int], list[Port]]:
    """The cycles of which the answer for a cycle holds, and the ports."""
    found = engine._lib.htvm_soc_banks(engine._soc, at)
    assert found.start <= at < found.until
    return (found.start, found.until), list(found.port[: found.count])


def transfer(engine: Engine, l1: int, outside: int, size: int, more: tuple[int, ...] = ()) -> None:
    """Start a transfer to L1; ``more``: bytes of a row and their distance in L1."""
    engine.read(COMMAND)
    flags = ROWS_L1 if more else 0
    for word in (size | IN | INCREMENT | flags, L1.base + l1, outside, *more):
        engine.write(COMMAND, word)
    assert engine.error is None


def test_nothing_is_taken_by_idle_devices(engine: Engine) -> None:
    assert banks(engine, 0) == ((0, FOREVER), [])


def test_a_transfer_takes_two_banks_while_its_bytes_arrive(engine: Engine) -> None:
    engine.now = 100
    transfer(engine, 20, MRAM.base, 256)
    # 30 cycles until the first of 32 words of 8 bytes.
    assert banks(engine, 100) == ((0, 130), [])
    held, (port,) = banks(engine, 131)
    assert held == (130, 162)
    assert (port.start, port.busy, port.of) == (130, 32, 32)
    assert (port.bank % 16, port.step, port.width, port.most) == (5, 2, 2, 1)
    assert banks(engine, 162) == ((162, FOREVER), [])


def test_short_rows_take_banks_in_some_cycles(engine: Engine) -> None:
    """A burst of one word takes as long as its answer: 31 cycles, of which 8 are under way."""
    transfer(engine, 0, MRAM.base, 64, (8, 100))
    _, (port,) = banks(engine, 30)
    assert (port.busy, port.of) == (8, 8)  # one burst outside of L1
    transfer(engine, 4096, MRAM.base, 5)
    _, (port,) = banks(engine, 40)
    assert (port.busy, port.of) == (1, 4)


def test_transfers_follow_each_other(engine: Engine) -> None:
    for number in range(3):
        transfer(engine, 1024 * number, MRAM.base, 768)
    ports = [banks(engine, at)[1][0] for at in (30, 125, 126, 221, 222, 317)]
    assert [port.start for port in ports] == [30, 30, 126, 126, 222, 222]
    assert [port.bank % 16 for port in ports] == [0] * 6
    assert banks(engine, 318) == ((318, FOREVER), [])


@pytest.mark.parametrize(
    ("kind", "rows", "columns", "inputs", "outputs", "accesses"),
    [
        # Pixels per block and Ki tile, of which padding above and on the left counts as loaded;
        # scales and biases per block and Ko tile; results.
        ("3x3", 6, 6, 28, 32, 7 * 7 + 1 + 4 + 36),
        ("3x3", 12, 6, 56, 32, 2 * (8 * 7 + 7 * 7) + 2 * (1 + 4) + 72),
        ("1x1", 6, 6, 64, 64, 2 * (2 * 36 + 1 + 4 + 36)),
        ("1x1", 1, 1, 32, 32, 1 + 1 + 4 + 1),
        ("depthwise", 6, 6, 28, 28, 7 * 7 + 1 + 4 + 36),
    ],
)
def test_a_job_takes_the_engines_port(
    engine: Engine, kind: str, rows: int, columns: int, inputs: int, outputs: int, accesses: int
) -> None:
    """One access of up to 32 bytes for each pixel, word of constants, and result."""
    job = job_of(kind, rows, columns, inputs, outputs)
    engine.now = 50
    engine.start(registers(job))
    assert engine.error is None
    held, (port,) = banks(engine, 60)
    cycles = reference.cycles(job)
    assert held == (50, 50 + cycles)
    assert (port.start, port.busy, port.of) == (50, accesses, cycles)
    assert (port.width, port.most) == (8, 8)
    assert banks(engine, 50 + cycles) == ((50 + cycles, FOREVER), [])


def test_weights_in_l1_are_read_through_the_port_too(engine: Engine) -> None:
    """A 3x3 job reads a word per bit and output channel, for each block and Ki tile."""
    job = job_of("3x3", 6, 12, 28, 32)
    far = registers(job)
    engine.start(far)
    apart = banks(engine, 1)[1][0].busy
    other = Engine(engine._lib)
    near = list(far)
    near[0] = L1.base + 4096
    near[23] &= ~(1 << 9)
    other.start(near)
    assert other.error is None
    assert banks(other, 1)[1][0].busy == apart + 2 * 8 * 32
    other.close()


def test_all_three_at_once(engine: Engine) -> None:
    """The DMA in both directions and the engine."""
    engine.start(registers(job_of("3x3", 12, 12, 28, 32)))
    transfer(engine, 128 * 1024, MRAM.base, 4096)
    engine.read(COMMAND)
    for word in (4096 | INCREMENT, L1.base + 140 * 1024, SRAM.base + WEIGHT_BYTES - 4096):
        engine.write(COMMAND, word)
    assert engine.error is None
    _, ports = banks(engine, 100)
    assert sorted(port.width for port in ports) == [2, 2, 8]
    assert banks(engine, 1)[1][0].width == 8


def test_the_cores_have_as_many_banks() -> None:
    cluster = SOC.cluster
    assert cluster is not None
    assert (cluster.banks, cluster.bank_bytes) == (16, 4)
