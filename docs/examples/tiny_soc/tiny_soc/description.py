"""The SoC tiny in numbers.  This is the only place with any: Python reads them from here, C from
the header htvm_soc.h that is generated from it (`htvm targets show tiny` prints them).

Say of each number whether it is published, from public code, derived or assumed, and where from.
Here they are assumed, as the SoC is invented, where nothing else is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from byoc_dory.soc.base import Accelerator, Host, HostCost, Memory, SimControl, Soc, TargetSpec

if TYPE_CHECKING:
    from byoc_dory.layers import Layer
    from byoc_dory.options import TilingOptions
    from byoc_dory.plan import LayerPlan
    from byoc_dory.soc.base import Rule
    from byoc_dory.tileloop.cycles import Costs
    from byoc_dory.tileloop.program import TileProgram
    from byoc_dory.tiling import Objective, TilingProblem
    from tiny_soc.emit import MacEmitter

__all__ = ["Mac", "soc"]


@dataclass(frozen=True)
class Mac(Accelerator):
    """Multiplies a matrix in L1 by weights in L1: ``lanes`` outputs, ``width`` products of each.

    Every integer field is a constant in C, such as TINY_MAC_LANES.  The methods import what they
    need, so that a list of targets loads no solver.

    Attributes:
        lanes: outputs at a time.
        width: products of each, in a cycle.
        start_cycles: from the start until the first product.
        max_shift: largest right shift of the requantization.
        align: of the weights' address in L1.
        driver_cycles: host cycles of starting and of waiting.
        call_cycles: host cycles of a layer besides.
        copy_cycles: host cycles of a copy, besides those of its bytes.
        row_cycles: the same of each row of a copy of many.
        copy_bytes: bytes that the host copies in ``copy_block_cycles``.
        copy_block_cycles: see there.
    """

    lanes: int
    width: int
    start_cycles: int
    max_shift: int
    align: int
    driver_cycles: int
    call_cycles: int
    copy_cycles: int
    row_cycles: int
    copy_bytes: int
    copy_block_cycles: int

    @property
    def peak_macs(self) -> float:
        """Products per cycle."""
        return self.lanes * self.width

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules a layer must pass."""
        from tiny_soc.mac import RULES

        return RULES

    @property
    def objectives(self) -> Mapping[str, Objective]:
        """What a good tile is, by name."""
        from tiny_soc.mac import OBJECTIVES

        return OBJECTIVES

    def tiling_problem(self, layer: Layer, soc: Soc, l1_budget: int | None = None) -> TilingProblem:
        """Return what a tile needs of L1."""
        from tiny_soc.mac import tiling_problem

        return tiling_problem(layer, self, self.budget(soc, l1_budget))

    def tile_program(
        self, layer: Layer, plan: LayerPlan, soc: Soc, options: TilingOptions
    ) -> TileProgram:
        """Return how a layer is executed tile by tile under a plan."""
        from tiny_soc.program import mac_program

        return mac_program(layer, plan)

    def costs(self, layer: Layer, program: TileProgram, soc: Soc, options: TilingOptions) -> Costs:
        """Return the cycles of the driver's calls."""
        from tiny_soc.program import costs

        return costs(self)

    def emitter(self, soc: Soc) -> MacEmitter:
        """Return what turns plans into C."""
        from tiny_soc.emit import MacEmitter

        return MacEmitter(self)


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
    driver_cycles=100,
    call_cycles=40,
    copy_cycles=56,
    row_cycles=36,
    copy_bytes=32,
    copy_block_cycles=28,
)

TINY = Soc(
    name="tiny",
    title="the SoC tiny",
    clock_hz=100_000_000,
    memories=(
        # mapped: the host loads and stores there, too.
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
    dma=None,
    accelerators=(MAC,),
    targets=(TargetSpec("tiny", ("mac",)), TargetSpec("tiny.cpu", ())),
    driver="tiny",
    package="tiny_soc",
)


def soc() -> Soc:
    """Return the description (entry point ``tiny`` of the group ``htvm.socs``)."""
    return TINY
