"""The jobs of one tile on N-EUREKA: their shape, registers and cycles.

The device model counts the same cycles.

Memories never wait in this model: conflicts of the engine with cores in the banks of L1 are not
counted.

A tile of 3x3 is one job.  The pixels of 1x1 with stride 1 may be taken in rows of any length; since
the engine computes blocks of 6x6, whatever the map's own rows, they are taken as one or two jobs
with the fewest blocks (`grid`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from byoc_dory.layers import Weighted
from byoc_dory.soc.siracusa.neureka_core import Mode, Neureka
from byoc_dory.soc.siracusa.neureka_layer import view_of
from byoc_dory.soc.siracusa.neureka_tiles import mode_of, packed_weights, the_factors


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
    blocks = tuple(_blocks_of(job, core))
    count = -(-job.outputs // core.output_channels[job.mode])
    last = job.outputs - (count - 1) * core.output_channels[job.mode]
    total = core.job_cycles + _ko_tile_cycles(job, core, blocks, last, last)
    if count > 1:
        channels = core.output_channels[job.mode]
        whole = _ko_tile_cycles(job, core, blocks, channels, core.scale_channels)
        total += (count - 1) * whole
    return total


def _blocks_of(job: NeurekaJob, core: Neureka) -> Iterator[_Block]:
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


@dataclass(frozen=True)
class Grid:
    """Pixels of a tile that one job computes.

    Attributes:
        rows, columns: of the job's output; rows that are dropped included.
        first: number of the tile's pixels before these; 0 where rows are those of the map.
        own_rows: whether its rows are those of the map.
    """

    rows: int
    columns: int
    first: int = 0
    own_rows: bool = True


@dataclass(frozen=True)
class TileShape:
    """The sizes of a tile that its jobs depend on.

    Attributes:
        rows: of the result.
        inputs: rows that they read.
        top: rows of padding above these.
        outputs: output channels.
    """

    rows: int
    inputs: int
    top: int
    outputs: int


def jobs_of(core: Neureka, layer: Weighted, shape: TileShape) -> tuple[Grid, ...]:
    """Return the jobs of a tile, in the order in which they are started."""
    view = view_of(layer)
    if view.windows or (mode_of(layer) == Mode.CONV1X1 and layer.stride == (1, 1)):
        return grid(shape.rows * layer.ox, core.block)
    return (Grid(view.row_step * (shape.rows - 1) + 1, view.columns),)


@lru_cache(maxsize=4096)
def grid(pixels: int, block: int) -> tuple[Grid, ...]:
    """Return one or two jobs that compute this many pixels in the fewest blocks of 1x1."""
    whole = _rectangle(pixels, block)
    best_grids: tuple[Grid, ...] = (whole,)
    least = _blocks(whole, block)
    # A second job costs the host more than a block costs the engine only for the smallest layers.
    for rows in range(1, min(2 * block, pixels - 1) + 1):
        columns = pixels // rows
        rest = pixels - rows * columns
        if rest == 0:
            continue
        first = Grid(rows, columns, 0, own_rows=False)
        second = _rectangle(rest, block)
        blocks = _blocks(first, block) + _blocks(second, block)
        if blocks < least:
            best_grids, least = (first, _grid_after(second, rows * columns)), blocks
    return best_grids


def _grid_after(job: Grid, first: int) -> Grid:
    return Grid(job.rows, job.columns, first, own_rows=False)


def _rectangle(pixels: int, block: int) -> Grid:
    """Return the rectangle of exactly this many pixels with the fewest blocks, then fewest rows."""
    found = (Grid(rows, pixels // rows, 0, own_rows=False) for rows in _divisors(pixels))
    return min(found, key=lambda job: (_blocks(job, block), job.rows))


def _divisors(number: int) -> Iterator[int]:
    for low in range(1, int(number**0.5) + 1):
        if number % low == 0:
            yield low
            yield number // low


def _blocks(job: Grid, block: int) -> int:
    return -(-job.rows // block) * -(-job.columns // block)


def planned(
    core: Neureka, layer: Weighted, job: Grid, shape: TileShape, *, prefetch: bool
) -> NeurekaJob:
    """Return a job as the cycle model takes it."""
    factors, mode, view = the_factors(layer), mode_of(layer), view_of(layer)
    halo = core.window(mode) - 1
    bottom = max(0, job.rows + halo - shape.top - shape.inputs) if halo else 0
    return NeurekaJob(
        mode=mode,
        rows=job.rows,
        columns=job.columns,
        inputs=view.channels,
        outputs=shape.outputs,
        weight_bits=packed_weights(core, layer).bits,
        padding_bottom=bottom,
        padding_right=view.right,
        scale_bytes=factors.scale_bytes,
        bias=factors.biased,
        channel_shift=factors.shift_per_channel,
        prefetch=prefetch,
    )


@lru_cache(maxsize=65536)
def fastest(core: Neureka, layer: Weighted, job: Grid, shape: TileShape) -> tuple[int, bool]:
    """Return the cycles of a job, and whether prefetch makes it faster."""
    plain, ahead = (
        job_cycles(planned(core, layer, job, shape, prefetch=prefetch), core)
        for prefetch in (False, True)
    )
    return (ahead, True) if ahead < plain else (plain, False)


def tile_cycles(core: Neureka, layer: Weighted, shape: TileShape) -> int:
    """Return the cycles of a tile's jobs."""
    return sum(fastest(core, layer, job, shape)[0] for job in jobs_of(core, layer, shape))
