"""DIANA's analog core as an accelerator: its rules, tiles and cycles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from byoc_dory.soc.diana.analog_core import AnalogCore

if TYPE_CHECKING:
    from byoc_dory.layers import Layer
    from byoc_dory.options import TilingOptions
    from byoc_dory.plan import LayerPlan
    from byoc_dory.soc.base import Rules, Soc
    from byoc_dory.soc.diana.analog_emit import AnalogEmitter
    from byoc_dory.soc.diana.borders import PaddedLayout
    from byoc_dory.tileloop.cycles import Costs
    from byoc_dory.tileloop.program import TileProgram
    from byoc_dory.tiling import Objective, TilingProblem


@dataclass(frozen=True)
class AnalogAccelerator(AnalogCore):
    """The analog core: its numbers, rules, tiles, cycles and C."""

    @property
    def rules(self) -> Rules:
        """The rules in `analog_rules`, in the order in which they are checked."""
        from byoc_dory.soc.diana.analog_rules import RULES

        return RULES

    @property
    def objectives(self) -> Mapping[str, Objective]:
        """The objectives of `analog_objectives` by name."""
        from byoc_dory.soc.diana.analog_objectives import objectives_of

        return objectives_of(self)

    def tiling_problem(self, soc: Soc, layer: Layer, options: TilingOptions) -> TilingProblem:
        """Return a tile's use of L1 and of the array, with the limits."""
        from byoc_dory.soc.diana.analog_tiles import tiling_problem

        return tiling_problem(soc, self.under(options), layer, self.budget(soc, options))

    def tile_program(
        self, soc: Soc, layer: Layer, plan: LayerPlan, options: TilingOptions
    ) -> TileProgram:
        """Return the tile-by-tile execution of a layer under a plan."""
        from byoc_dory.soc.diana.analog_program import analog_loop, analog_program

        core = self.under(options)
        return analog_program(core, analog_loop(core, layer, plan, options))

    def costs(self, soc: Soc, layer: Layer, program: TileProgram, options: TilingOptions) -> Costs:
        """Return the cycles of transfers and triggers, including their driver code."""
        from byoc_dory.soc.diana.cost import costs_of

        return costs_of(soc, self, options.schedule == "published")

    def layout(self, soc: Soc) -> PaddedLayout:
        """Return the layout of tensors, the same for both cores."""
        from byoc_dory.soc.diana.borders import PaddedLayout

        return PaddedLayout(self)

    def emitter(self, soc: Soc) -> AnalogEmitter:
        """Return the emitter that generates C from plans."""
        from byoc_dory.soc.diana.analog_emit import AnalogEmitter

        return AnalogEmitter(self, soc)
