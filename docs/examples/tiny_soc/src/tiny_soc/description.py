"""The SoC tiny in numbers.  This is the only place with any: Python reads them from here, C from
the header htvm_soc.h that is generated from it (`htvm targets show tiny` prints them).

Say of each number whether it is published, from public code, derived or assumed, and where from.
Here they are assumed, as the SoC is invented, where nothing else is said.
"""

from __future__ import annotations

from byoc_dory.soc.base import Dma, Host, HostCost, Memory, SimControl, Soc, TargetSpec
from tiny_soc.mac import Mac

__all__ = ["soc"]

MAC = Mac(
    name="mac",
    title="8x8 multiply-accumulate array",
    registers=0x40000000,
    l1="L1",
    family="mac",
    lanes=8,
    width=8,
    start_cycles=20,
    max_shift=31,
    align=4,
    # derived: measured on the simulator (what runs took, over what was predicted)
    product_cycles=50,
    transfer_cycles=38,
    wait_cycles=10,
    call_cycles=34,
)

DMA = Dma(
    name="DMA",
    registers=0x40002000,
    bytes_per_cycle=8,
    granule=8,  # a row takes whole cycles
    # Tiles begin at any byte; with others, `Rounding` of the tiling problem would pad them.
    l1_align=1,
    l2_align=1,
    queue_depth=4,
    call_cycles=16,  # of a transfer, before its first byte
    command_cycles=2,  # the same of each row, where there are several
    # The host's cycles are the accelerator's numbers.
    driver_single_cycles=0,
    driver_first_cycles=0,
    driver_next_cycles=0,
)

TINY = Soc(
    name="tiny",
    title="the SoC tiny",
    clock_hz=100_000_000,
    memories=(
        # mapped: the host can load and store there, too.
        Memory("L1", 0x10000000, 16 * 1024, "L1: tiles", mapped=True),
        Memory("L2", 0x20000000, 512 * 1024, "L2: code, constants, arena, stack"),
    ),
    host=Host(
        name="RV32IMC host",
        isa="rv32imc",
        stack=4096,
        # cycles of a kernel on the host, for estimates only
        cost=HostCost(
            conv_mac=3.0,
            pointwise_mac=3.0,
            dense_mac=3.3,
            depthwise_mac=4.7,
            add_element=7.8,
            pool_element=3.0,
            softmax_element=60.0,
            move_element=6.0,
            real_element=260.0,
            layout_byte=8.0,
        ),
    ),
    # of the simulator, not of the SoC: any page of addresses above the memories
    sim=SimControl(putchar=0x40001000, exit=0x40001004, trace=0x40001008),
    dma=DMA,
    accelerators=(MAC,),
    targets=(TargetSpec("tiny", ("mac",)), TargetSpec("tiny.cpu", ())),
    driver="tiny",
    package="tiny_soc",
)


def soc() -> Soc:
    """Return the description (entry point ``tiny`` of the group ``htvm.socs``)."""
    return TINY
