"""Siracusa's memories, and `Mchan`, the numbers of the cluster's DMA.

Sizes are *published*; addresses are from *public code* (GVSoC's model of the chip, pulp-nnx).
"""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.errors import TargetError
from byoc_dory.soc.parts import Dma, Memory, round_up

WORKERS = 8  # published: compute cores; the controller core comes in addition

# assumed: generous for generated code, which is not recursive; a kernel's frame is a few hundred
# bytes.
CONTROLLER_STACK = 4 * 1024
WORKER_STACK = 1024
# assumed: mailbox of the cores, and what is known of transfers.
RUNTIME_BYTES = 256
_LEAST = 2 * 1024  # assumed: what is of any use for tiles
L1_BYTES = 256 * 1024


def l1_memory(size: int, cores: int) -> Memory:
    """Return an L1 of ``size`` bytes, at whose end are the stacks of controller and cores.

    Raises:
        TargetError: the stacks leave no room for tiles.
    """
    reserved = CONTROLLER_STACK + cores * WORKER_STACK + RUNTIME_BYTES
    if size - reserved < _LEAST:
        raise TargetError(
            f"{cores} cores leave {size - reserved} B of an L1 of {size} B",
            where="SoC siracusa",
            hint=f"stacks take {reserved} B; give l1 at least {round_up(reserved + _LEAST, 1024)} B"
            ", or fewer cores",
        )
    return Memory(
        "L1",
        0x10000000,
        size - reserved,
        "L1: tightly coupled data memory",
        mapped=True,
        reserved=reserved,
    )


L1 = l1_memory(L1_BYTES, WORKERS)

# The two halves of the window of the weight memory, which begins with the MRAM.
MRAM = Memory(
    "MRAM", 0x10400000, 4 * 1024 * 1024, "weight memory: MRAM", mapped=True, constants=True
)
SRAM = Memory(
    "SRAM", 0x10800000, 4 * 1024 * 1024, "weight memory: SRAM", mapped=True, constants=True
)

# public code: two private banks of 32 KiB, and 0x1F0000 bytes shared in four interleaved banks.
L2 = Memory("L2", 0x1C000000, 2 * 1024 * 1024, "L2: code, constants, arena")


@dataclass(frozen=True)
class Mchan(Dma):
    """A DMA with a queue for each direction; both move ``bytes_per_cycle`` at the same time.

    A row outside of L1 is one or several bursts. While a burst is under way, others are, too, but
    only ``outstanding`` of them: short bursts do not hide the time until their answers arrive.
    ``call_cycles`` is this time; it counts for the first burst of a transfer to an idle DMA.

    Attributes:
        counters: number of counters, one of which each transfer belongs to.
        burst_bytes: longest burst in bytes.
        outstanding: number of bursts that can be under way in one direction.
        most_refusals: how often a direction takes a bank of L1 that a core asks for before the core
            has its turn.
    """

    counters: int
    burst_bytes: int
    outstanding: int
    most_refusals: int

    def row_cycles(self, size: int) -> int:
        """Return the cycles of a row of ``size`` bytes that begins on a word of the DMA."""
        whole, rest = divmod(size, self.burst_bytes)
        total = whole * self._burst_cycles(self.burst_bytes)
        return total + (self._burst_cycles(rest) if rest else 0)

    def _burst_cycles(self, size: int) -> int:
        words = -(-size // self.bytes_per_cycle)
        return max(words, -(-(self.call_cycles + words) // self.outstanding))
