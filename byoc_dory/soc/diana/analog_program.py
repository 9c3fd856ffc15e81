"""The tile program of a layer on DIANA's analog core."""

from __future__ import annotations

from byoc_dory.definition import slot
from byoc_dory.layers import AnalogRequant, Dense, Layer
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.soc.diana.analog_core import AnalogCore
from byoc_dory.soc.diana.analog_packing import tile_bytes
from byoc_dory.soc.diana.layout import stored_bytes
from byoc_dory.soc.diana.program import MapLoop
from byoc_dory.soc.diana.triggers import AnalogTrigger
from byoc_dory.tileloop.program import Compute, TileProgram
from byoc_dory.tileloop.values import Own, Place, Value, named

SUM_BYTES = 2
"""Bytes of a sum between passes."""


def gain_shift(gain: int) -> int:
    """Return the right shift that divides by ``gain``, a power of two."""
    return gain.bit_length() - 1


def analog_loop(core: AnalogCore, layer: Layer, plan: LayerPlan, options: TilingOptions) -> MapLoop:
    """Return the loop of a layer under a plan.

    The layer must satisfy the core's rules; the tile must come from its tiling problem.  The
    published schedule always has the loop order kyx.

    Raises:
        ValueError: the schedule or the tile does not allow what the plan contains.
    """
    tile, pitch, group = plan.solution.tile, core.row_pitch, core.group
    return MapLoop(layer, plan, options, tile, layer.fy, layer.fx, pitch, group)


def analog_program(core: AnalogCore, loop: MapLoop) -> TileProgram:
    """Return the tile program of a loop.

    Raises:
        TypeError: the layer's requantization is not the core's.
    """
    layer = loop.layer
    if not isinstance(layer.requant, AnalogRequant):
        raise TypeError(f"layer '{layer.name}': the analog core has converters, not one shift")
    return loop.program(_compute(core, loop, layer.requant))


def _compute(core: AnalogCore, loop: MapLoop, requant: AnalogRequant) -> Compute:
    layer, k, y, x = loop.layer, loop.k, loop.y, loop.x
    unroll = unroll_of(core, layer, loop.tile.k)
    each = min(layer.C, core.pass_channels(layer.fy, layer.fx))
    slices = [-(-span.out_size // core.dense_max_k) if loop.dense else 1 for span in k.spans]
    base = named(slot("L1_OUT"), loop.plan.l1_output) if loop.plan.resident_output else Place("out")
    fields: dict[str, Value] = {
        "k": k.out_size,
        "c": layer.C,
        "iy": y.in_size,
        "ix": x.in_size,
        "oy": y.out_size,
        "ox": x.out_size,
        "fy": layer.fy,
        "fx": layer.fx,
        "stride": layer.stride[0],
        "pad_top": y.pad,
        "pad_left": x.pad,
        "gain": Own("gain", gain_shift(requant.gain)),
        "shift": Own("shift", requant.shift),
        "c_pass": each,
        "unroll": unroll,
        "slice": core.dense_max_k,
        "l1_in": Place("in"),
        "l1_out": Place("out"),
        "l1_sums": base + (_sums(core, loop) if each < layer.C else 0),
        "weight_offset": k.index
        * named("WEIGHT_BYTES", tile_bytes(core, layer, loop.tile.k, unroll)),
    }
    fetched = tuple(
        parts * tile_bytes(core, layer, span.out_size, unroll)
        for span, parts in zip(k.spans, slices, strict=True)
    )
    if max(slices) > 1:
        function = "diana_analog_dense"
    else:
        function = "diana_analog_passes" if each < layer.C else "diana_analog_conv2d"
    return Compute(
        AnalogTrigger,
        fields,
        k.pick(fetched),
        several=each < layer.C or max(slices) > 1,
        struct="diana_analog_conv_t",
        function=function,
        given={"clip": layer.clip, "vector": loop.dense},
    )


def unroll_of(core: AnalogCore, layer: Layer, tile_k: int) -> int:
    """Return the number of output columns computed at a time."""
    if isinstance(layer, Dense):
        return 1
    return core.unroll_of(tile_k, layer.C, layer.fy, layer.fx, layer.stride[0])


def _sums(core: AnalogCore, loop: MapLoop) -> int:
    """Return the byte offset of the sums from the result in L1.

    They are after the tile that they belong to, or after a whole result.
    """
    if loop.plan.resident_output:
        return stored_bytes(loop.layer.output.shape, core.row_pitch)
    return loop.plan.solution.l1_out // (1 + SUM_BYTES)
