"""Siracusa's memories that N-EUREKA accesses.

Sizes of L1 are *published*; addresses, and the windows of the weight memory, are from *public code*
(pulp-nnx, GVSoC).
"""

from __future__ import annotations

from byoc_dory.soc.parts import Memory

__all__ = ["L1", "MRAM", "SRAM"]

L1 = Memory("L1", 0x10000000, 256 * 1024, "L1: tightly coupled data memory", mapped=True)

# The two halves of the window of the weight memory, which begins with the MRAM.
MRAM = Memory("MRAM", 0x10400000, 4 * 1024 * 1024, "weight memory: MRAM", mapped=True)
SRAM = Memory("SRAM", 0x10800000, 4 * 1024 * 1024, "weight memory: SRAM", mapped=True)
