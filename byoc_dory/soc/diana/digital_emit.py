"""C for DIANA's digital core: one function per layer."""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.emit.symbols import part_name
from byoc_dory.emit.text import Expr
from byoc_dory.layers import Layer, Weighted
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.region import Constant, Kernel
from byoc_dory.soc.base import Soc
from byoc_dory.soc.diana.cost import costs_of
from byoc_dory.soc.diana.digital_core import DigitalCore
from byoc_dory.soc.diana.digital_packing import pack_weights
from byoc_dory.soc.diana.digital_program import digital_loop, digital_program, tile_weight_bytes
from byoc_dory.soc.diana.layer_text import MapWriter, map_kernel
from byoc_dory.soc.diana.program import MapLoop
from byoc_dory.tileloop.cycles import predicted_cycles
from byoc_dory.tileloop.program import TileProgram


@dataclass(frozen=True)
class DianaEmitter:
    """The emitter of the digital core (see `byoc_dory.emit.Emitter`)."""

    core: DigitalCore
    soc: Soc
    headers: tuple[str, ...] = ("diana_driver.h",)

    def layer(self, layer: Layer, plan: LayerPlan, options: TilingOptions, symbol: str) -> Kernel:
        """Return the function that runs ``layer`` tile by tile.

        Its arguments are the tensors in L2; tensors that stay in L1 are not arguments.
        """
        core = self.core.under(options)
        loop = digital_loop(core, layer, plan, options)
        program = digital_program(core, loop)
        cycles = predicted_cycles(program, costs_of(self.soc, core, loop.published))
        weights, weight_bytes = None, 0
        if isinstance(layer, Weighted):
            packed = pack_weights(core, layer, plan.solution.tile.k)
            weight_bytes = tile_weight_bytes(core, loop, loop.tile.k)
            weights = Constant(
                part_name(symbol, "weights"), packed, f"weights and biases of {layer.name}"
            )
        writer = MapWriter(program)
        descriptor = _descriptor(loop, program, writer)
        return map_kernel(
            loop, program, writer, descriptor, weights, weight_bytes, cycles, core.name, symbol
        )


def _descriptor(loop: MapLoop, program: TileProgram, writer: MapWriter) -> dict[str, Expr]:
    """Return the fields of the driver's descriptor of a tile, in order; weights are an argument."""
    found = writer.fields(program.compute.fields)
    found.pop("weight_offset", None)
    places = {name: found.pop(name) for name in list(found) if name.startswith("l1_")}
    return {
        **found,
        "relu": int(loop.layer.relu),
        **{name.removeprefix("l1_"): place for name, place in places.items()},
    }
