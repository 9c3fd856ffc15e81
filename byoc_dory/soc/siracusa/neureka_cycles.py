"""Cycles of a job of N-EUREKA, for planning; the device model counts the same.

Memories never wait in this model: conflicts of the engine with cores in the banks of L1 are not
counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from byoc_dory.soc.siracusa.neureka_core import Mode, Neureka


@dataclass(frozen=True)
class NeurekaJob:
    """The properties of a job that its cycles depend on.

    Attributes:
        mode: what it computes.
        rows, columns: of the output.
        inputs, outputs: channels; a depthwise job has as many of both.
        weight_bits: bits of a weight.
        padding_bottom, padding_right: rows and columns of padding, which are not loaded.
        scale_bytes: bytes of a scale, 1 or 4; 0 if sums are stored as int32 without scaling.
        bias: whether scaled sums have a bias.
        channel_shift: whether each channel has a shift of its own.
        stream_in: whether sums begin with those that the output holds.
        prefetch: whether patches are loaded while the ones before are computed.
    """

    mode: Mode
    rows: int
    columns: int
    inputs: int
    outputs: int
    weight_bits: int = 8
    padding_bottom: int = 0
    padding_right: int = 0
    scale_bytes: int = 1
    bias: bool = True
    channel_shift: bool = False
    stream_in: bool = False
    prefetch: bool = False


@dataclass(frozen=True)
class _Block:
    """Blocks of one size: how many there are, their outputs, and the pixels that are loaded."""

    count: int
    rows: int
    columns: int
    pixels: int


def job_cycles(job: NeurekaJob, core: Neureka) -> int:
    """Return the cycles of a job from its start to the last store."""
    blocks = tuple(_blocks(job, core))
    count = -(-job.outputs // core.output_channels[job.mode])
    last = job.outputs - (count - 1) * core.output_channels[job.mode]
    total = core.job_cycles + _ko_tile_cycles(job, core, blocks, last, last)
    if count > 1:
        channels = core.output_channels[job.mode]
        whole = _ko_tile_cycles(job, core, blocks, channels, core.scale_channels)
        total += (count - 1) * whole
    return total


def _blocks(job: NeurekaJob, core: Neureka) -> Iterator[_Block]:
    """Yield the sizes of blocks, that of the first block first."""
    for row_count, rows, loaded_rows in _sides(job, job.rows, job.padding_bottom, core):
        for count, columns, loaded in _sides(job, job.columns, job.padding_right, core):
            # A 1x1 job takes the time of a whole patch whatever the block's size.
            whole = job.mode == Mode.CONV1X1
            pixels = core.block**2 if whole else loaded_rows * loaded
            yield _Block(row_count * count, rows, columns, pixels)


def _sides(
    job: NeurekaJob, size: int, padding: int, core: Neureka
) -> Iterator[tuple[int, int, int]]:
    """Yield (blocks, outputs, inputs loaded) along one axis: the whole blocks, then the last."""
    halo = core.window(job.mode) - 1
    count = -(-size // core.block)
    if count > 1:
        yield count - 1, core.block, core.block + halo
    last = size - (count - 1) * core.block
    yield 1, last, last + halo - padding


def _ko_tile_cycles(
    job: NeurekaJob, core: Neureka, blocks: tuple[_Block, ...], channels: int, scales: int
) -> int:
    """Return the cycles of all blocks of a Ko tile, with ``scales`` channels' scales read."""
    mode = job.mode
    ki_tiles = 1 if mode == Mode.DEPTHWISE3X3 else -(-job.inputs // core.input_channels[mode])
    compute = channels * (1 if mode == Mode.CONV1X1 else job.weight_bits)
    busy = compute + core.leave_cycles[mode]
    prepare = (core.prefetch_prepare_cycles if job.prefetch else core.prepare_cycles)[mode]
    total = 0
    for block in blocks:
        tile = core.load_cycles[mode] + block.pixels + prepare
        tile += _exposed(job, core, block, prepare + busy) if job.prefetch else busy
        each = ki_tiles * tile + _output_cycles(job, core, block, channels, scales)
        total += block.count * each
    if job.prefetch:
        # Nothing is computed while the first patch is loaded; nothing hides the last computation.
        total += busy + core.prefetch_last_cycles[mode]
        total -= _exposed(job, core, blocks[0], prepare + busy)
    return total


def _exposed(job: NeurekaJob, core: Neureka, block: _Block, busy: int) -> int:
    """Return the cycles of the computation before that loading this block's patch does not hide."""
    return max(0, busy - core.prefetch_window_cycles[job.mode] - block.pixels)


def _output_cycles(
    job: NeurekaJob, core: Neureka, block: _Block, channels: int, scales: int
) -> int:
    """Return the cycles of reading partial sums, scaling and storing a block."""
    words = (block.rows - 1) * core.block + block.columns
    if not job.scale_bytes:
        words *= -(-channels * 4 // core.word_bytes)
    total = core.block_slack_cycles + words + core.store_cycles[job.mode]
    if job.stream_in:
        total += words + core.stream_in_cycles
    if job.scale_bytes:
        total += -(-scales * job.scale_bytes // core.scale_word_bytes) + core.scale_cycles
        total += core.shift_cycles if job.channel_shift else 0
        total += core.bias_cycles if job.bias else core.no_bias_cycles
    return total
