"""The registers of a job, as C: constants, with addresses relative to the tile's places."""

from __future__ import annotations

import textwrap

from byoc_dory.emit.text import Expr
from byoc_dory.layers import Weighted
from byoc_dory.soc.siracusa.neureka_core import Mode, Neureka
from byoc_dory.soc.siracusa.neureka_jobs import Grid, TileShape, fastest, planned
from byoc_dory.soc.siracusa.neureka_packing import packed_bytes
from byoc_dory.soc.siracusa.neureka_tiles import FactorBlock, packed_weights, the_factors

__all__ = ["registers_of"]

_MODES = {Mode.CONV3X3: "3X3", Mode.DEPTHWISE3X3: "DEPTHWISE", Mode.CONV1X1: "1X1"}


def registers_of(
    layer: Weighted, job: Grid, shape: TileShape, block: FactorBlock, pitch: int, core: Neureka
) -> dict[str, Expr]:
    """Return the values of a job's registers, by name without prefix, in the registers' order.

    Args:
        layer: the layer.
        job: the job.
        shape: the tile that it is part of.
        block: offsets in the tile's constants.
        pitch: bytes from pixel to pixel of the result.
        core: the engine's numbers.
    """
    _, prefetch = fastest(layer, job, shape, core)
    plan = planned(layer, job, shape, core, prefetch=prefetch)
    mode, halo = plan.mode, core.window(plan.mode) - 1
    pixel, row = layer.C * layer.stride[1], layer.C * layer.ix * layer.stride[0]
    out_row = pitch * layer.ox
    if not job.own_rows:
        row, out_row = pixel * job.columns, pitch * job.columns
    left = layer.pad[1] if halo else 0
    ko, ki = core.output_channels[mode], core.input_channels[mode]
    last_rows, last_columns = _last(job.rows, core.block), _last(job.columns, core.block)
    before = shape.top * row + left * pixel
    channel = packed_bytes(mode, 1, layer.C, plan.weight_bits, core)
    window = core.weight_window if core.weight_memory else 0
    return {
        "WEIGHTS": _difference(0, window),
        "INPUT": _difference(job.first * pixel, before),
        "OUTPUT": job.first * pitch,
        "SCALES": block.scales,
        "SHIFTS": max(block.shifts, 0),
        "BIASES": max(block.biases, 0),
        "INPUT_PIXEL": pixel,
        "INPUT_ROW": row,
        "INPUT_NONE": 0,
        "OUTPUT_WORD": core.word_bytes,
        "OUTPUT_PIXEL": pitch,
        "OUTPUT_ROW": out_row,
        "WEIGHT_WORD": core.word_bytes,
        "WEIGHT_CHANNEL": 0 if mode == Mode.DEPTHWISE3X3 else channel,
        "WEIGHT_NONE": 0,
        "LAST_CHANNELS": _pair(_last(shape.outputs, ko), _last(layer.C, ki)),
        "LAST_OUTPUTS": _pair(last_rows, last_columns),
        "LAST_INPUTS": _pair(
            last_rows + halo - plan.padding_bottom, last_columns + halo - plan.padding_right
        ),
        "TILES": _pair(-(-shape.outputs // ko), -(-layer.C // ki)),
        "BLOCKS": _pair(-(-job.rows // core.block), -(-job.columns // core.block)),
        "PADDING": _padding(shape.top, plan.padding_right, plan.padding_bottom, left),
        "OFFSET": _difference(packed_weights(layer, core).offset, 0),
        "MASK": 0,
        "CONF0": _conf0(layer, plan.weight_bits, mode, core, prefetch=prefetch),
    }


def _conf0(layer: Weighted, bits: int, mode: Mode, core: Neureka, *, prefetch: bool) -> str:
    factors = the_factors(layer)
    flags = {
        f"WEIGHT_BITS({bits}u)": True,
        "SCALED": True,
        f"MODE(SIRACUSA_NEUREKA_MODE_{_MODES[mode]})": True,
        "WEIGHT_MEMORY": bool(core.weight_memory),
        "PREFETCH": prefetch,
        "SCALE_32": factors.scale_bytes == 4,
        "WEIGHT_OFFSET": True,
        f"SHIFT({int(factors.shift[0])}u)": not factors.shift_per_channel,
        "SIGNED_OUTPUT": factors.signed,
        "CHANNEL_SHIFT": factors.shift_per_channel,
        "BIAS": factors.biased,
        "SIGNED_INPUT": layer.inputs[0].dtype == "int8",
    }
    names = [f"SIRACUSA_NEUREKA_{name}" for name, there in flags.items() if there]
    # As long as a line of the table may be.
    return textwrap.fill(" | ".join(names), 86, subsequent_indent=" " * 12)


def _padding(top: int, right: int, bottom: int, left: int) -> Expr:
    """Zeros around the input; as a number in hexadecimal, a digit per side."""
    value = top << 28 | right << 24 | bottom << 20 | left << 16
    return f"0x{value:08X}u" if value else 0


def _difference(value: int, less: int) -> Expr:
    """Return ``value - less`` modulo 2^32."""
    number = value - less
    return number if number >= 0 else f"0u - {-number}u"


def _last(size: int, step: int) -> int:
    """Return the size of the last part of ``step``."""
    return (size - 1) % step + 1


def _pair(high: int, low: int) -> Expr:
    return f"{high}u << 16 | {low}u"
