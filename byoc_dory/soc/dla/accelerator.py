"""The accelerator as placement, planning and code generation see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.soc.base import Rules, Soc
from byoc_dory.soc.dla.core import DlaCore

if TYPE_CHECKING:
    from pathlib import Path

    from byoc_dory.emit import RegionEmitter
    from byoc_dory.layers import Layer
    from byoc_dory.soc.regions import RegionRunner
    from byoc_dory.tileloop.cycles import Costs, Prices
    from byoc_dory.tileloop.program import TileProgram
    from byoc_dory.tiling import Objective, TilingProblem


@dataclass(frozen=True)
class Dla(DlaCore):
    """The accelerator: its numbers, rules, tiles, cycles and C."""

    @property
    def rules(self) -> Rules:
        """What a layer must satisfy."""
        from byoc_dory.soc.dla.rules import RULES

        return RULES

    @property
    def objectives(self) -> Mapping[str, Objective]:
        """The largest tile, as published, is that of the assembler."""
        from byoc_dory.tiling import Objective

        return {"none": Objective("none"), "array": Objective("array")}

    def tiling_problem(self, soc: Soc, layer: Layer, options: TilingOptions) -> TilingProblem:
        """Return what a tile needs of SRAM."""
        from byoc_dory.soc.dla.program import tiling_problem

        return tiling_problem(self, layer, self.budget(soc, options))

    def tile_program(
        self, soc: Soc, layer: Layer, plan: LayerPlan, options: TilingOptions
    ) -> TileProgram:
        """Return the tiles of a layer: bands of rows outside, output channels inside."""
        from byoc_dory.soc.dla.program import tile_program

        return tile_program(self, layer, plan)

    def costs(self, soc: Soc, layer: Layer, program: TileProgram, options: TilingOptions) -> Costs:
        """Return the cycles of instructions and transfers."""
        from byoc_dory.soc.dla.program import costs

        return costs(self, layer, self.design_for(soc, options))

    def plan_cost(
        self,
        soc: Soc,
        layer: Layer,
        plan: LayerPlan,
        options: TilingOptions,
        known: Prices | None = None,
    ) -> int:
        """Return the predicted cycles of a layer, in closed form."""
        from byoc_dory.soc.dla.program import predicted

        return predicted(self, layer, plan, self.design_for(soc, options))

    @property
    def region_runner(self) -> Callable[[Path], RegionRunner]:
        """What assembles regions late and executes them in the simulator."""
        from byoc_dory.soc.dla.regions import DlaRegions

        return DlaRegions

    def emitter(self, soc: Soc) -> RegionEmitter:
        """Return what assembles regions and writes their C."""
        from byoc_dory.soc.dla.emit import DlaEmitter

        return DlaEmitter(self, soc)
