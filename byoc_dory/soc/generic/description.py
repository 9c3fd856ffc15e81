"""A plain RV32 microcontroller: DIANA's simulated host with L2 of any size."""

from __future__ import annotations

from dataclasses import replace

from byoc_dory.soc.base import Memory, Parameter, SimControl, Soc, TargetSpec
from byoc_dory.soc.cores import CV32E40P

# assumed: an address map of our own, with room for an L2 of up to 1 GiB below the registers.
L2_BASE = 0x40000000
SIM_REGISTERS = 0x80000000

# assumed: 4 MiB by default; networks that overflow DIANA's L2 fit.
L2_BYTES = 4 * 1024 * 1024

PARAMETERS = (
    Parameter("l2", L2_BYTES, "L2", unit="B", low=16 << 10, high=1 << 30, step=16,
              sets="L2.size"),
)  # fmt: skip


def _design(*, l2: int) -> Soc:
    return GENERIC.resized("L2", l2)


GENERIC = Soc(
    name="generic",
    title="generic RV32 microcontroller",
    clock_hz=260_000_000,  # assumed: DIANA's clock, so that times compare
    memories=(Memory("L2", L2_BASE, L2_BYTES, "L2: code, constants, arena, stack"),),
    # assumed: a larger stack than DIANA's, as memory is not a constraint here.
    host=replace(CV32E40P, stack=16_384),
    sim=SimControl(
        putchar=SIM_REGISTERS + 0x0, exit=SIM_REGISTERS + 0x4, trace=SIM_REGISTERS + 0x8
    ),
    dma=None,
    accelerators=(),
    targets=(TargetSpec("generic.cpu", ()),),
    driver="none",
    adjustable=("L2",),
    parameters=PARAMETERS,
    design=_design,
)


def soc() -> Soc:
    """Return the description (entry point ``generic`` of the group ``htvm.socs``)."""
    return GENERIC
