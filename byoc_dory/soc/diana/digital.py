"""DIANA's digital core as an accelerator: its rules, objectives, tiles and cycles.

The array computes 16 output maps (K) by 16 output columns (ox) at a time, and the DMA needs one
command per contiguous piece: a tile of whole rows is one piece per channel, a tile of whole maps a
single piece.

alpha is 1, so weights are in bytes of L1.  A unit of any heuristic outweighs any additional memory
that a tile could use (`_UNIT`); whole rows come first, because a tiled x turns every row of every
channel into a separate DMA command.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import Add, Convolution, Dense, Layer
from byoc_dory.layers.layer import sizes_of
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan, plan_alone
from byoc_dory.soc.base import Soc, round_up
from byoc_dory.soc.diana.borders import PaddedLayout
from byoc_dory.soc.diana.core_programs import digital_loop, digital_program
from byoc_dory.soc.diana.cores import DigitalCore
from byoc_dory.soc.diana.cost import costs_of
from byoc_dory.soc.diana.emit import DianaEmitter
from byoc_dory.soc.diana.packing import pad_filter
from byoc_dory.soc.diana.rules import DIGITAL_RULES
from byoc_dory.tileloop.cycles import Costs
from byoc_dory.tileloop.program import TileProgram
from byoc_dory.tiling.objectives import Fill, Heuristic, Objective, Size, Whole
from byoc_dory.tiling.problem import (
    Axis,
    InputWindow,
    Rounding,
    TileWeights,
    TilingProblem,
    solution_of,
)

# More than the bytes of L1 and weight memory together (320 000 B).
_UNIT = 400_000

# The paper's equations have the printed modulus, whatever the description says.
_PRINTED = 16

# HTVM paper III-B: only layers that do not fit are tiled.
_UNTILED = Heuristic(
    "untiled",
    Whole(("k", "y", "x")),
    1_000 * _UNIT,
    "a layer that fits L1 is not tiled (paper III-B)",
)

PAPER_PE = Objective(
    "paper-pe",
    (
        _UNTILED,
        Heuristic("Eq. 3", Fill("c", _PRINTED), _UNIT, "(C - 1) mod 16, as printed"),
        Heuristic("Eq. 4", Fill("ix", _PRINTED), _UNIT, "(ix - 1) mod 16, as printed"),
    ),
)

PAPER = Objective(
    "paper",
    (
        *PAPER_PE.heuristics,
        Heuristic("Eq. 5", Size("iy"), _UNIT, "iy, as printed"),
    ),
)

MEMORY = Objective("none")


def _array(core: DigitalCore) -> Objective:
    """Full rows and columns of the array, and long transfers."""
    return Objective(
        "array",
        (
            Heuristic(
                "fill rows of the array", Fill("k", core.lanes, whole_is_full=True), _UNIT,
                "output channels in multiples of 16 use all rows of the array; depthwise and add "
                "do not spread channels over it",
                scope="reducing",
            ),
            Heuristic(
                "fill columns of the array", Fill("x", core.columns, whole_is_full=True), _UNIT,
                "output columns in multiples of 16 use all columns of the array",
            ),
            Heuristic(
                "long DMA", Size("iy"), _UNIT,
                "data are C-y-x: more rows per tile are fewer and longer DMA commands",
            ),
            Heuristic(
                "whole maps", Whole(("y",)), 30 * _UNIT,
                "tiles of whole maps are contiguous over channels: one DMA command",
            ),
            Heuristic(
                # More than the rows and the filling of the largest images, so that whole rows come
                # first.
                "whole rows", Whole(("x",)), 1_000 * _UNIT,
                "tiles of whole rows are contiguous over rows: one DMA command per channel",
            ),
        ),
    )  # fmt: skip


def _conv_problem(
    core: DigitalCore, layer: Convolution, shared_fields: dict[str, Any]
) -> TilingProblem:
    fy, fx = pad_filter(layer.fy, core.filters), pad_filter(layer.fx, core.filters)
    if layer.depthwise:
        # The weight memory holds the channels of one trigger, and each trigger writes a whole block
        # of maps, of which only these are real.
        channels_at_once = core.channels_at_a_time(fy, fx)
        special: dict[str, Any] = {
            "c": Axis(1, tiled=False),
            "channels_follow_k": True,
            "rounding": Rounding(x=core.row_pitch, extra_maps=core.lanes - 1),
            "weights": TileWeights(
                fixed=core.lanes * channels_at_once * fy * fx + core.bias_bytes,
                limit=core.weight_memory,
                block_k=channels_at_once if channels_at_once > 1 else core.depthwise_block_channels,
            ),
        }
    else:
        special = {
            "c": Axis(layer.C, tiled=False),
            "rounding": Rounding(k=core.lanes, x=core.row_pitch),
            "weights": TileWeights(
                channel=core.lanes * fy * fx,
                block=core.bias_bytes,
                limit=core.weight_memory,
                block_k=core.lanes,
            ),
        }
    return TilingProblem(
        k=Axis(layer.K),
        y=Axis(layer.oy),
        x=Axis(layer.ox, step=core.group),
        # x tiles start at multiples of the group, so the misalignment is always the same.
        window=InputWindow(layer.iy, layer.ix, fy, fx, layer.stride, -layer.pad[1] % core.group),
        **special,
        **shared_fields,
    )


def _dense_problem(core: DigitalCore, layer: Dense, shared_fields: dict[str, Any]) -> TilingProblem:
    untiled = Axis(1, tiled=False)
    return TilingProblem(
        k=Axis(layer.K, step=core.lanes),
        c=Axis(layer.C, tiled=False),
        y=untiled,
        x=untiled,
        window=InputWindow(1, 1),
        rounding=Rounding(k=core.lanes, c=core.columns),
        # One trigger per 16 outputs: the weight memory holds one block.
        weights=TileWeights(fixed=core.dense_weight_bytes(layer.C), limit=core.weight_memory),
        **shared_fields,
    )


def _add_problem(core: DigitalCore, layer: Add, shared_fields: dict[str, Any]) -> TilingProblem:
    k, x = (1, layer.K) if layer.of_vectors else (layer.K, layer.ox)
    return TilingProblem(
        k=Axis(k),
        c=Axis(1, tiled=False),
        y=Axis(layer.oy),
        x=Axis(x, tiled=False),
        window=InputWindow(layer.iy, x),
        channels_follow_k=True,
        copies=2,
        rounding=Rounding(x=round_up(core.row_pitch, core.columns)),
        weights=TileWeights(limit=core.weight_memory),
        **shared_fields,
    )


@dataclass(frozen=True)
class DigitalAccelerator(DigitalCore):
    """The digital core: its numbers, rules, tiles, cycles and C."""

    rules = DIGITAL_RULES

    @property
    def objectives(self) -> Mapping[str, Objective]:
        """The objectives by name."""
        return {entry.name: entry for entry in (_array(self), PAPER, PAPER_PE, MEMORY)}

    def tiling_problem(self, soc: Soc, layer: Layer, options: TilingOptions) -> TilingProblem:
        """Return a tile's use of L1 and of the weight memory, with the limits.

        C is never tiled; x is whole or a multiple of 4, because the DMA moves whole reversed
        groups.
        """
        core = self.with_options(options)
        shared_fields: dict[str, Any] = {
            "name": layer.name,
            "l1_limit": self.budget(soc, options),
            "unit": self.l1,
        }
        match layer:
            case Dense():
                return _dense_problem(core, layer, shared_fields)
            case Add():
                return _add_problem(core, layer, shared_fields)
            case Convolution():
                return _conv_problem(core, layer, shared_fields)
            case _:
                raise UnsupportedError(f"no tiles of {layer.op}", where=f"layer '{layer.name}'")

    def tile_program(
        self, soc: Soc, layer: Layer, plan: LayerPlan, options: TilingOptions
    ) -> TileProgram:
        """Return the tile-by-tile execution of a layer under a plan."""
        core = self.with_options(options)
        return digital_program(core, digital_loop(core, layer, plan, options))

    def costs(self, soc: Soc, layer: Layer, program: TileProgram, options: TilingOptions) -> Costs:
        """Return the cycles of transfers and triggers, including their driver code."""
        return costs_of(soc, self, options.schedule == "published")

    def counts(self, soc: Soc, layer: Layer, options: TilingOptions) -> Hashable:
        """Return a layer's sizes, and the options that tile programs depend on."""
        maps = tuple(each.stored.shape for each in (*layer.inputs, layer.output))
        return sizes_of(layer), maps, options.schedule, options.loop_order

    def computes_beside_host(self, layer: Layer) -> bool:
        """Whether a layer is a convolution, which is started once its registers are written."""
        return isinstance(layer, Convolution)

    def started_cycles(self, soc: Soc, layer: Layer, options: TilingOptions) -> int:
        """Return the cycles of the core until the host starts its next trigger, or until its end.

        Those of the first trigger's registers are not among them.
        """
        problem = self.tiling_problem(soc, layer, options)
        plan = plan_alone(layer, solution_of(problem, problem.whole), self.name, problem)
        program = self.tile_program(soc, layer, plan, options)
        costs = self.costs(soc, layer, program, options)
        (tile,) = program.order()
        work = costs.compute(program.call(tile))
        until = work.cycles if work.first is None else work.first
        return until - self.conv_driver_cycles

    def layout(self, soc: Soc) -> PaddedLayout:
        """Return the layout of tensors, the same for both cores."""
        return PaddedLayout(self)

    def emitter(self, soc: Soc) -> DianaEmitter:
        """Return the emitter that generates C from plans."""
        return DianaEmitter(self, soc)
