"""The registers of a job as numbers (``runtime_c/soc/siracusa/siracusa_neureka_regs.h``).

Addresses count from the tile's places: the first register from its weights, the next two from its
input and result, those of scales, shifts and biases from its constants.
"""

from __future__ import annotations

import numpy as np

from byoc_dory.layers import Array, Weighted
from byoc_dory.soc.siracusa.neureka_core import Mode, Neureka
from byoc_dory.soc.siracusa.neureka_jobs import Grid, TileShape, fastest, planned
from byoc_dory.soc.siracusa.neureka_packing import packed_bytes
from byoc_dory.soc.siracusa.neureka_tiles import FactorBlock, packed_weights, the_factors
from byoc_dory.soc.siracusa.neureka_view import view_of

# Bits of the register conf0.
_SCALED = 1 << 4
_MODE = 5
_WEIGHT_MEMORY = 1 << 9
_PREFETCH = 1 << 10
_SCALE_32 = 2 << 12
_WEIGHT_OFFSET = 1 << 15
_SHIFT = 16
_SIGNED_OUTPUT = 1 << 23
_CHANNEL_SHIFT = 1 << 24
_BIAS = 1 << 25
_SIGNED_INPUT = 1 << 26


def registers_of(
    core: Neureka, layer: Weighted, job: Grid, shape: TileShape, block: FactorBlock, pitch: int
) -> Array:
    """Return the values of a job's registers in their order, uint32.

    Args:
        core: the engine's numbers.
        layer: the layer.
        job: the job.
        shape: the tile that it is part of.
        block: offsets in the tile's constants.
        pitch: bytes from pixel to pixel of the result.
    """
    _, prefetch = fastest(core, layer, job, shape)
    plan = planned(core, layer, job, shape, prefetch=prefetch)
    mode, halo = plan.mode, core.window(plan.mode) - 1
    view = view_of(layer)
    pixel, row = view.pixel, view.row
    out_row = pitch * view.columns
    if not job.own_rows:
        row, out_row = pixel * job.columns, pitch * job.columns
    left = view.left
    ko, ki = core.output_channels[mode], core.input_channels[mode]
    last_rows, last_columns = _last(job.rows, core.block), _last(job.columns, core.block)
    bottom, right = plan.padding_bottom, plan.padding_right
    channel = packed_bytes(mode, 1, view.channels, plan.weight_bits, core)
    values = (
        # Weights, input, output; scales, shifts, biases.
        -core.weight_window if core.weight_memory else 0,
        job.first * pixel - shape.top * row - left * pixel,
        job.first * pitch,
        block.scales,
        max(block.shifts, 0),
        max(block.biases, 0),
        # Strides of input, output, weights.
        *(pixel, row, 0),
        *(core.word_bytes, pitch, out_row),
        *(core.word_bytes, 0 if mode == Mode.DEPTHWISE3X3 else channel, 0),
        # The last tile of channels, the last block's outputs and inputs; their numbers.
        _pair(_last(shape.outputs, ko), _last(view.channels, ki)),
        _pair(last_rows, last_columns),
        _pair(last_rows + halo - bottom, last_columns + halo - right),
        _pair(-(-shape.outputs // ko), -(-view.channels // ki)),
        _pair(-(-job.rows // core.block), -(-job.columns // core.block)),
        # Padding, offset of the weights, mask, configuration.
        shape.top << 28 | right << 24 | bottom << 20 | left << 16,
        packed_weights(core, layer).offset,
        0,
        _conf0(core, layer, plan.weight_bits, mode, prefetch=prefetch),
    )
    assert len(values) == core.job_registers, len(values)
    return np.array([value % 2**32 for value in values], "<u4")


def _conf0(core: Neureka, layer: Weighted, bits: int, mode: Mode, *, prefetch: bool) -> int:
    factors = the_factors(layer)
    shift = 0 if factors.shift_per_channel else int(factors.shift[0])
    value = bits - 1 | _SCALED | mode << _MODE | _WEIGHT_OFFSET | shift << _SHIFT
    flags = {
        _WEIGHT_MEMORY: bool(core.weight_memory),
        _PREFETCH: prefetch,
        _SCALE_32: factors.scale_bytes == 4,
        _SIGNED_OUTPUT: factors.signed,
        _CHANNEL_SHIFT: factors.shift_per_channel,
        _BIAS: factors.biased,
        _SIGNED_INPUT: layer.inputs[0].dtype == "int8",
    }
    return value | sum(flag for flag, there in flags.items() if there)


def _last(size: int, step: int) -> int:
    """Return the size of the last part of ``step``."""
    return (size - 1) % step + 1


def _pair(high: int, low: int) -> int:
    return high << 16 | low
