"""The tile program of a layer on each of DIANA's cores."""

from __future__ import annotations

from dataclasses import replace

from byoc_dory.definition import slot
from byoc_dory.layers import Add, AnalogRequant, Convolution, Dense, Layer, Shift
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.soc.diana.cores import AnalogCore, DigitalCore
from byoc_dory.soc.diana.packing import pad_filter, stored_bytes, tile_bytes
from byoc_dory.soc.diana.program import (
    AddTrigger,
    AnalogTrigger,
    ConvTrigger,
    DenseTrigger,
    MapLoop,
)
from byoc_dory.tileloop.program import Compute, TileProgram
from byoc_dory.tileloop.values import Own, Place, Value, named


def digital_loop(
    core: DigitalCore, layer: Layer, plan: LayerPlan, options: TilingOptions
) -> MapLoop:
    """Return the loop of a layer under a plan.

    The layer must satisfy the core's rules; the tile must come from its tiling problem.  The
    published schedule always has the loop order kyx and one dense trigger per tile.

    Raises:
        ValueError: the schedule or the tile does not allow what the plan contains.
    """
    tile = plan.solution.tile
    if options.schedule == "published" and isinstance(layer, Dense):
        tile = replace(tile, k=min(tile.k, core.dense_max_k))
    fy, fx = pad_filter(layer.fy, core.filters), pad_filter(layer.fx, core.filters)
    return MapLoop(layer, plan, options, tile, fy, fx, core.row_pitch, core.group)


def digital_program(core: DigitalCore, loop: MapLoop) -> TileProgram:
    """Return the tile program of a loop.

    Raises:
        TypeError: the layer is not requantized by a single shift.
    """
    layer = loop.layer
    if not isinstance(layer.requant, Shift):
        raise TypeError(f"layer '{layer.name}': the digital core requantizes by one shift only")
    return loop.program(_digital_call(core, loop, Own("shift", layer.requant.shift)))


def _digital_call(core: DigitalCore, loop: MapLoop, shift: Own) -> Compute:
    layer, k, y, x = loop.layer, loop.k, loop.y, loop.x
    if isinstance(layer, Add):
        add: dict[str, Value] = {
            "elements": k.out_size * y.out_size * loop.source.pitch,
            "shift": shift,
            "l1_a": Place("in0"),
            "l1_b": Place("in1"),
            "l1_out": Place("out"),
        }
        return Compute(
            AddTrigger,
            add,
            struct="diana_add_t",
            function="diana_digital_add",
            given={"relu": layer.relu},
        )
    block = tile_weight_bytes(core, loop, loop.tile.k)
    weights = k.index * named("WEIGHT_BYTES", block)
    places = {"l1_in": Place("in"), "l1_out": Place("out"), "weight_offset": weights}
    sizes = {span.out_size for span in k.spans}
    bytes_of = {size: fetched_bytes(core, loop, size) for size in sizes}
    fetched = k.pick(tuple([bytes_of[span.out_size] for span in k.spans]))
    if loop.dense:
        dense: dict[str, Value] = {"k": k.out_size, "c": layer.C, "shift": shift, **places}
        return Compute(
            DenseTrigger,
            dense,
            fetched,
            several=True,
            struct="diana_dense_t",
            function="diana_digital_dense",
            given={"relu": layer.relu},
        )
    depthwise = _depthwise(layer)
    channels_at_once = core.channels_at_a_time(loop.fy, loop.fx) if depthwise else 1
    conv: dict[str, Value] = {
        "k": k.out_size,
        "c": channels_at_once if channels_at_once > 1 else loop.channels,
        "iy": y.in_size,
        "ix": x.in_size,
        "oy": y.out_size,
        "ox": x.out_size,
        "fy": loop.fy,
        "fx": loop.fx,
        "stride": layer.stride[0],
        "pad_top": y.pad,
        "pad_left": x.pad,
        "shift": shift,
        **places,
    }
    fixed_fields = {"relu": layer.relu, "depthwise": depthwise, "channels": channels_at_once}
    function = "diana_digital_depthwise" if depthwise else "diana_digital_conv2d"
    if channels_at_once > 1:
        function = "diana_digital_depthwise_blocks"
    return Compute(ConvTrigger, conv, fetched, depthwise, "diana_conv_t", function, fixed_fields)


def tile_weight_bytes(core: DigitalCore, loop: MapLoop, k: int) -> int:
    """Return the packed bytes of ``k`` channels' weights and biases."""
    if loop.dense:
        return -(-k // core.lanes) * core.dense_weight_bytes(loop.layer.C)
    if _depthwise(loop.layer):
        return core.depthwise_weight_bytes(k, loop.fy, loop.fx)
    return core.conv_weight_bytes(k, loop.layer.C, loop.fy, loop.fx)


def fetched_bytes(core: DigitalCore, loop: MapLoop, k: int) -> int:
    """The bytes that the triggers of ``k`` channels load: all, or a block per depthwise channel."""
    if _depthwise(loop.layer) and core.channels_at_a_time(loop.fy, loop.fx) == 1:
        return k * core.conv_weight_bytes(1, 1, loop.fy, loop.fx)
    return tile_weight_bytes(core, loop, k)


def _depthwise(layer: Layer) -> bool:
    return isinstance(layer, Convolution) and layer.depthwise


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
    return loop.program(_analog_call(core, loop, layer.requant))


def _analog_call(core: AnalogCore, loop: MapLoop, requant: AnalogRequant) -> Compute:
    layer, k, y, x = loop.layer, loop.k, loop.y, loop.x
    unroll = unroll_of(core, layer, loop.tile.k)
    pass_channels = min(layer.C, core.pass_channels(layer.fy, layer.fx))
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
        "c_pass": pass_channels,
        "unroll": unroll,
        "slice": core.dense_max_k,
        "l1_in": Place("in"),
        "l1_out": Place("out"),
        "l1_sums": base + (_sums(core, loop) if pass_channels < layer.C else 0),
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
        function = "diana_analog_passes" if pass_channels < layer.C else "diana_analog_conv2d"
    return Compute(
        AnalogTrigger,
        fields,
        k.pick(fetched),
        several=pass_channels < layer.C or max(slices) > 1,
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
