"""The banks of L1 that ITA and the DMA take from Snitch's cores."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest

from tests.reference.ita import Requant
from tests.runtime_c.banks import Banks, Port
from tests.runtime_c.cluster import CORE, L1, L2, SOC, Cluster, library

FOREVER = 2**64 - 1
SHIFT = Requant(1, 8)
# A tile of 64x64 by 64: its rows pass four times, its weights and its results once.
TILE_BYTES = 4 * 4096 + 4096 + 4096
CYCLES = 32 + 256 + 56 + 21


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster(library())
    made._lib.htvm_soc_banks.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    made._lib.htvm_soc_banks.restype = Banks
    yield made
    made.close()


def banks(cluster: Cluster, at: int) -> tuple[tuple[int, int], list[Port]]:
    """The cycles of which the answer for a cycle holds, and the ports."""
    found = cluster._lib.htvm_soc_banks(cluster._soc, at)
    assert found.start <= at < found.until
    return (found.start, found.until), list(found.port[: found.count])


def test_nothing_is_taken_by_idle_devices(cluster: Cluster) -> None:
    assert banks(cluster, 7) == ((0, FOREVER), [])


def test_a_transfer_takes_eight_banks_in_each_cycle_in_which_bytes_move(cluster: Cluster) -> None:
    cluster.now = 100
    cluster.dma(L2.base, L1.base + 24, 640)
    assert banks(cluster, 100) == ((0, 150), [])  # its set-up
    held, (port,) = banks(cluster, 155)
    assert held == (150, 160)
    assert (port.start, port.busy, port.of) == (150, 1, 1)
    assert (port.bank % 32, port.step, port.width) == (3, 8, 8)
    assert port.most > 1000  # wide accesses have priority
    assert banks(cluster, 160) == ((160, FOREVER), [])


def test_short_rows_take_the_banks_of_their_places(cluster: Cluster) -> None:
    cluster.dma(L2.base, L1.base, 64, 16, 64, 128)
    _, (port,) = banks(cluster, 60)
    assert (port.step, port.width) == (16, 8)


def test_both_sides_of_a_move_within_l1(cluster: Cluster) -> None:
    cluster.dma(L1.base, L1.base + 4096 + 64, 1024)
    assert [port.bank % 32 for port in banks(cluster, 55)[1]] == [0, 8]


def test_a_task_takes_half_the_banks_in_two_of_three_cycles(cluster: Cluster) -> None:
    cluster.now = 10
    cluster.program((64, 64, 64), (0, 64), (8192, 64), (16384, 64), SHIFT)
    held, (port,) = banks(cluster, 20)
    assert held == (10, 10 + CYCLES)
    assert (port.busy, port.of) == (TILE_BYTES // 128, CYCLES)
    assert (port.width, port.step, port.most) == (16, 16, 1)  # ports take turns with cores'


def test_results_are_written_once_for_all_inner_tiles(cluster: Cluster) -> None:
    cluster.program((64, 64, 512), (0, 512), (32768, 512), (65536, 64), SHIFT)
    _, (port,) = banks(cluster, 20)
    assert port.busy == (8 * 5 * 4096 + 4096) // 128


def test_a_second_task_begins_where_the_first_ends(cluster: Cluster) -> None:
    for out in (16384, 24576):
        cluster.program((64, 64, 64), (0, 64), (8192, 64), (out, 64), SHIFT)
    # The drain of the first overlaps the second.
    assert [len(banks(cluster, at)[1]) for at in (CYCLES - 22, CYCLES - 10, CYCLES + 10)] == [
        1,
        2,
        1,
    ]


def test_a_transfer_beside_a_task(cluster: Cluster) -> None:
    cluster.program((64, 64, 64), (0, 64), (8192, 64), (16384, 64), SHIFT)
    cluster.dma(L2.base, L1.base + 32768, 4096)
    assert sorted(port.width for port in banks(cluster, 60)[1]) == [8, 16]


def test_the_cluster_has_the_ports_of_the_paper() -> None:
    assert SOC.cluster is not None and SOC.dma is not None
    assert (SOC.cluster.banks, SOC.cluster.bank_bytes) == (32, 8)
    assert (SOC.dma.bytes_per_cycle, CORE.weight_bytes_per_cycle) == (64, 128)
