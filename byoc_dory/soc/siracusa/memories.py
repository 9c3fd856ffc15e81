"""Siracusa's memories.

Sizes are *published*; addresses are from *public code* (GVSoC's model of the chip, pulp-nnx).
"""

from __future__ import annotations

from byoc_dory.soc.parts import Memory

__all__ = ["CONTROLLER_STACK", "L1", "L2", "MRAM", "SRAM", "WORKER_STACK", "WORKERS"]

WORKERS = 8  # published: compute cores; the controller core comes in addition

# assumed: generous for generated code, which is not recursive; a kernel's frame is a few hundred
# bytes.
CONTROLLER_STACK = 4 * 1024
WORKER_STACK = 1024
# assumed: mailbox of the cores, and what is known of transfers.
RUNTIME_BYTES = 256
L1_RESERVED = CONTROLLER_STACK + WORKERS * WORKER_STACK + RUNTIME_BYTES

L1 = Memory(
    "L1",
    0x10000000,
    256 * 1024 - L1_RESERVED,
    "L1: tightly coupled data memory",
    mapped=True,
    reserved=L1_RESERVED,
)

# The two halves of the window of the weight memory, which begins with the MRAM.
MRAM = Memory(
    "MRAM", 0x10400000, 4 * 1024 * 1024, "weight memory: MRAM", mapped=True, constants=True
)
SRAM = Memory(
    "SRAM", 0x10800000, 4 * 1024 * 1024, "weight memory: SRAM", mapped=True, constants=True
)

# public code: two private banks of 32 KiB, and 0x1F0000 bytes shared in four interleaved banks.
L2 = Memory("L2", 0x1C000000, 2 * 1024 * 1024, "L2: code, constants, arena")
