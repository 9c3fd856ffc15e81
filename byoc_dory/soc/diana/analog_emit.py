"""C for DIANA's analog core: one function per layer."""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.emit.symbols import part_name
from byoc_dory.emit.text import Expr
from byoc_dory.layers import Layer
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.region import Constant, Kernel
from byoc_dory.soc.base import Soc
from byoc_dory.soc.diana.analog_core import AnalogCore
from byoc_dory.soc.diana.analog_packing import pack_weights, tile_bytes
from byoc_dory.soc.diana.analog_program import analog_loop, analog_program, unroll_of
from byoc_dory.soc.diana.cost import costs_of
from byoc_dory.soc.diana.layer_text import MapWriter, map_kernel
from byoc_dory.soc.diana.program import MapLoop
from byoc_dory.tileloop.cycles import predicted_cycles
from byoc_dory.tileloop.program import TileProgram


@dataclass(frozen=True)
class AnalogEmitter:
    """The emitter of the analog core (see `byoc_dory.emit.Emitter`)."""

    core: AnalogCore
    soc: Soc
    headers: tuple[str, ...] = ("diana_driver.h", "diana_analog_driver.h")

    def layer(self, layer: Layer, plan: LayerPlan, options: TilingOptions, symbol: str) -> Kernel:
        """Return the function that runs ``layer`` tile by tile.

        Its arguments are the tensors in L2; tensors that stay in L1 are not arguments.
        """
        core = self.core.under(options)
        loop = analog_loop(core, layer, plan, options)
        program = analog_program(core, loop)
        unroll = unroll_of(core, layer, loop.tile.k)
        packed = pack_weights(core, layer, loop.tile.k, unroll)
        weights = Constant(
            part_name(symbol, "weights"), packed, f"array images and factors of {layer.name}"
        )
        cycles = predicted_cycles(program, costs_of(self.soc, core, loop.published))
        writer = MapWriter(program)
        descriptor = _descriptor(core, loop, program, writer)
        weight_bytes = tile_bytes(core, layer, loop.tile.k, unroll)
        return map_kernel(
            loop, program, writer, descriptor, weights, weight_bytes, cycles, core.name, symbol
        )


def _descriptor(
    core: AnalogCore, loop: MapLoop, program: TileProgram, writer: MapWriter
) -> dict[str, Expr]:
    """Return the fields of the driver's descriptor of a tile, in order; weights are an argument."""
    layer, found = loop.layer, writer.fields(program.compute.fields)
    unroll, c_pass = found["unroll"], found["c_pass"]
    several = c_pass != layer.C
    values = {name: found[name] for name in _FIELDS}
    if loop.dense:
        # A vector is a map with one position.
        values |= {"iy": 1, "ix": 1}
    values |= {
        "clip": _clip(layer.clip),
        "in": found["l1_in"],
        "out": found["l1_out"],
        "mode": f"{unroll} | DIANA_ANALOG_VECTOR" if loop.dense else unroll,
    }
    if program.compute.several:
        values["c_pass"] = c_pass
    if several:
        assert isinstance(unroll, int) and isinstance(c_pass, int)
        rows = c_pass * layer.fy * (layer.fx + unroll - 1)
        sizes = tuple(core.image_bytes(rows, unroll * span.out_size) for span in loop.k.spans)
        values |= {"partial": found["l1_sums"], "pass_bytes": writer.entry(loop.k.pick(sizes))}
    return values


_FIELDS = (
    "k", "c", "iy", "ix", "oy", "ox", "fy", "fx", "stride", "pad_top", "pad_left", "gain", "shift",
)  # fmt: skip


def _clip(clip: tuple[int, int]) -> Expr:
    low, high = clip
    flags = ["DIANA_ANALOG_CLIP_RELU"] if low == 0 else []
    if high < 127:
        flags.append("DIANA_ANALOG_CLIP_SHORT")
    return " | ".join(flags) or 0
