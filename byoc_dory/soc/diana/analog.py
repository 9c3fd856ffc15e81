"""DIANA's analog core as an accelerator: its rules, objectives, tiles and cycles.

A position costs the same for 1 as for 512 output channels, and every tile loads its weights again,
so few tiles with many channels are best.  Otherwise they are like those of the digital core
(`digital`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from byoc_dory.layers import Dense, Layer
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.soc.base import Soc, round_up
from byoc_dory.soc.diana.borders import PaddedLayout
from byoc_dory.soc.diana.core_programs import SUM_BYTES, analog_loop, analog_program
from byoc_dory.soc.diana.cores import AnalogCore
from byoc_dory.soc.diana.cost import costs_of
from byoc_dory.soc.diana.digital import MEMORY
from byoc_dory.soc.diana.emit import AnalogEmitter
from byoc_dory.soc.diana.rules import ANALOG_RULES
from byoc_dory.tileloop.cycles import Costs
from byoc_dory.tileloop.program import TileProgram
from byoc_dory.tiling.objectives import Fill, Heuristic, Objective, Size, Whole
from byoc_dory.tiling.problem import Axis, InputWindow, Rounding, TileWeights, TilingProblem

# More than the bytes of L1 and the array together.
_UNIT = 800_000

_MAPS = (
    Heuristic(
        "long DMA", Size("iy"), _UNIT,
        "data are C-y-x: more rows per tile are fewer and longer DMA commands",
    ),
    Heuristic(
        "whole maps", Whole(("y",)), 30 * _UNIT,
        "tiles of whole maps are contiguous over channels: one DMA command",
    ),
    Heuristic(
        "whole rows", Whole(("x",)), 100 * _UNIT,
        "tiles of whole rows are contiguous over rows: one DMA command per channel",
    ),
)  # fmt: skip

ARRAY = Objective(
    "array",
    (
        Heuristic(
            "all columns of the array", Size("k"), _UNIT,
            "a position costs the same however many output channels there are",
        ),
        *_MAPS,
    ),
)  # fmt: skip


def _paper(core: AnalogCore) -> Objective:
    """Return the objective of DORY's tiler for this core.

    Public code: 10^8 for each of (K - 1) mod 512 and (C - 1) mod 128; a layer that fits is not
    tiled (HTVM paper III-B).  The paper's equations are for the digital core.
    """
    return Objective(
        "paper",
        (
            Heuristic("untiled", Whole(("k", "y", "x")), 1_000 * _UNIT, "what fits is not tiled"),
            Heuristic("columns", Fill("k", core.columns), _UNIT, "(K - 1) mod 512, as in DORY"),
            Heuristic(
                "channels", Fill("c", core.column_step), _UNIT, "(C - 1) mod 128, as in DORY"
            ),
        ),
    )


@dataclass(frozen=True)
class AnalogAccelerator(AnalogCore):
    """The analog core: its numbers, rules, tiles, cycles and C."""

    rules = ANALOG_RULES

    @property
    def objectives(self) -> Mapping[str, Objective]:
        """The objectives by name."""
        paper = _paper(self)
        # Heuristics that the paper's equations omit do not apply to this core.
        return {ARRAY.name: ARRAY, paper.name: paper, "paper-pe": paper, MEMORY.name: MEMORY}

    def tiling_problem(self, soc: Soc, layer: Layer, options: TilingOptions) -> TilingProblem:
        """Return a tile's use of L1 and of the array, with the limits.

        C is never tiled, as all passes of a tile follow each other; x is whole or a multiple of 4,
        because the DMA moves whole reversed groups.  An output channel is a column of cells; if
        there is room, the schedule computes several output columns at a time.
        """
        core = self.with_options(options)
        pass_channels = min(layer.C, max(1, core.pass_channels(layer.fy, layer.fx)))
        column = round_up(pass_channels * layer.fy * layer.fx, core.row_step) * 2 // 8
        shared_fields: dict[str, Any] = {
            "name": layer.name,
            "l1_limit": self.budget(soc, options),
            "unit": core.l1,
            "sums": SUM_BYTES if pass_channels < layer.C else 0,
        }
        if isinstance(layer, Dense):
            untiled = Axis(1, tiled=False)
            return TilingProblem(
                k=Axis(layer.K, step=core.row_pitch),
                c=Axis(layer.C, tiled=False),
                y=untiled,
                x=untiled,
                window=InputWindow(1, 1),
                rounding=Rounding(k=core.row_pitch, c=core.row_pitch),
                weights=TileWeights(block=column * core.row_pitch, limit=column * core.columns),
                **shared_fields,
            )
        return TilingProblem(
            k=Axis(layer.K),
            c=Axis(layer.C, tiled=False),
            y=Axis(layer.oy),
            x=Axis(layer.ox, step=core.group),
            # x tiles start at multiples of the group, so the misalignment is always the same.
            window=InputWindow(
                layer.iy, layer.ix, layer.fy, layer.fx, layer.stride, -layer.pad[1] % core.group
            ),
            rounding=Rounding(x=core.row_pitch),
            weights=TileWeights(block=column, limit=column * core.columns),
            **shared_fields,
        )

    def tile_program(
        self, soc: Soc, layer: Layer, plan: LayerPlan, options: TilingOptions
    ) -> TileProgram:
        """Return the tile-by-tile execution of a layer under a plan."""
        core = self.with_options(options)
        return analog_program(core, analog_loop(core, layer, plan, options))

    def costs(self, soc: Soc, layer: Layer, program: TileProgram, options: TilingOptions) -> Costs:
        """Return the cycles of transfers and triggers, including their driver code."""
        return costs_of(soc, self, options.schedule == "published")

    def layout(self, soc: Soc) -> PaddedLayout:
        """Return the layout of tensors, the same for both cores."""
        return PaddedLayout(self)

    def emitter(self, soc: Soc) -> AnalogEmitter:
        """Return the emitter that generates C from plans."""
        return AnalogEmitter(self, soc)
