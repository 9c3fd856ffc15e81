"""The accelerator as placement, planning and code generation see it, and its rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from byoc_dory.emit import RegionEmitter
from byoc_dory.errors import TilingError
from byoc_dory.layers import Add, Convolution, Dense, Layer
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.soc.base import Rules, Soc
from byoc_dory.soc.dla.design import DEPTHWISE, DlaCore
from byoc_dory.soc.dla.emit import DlaEmitter
from byoc_dory.soc.dla.program import costs, predicted, tile_program, tiling_problem
from byoc_dory.soc.dla.region_file import single_layer_region
from byoc_dory.soc.dla.regions import DlaRegions
from byoc_dory.soc.dla.tiles import tiles
from byoc_dory.soc.regions import RegionRunner
from byoc_dory.soc.rules import (
    ACCEPTED,
    data_are_int8,
    dilation_is_one,
    requantization_is_one_shift,
)
from byoc_dory.tileloop.cycles import Costs, Prices
from byoc_dory.tileloop.program import TileProgram
from byoc_dory.tiling import Objective, TilingProblem
from byoc_dory.verdict import Refused, Verdict

_LARGEST = 0x7FFF


def operator_has_an_instruction(soc: Soc, core: DlaCore, layer: Layer) -> Verdict:
    """The operator is a convolution over all or single channels, dense, or a sum of two."""
    if isinstance(layer, Convolution):
        if layer.full or layer.depthwise:
            return ACCEPTED
        return Refused(f"there are {layer.groups} groups of {layer.C // layer.groups} channels")
    if isinstance(layer, Add):
        shapes = {tensor.shape for tensor in (*layer.inputs, layer.output)}
        if len(layer.inputs) != 2:
            return Refused(f"the sum has {len(layer.inputs)} operands")
        return ACCEPTED if len(shapes) == 1 else Refused("the operands have different shapes")
    return ACCEPTED if isinstance(layer, Dense) else Refused(f"the operator is {layer.op}")


def depthwise_is_supported(soc: Soc, core: DlaCore, layer: Layer) -> Verdict:
    """A depthwise convolution needs a design that computes them (depthwise=native or emulated)."""
    if layer.op == "depthwise" and DEPTHWISE[core.depthwise] == "cpu":
        return Refused("the design leaves depthwise convolutions to the CPU")
    return ACCEPTED


def window_fits_registers(soc: Soc, core: DlaCore, layer: Layer) -> Verdict:
    """Kernel, stride and padding are at most 32767."""
    largest = max(layer.fy, layer.fx, *layer.stride, *layer.pad)
    if largest > _LARGEST:
        return Refused(f"kernel, stride or padding is {largest}")
    return ACCEPTED


def smallest_tile_fits_sram(soc: Soc, core: DlaCore, layer: Layer) -> Verdict:
    """The smallest tile fits SRAM: the operands with one output channel (or one row of it)."""
    region = single_layer_region(layer)
    try:
        tiles(region, region.layers[0], core.design(soc.memory(core.l1).size))
    except TilingError as error:
        return Refused(f"{error.what}: {error.hint}")
    return ACCEPTED


RULES: Rules = (
    ("DLA-1", operator_has_an_instruction),
    ("DLA-2", depthwise_is_supported),
    ("DLA-3", window_fits_registers),
    ("DLA-4", dilation_is_one),
    ("DLA-5", data_are_int8),
    ("DLA-6", requantization_is_one_shift),
    ("DLA-7", smallest_tile_fits_sram),
)


@dataclass(frozen=True)
class Dla(DlaCore):
    """The accelerator: its numbers, rules, tiles, cycles and C."""

    rules = RULES

    @property
    def objectives(self) -> Mapping[str, Objective]:
        """The largest tile, as published, is that of the assembler."""
        return {"none": Objective("none"), "array": Objective("array")}

    def tiling_problem(self, soc: Soc, layer: Layer, options: TilingOptions) -> TilingProblem:
        """Return what a tile needs of SRAM."""
        return tiling_problem(self, layer, self.budget(soc, options))

    def tile_program(
        self, soc: Soc, layer: Layer, plan: LayerPlan, options: TilingOptions
    ) -> TileProgram:
        """Return the tiles of a layer: bands of rows outside, output channels inside."""
        return tile_program(self, layer, plan)

    def costs(self, soc: Soc, layer: Layer, program: TileProgram, options: TilingOptions) -> Costs:
        """Return the cycles of instructions and transfers."""
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
        return predicted(self, layer, plan, self.design_for(soc, options))

    @property
    def region_runner(self) -> Callable[[Path], RegionRunner]:
        """What assembles regions late and executes them in the simulator."""
        return DlaRegions

    def emitter(self, soc: Soc) -> RegionEmitter:
        """Return what assembles regions and writes their C."""
        return DlaEmitter(self, soc)
