"""The accelerator's numbers, and what can be said of its layers without Vela."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from byoc_dory.layers import Convolution, Layer
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.soc.base import Accelerator, Soc
from byoc_dory.soc.ethos_u.vela import Memories, Settings
from byoc_dory.soc.schemes import NumberScheme, SourceScheme
from byoc_dory.tileloop.axes import plain_axis
from byoc_dory.tileloop.cycles import ComputeCost, Costs, Moved, Overheads, Prices
from byoc_dory.tileloop.pipeline import HOST_IN_TURN, Block
from byoc_dory.tileloop.program import Compute, TileProgram, input_of, result_of
from byoc_dory.tileloop.values import Place
from byoc_dory.tiling import Objective, TilingProblem
from byoc_dory.tiling.problem import Axis, InputWindow, TileWeights

_OBSTACLES = {
    "piecewise_rescale": "input and output differ in type, or there is a batch",
    "piecewise_rescale of absolute numbers": "absolute numbers are no products",
    "piecewise_rescale with slopes": "Vela takes the zero point of the slopes off twice",
    "piecewise_rescale with two factors": "Vela rounds a factor below zero to float32, TFLite "
    "does not",
    "tflite_binary with a constant": "an operand is constant, for which layers have no place",
    "wide_sigmoid": "no public text defines its tanh and sigmoid of int16: all 65,536 results are "
    "TFLite's only if they are",
    "wide_softmax": "2 of 512 points of Vela's table of reciprocals are not TFLite's",
}
"""Of operators without a layer, by kind."""


@dataclass(frozen=True)
class EthosUCore(Accelerator):
    """An Ethos-U55 or U65: Vela chooses blocks, tiles and the order of layers, not our tiler.

    Attributes:
        architecture: Vela's name of the architecture.
        macs: multiply-accumulates per cycle of 8-bit operands.
        shram: bytes of its own memory, which Vela manages.
        memories: what Vela's estimates assume.
        element_cycles: cycles per element of layers without products, in estimates of single
            layers; those of regions are Vela's.
    """

    architecture: str
    macs: int
    shram: int
    memories: Memories
    element_cycles: int

    @property
    def peak_macs(self) -> float | None:
        """Multiply-accumulates per cycle."""
        return float(self.macs)

    @property
    def scheme(self) -> NumberScheme:
        """The source's own numbers."""
        return SourceScheme()

    @property
    def objectives(self) -> Mapping[str, Objective]:
        """There is nothing to choose: Vela tiles."""
        return {"none": Objective("none")}

    @property
    def obstacles(self) -> Mapping[str, str]:
        """What was found of operators of int16, by running them through Vela and the model."""
        return _OBSTACLES

    def settings(self, soc: Soc, options: TilingOptions) -> Settings:
        """Return what Vela compiles for, within the bytes that may be used between layers."""
        return Settings(self.architecture, self.macs, self.memories, self.budget(soc, options))

    def tiling_problem(self, soc: Soc, layer: Layer, options: TilingOptions) -> TilingProblem:
        """Return the problem of a layer as one tile, without limit: regions are checked."""
        return TilingProblem(
            name=layer.name,
            k=Axis(layer.K, tiled=False),
            c=Axis(layer.C, tiled=False),
            y=Axis(layer.oy, tiled=False),
            x=Axis(layer.ox, tiled=False),
            window=InputWindow(layer.iy, layer.ix, layer.fy, layer.fx, layer.stride),
            l1_limit=1 << 40,
            weights=TileWeights(in_l1=True),
            unit="SRAM",
            may_find=False,
            may_stay=False,
        )

    def tile_program(
        self, soc: Soc, layer: Layer, plan: LayerPlan, options: TilingOptions
    ) -> TileProgram:
        """Return a layer as one tile, for estimates."""
        axis = plain_axis("k", "output channels", layer.K, layer.K)
        operands = tuple(
            input_of(plan, n, f"in{n}", 0, Block.run(t.elements), t.elements, t.elements)
            for n, t in enumerate(layer.inputs)
        )
        size = layer.output.elements
        result = result_of(plan, 0, Block.run(size), size, size)
        fields = {entry.name: Place(entry.name) for entry in (*operands, result)}
        compute = Compute(layer.op, fields)
        return TileProgram(layer.name, (axis,), operands, result, compute, in_turn=HOST_IN_TURN)

    def costs(self, soc: Soc, layer: Layer, program: TileProgram, options: TilingOptions) -> Costs:
        """Return the cycles of a layer by its size alone; nothing is moved."""
        cycles = self._cycles(layer)
        return Costs(lambda call: ComputeCost(cycles), lambda block: Moved(0), Overheads())

    def plan_cost(
        self,
        soc: Soc,
        layer: Layer,
        plan: LayerPlan,
        options: TilingOptions,
        known: Prices | None = None,
    ) -> int:
        """Return a layer's cycles by its size alone, to compare cores; regions' are Vela's."""
        return self._cycles(layer)

    def _cycles(self, layer: Layer) -> int:
        if not layer.macs:
            return layer.output.elements * layer.fy * layer.fx * self.element_cycles
        lanes = self.macs
        if isinstance(layer, Convolution) and layer.depthwise:
            lanes = max(1, self.macs // 8)  # micro-blocks have 8 channels, of which one is summed
        return -(-layer.macs // lanes)
