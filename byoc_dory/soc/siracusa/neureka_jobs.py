"""The jobs of one tile on N-EUREKA: their shape, and their registers.

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
from byoc_dory.soc.siracusa.neureka_cycles import NeurekaJob, job_cycles
from byoc_dory.soc.siracusa.neureka_tiles import mode_of, packed_weights, the_factors
from byoc_dory.soc.siracusa.neureka_view import view_of


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
    """Return one or two jobs that compute so many pixels in the fewest blocks of 1x1."""
    whole = _rectangle(pixels, block)
    best: tuple[Grid, ...] = (whole,)
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
            best, least = (first, _after(second, rows * columns)), blocks
    return best


def _after(job: Grid, first: int) -> Grid:
    return Grid(job.rows, job.columns, first, own_rows=False)


def _rectangle(pixels: int, block: int) -> Grid:
    """Return the rectangle of exactly so many pixels with the fewest blocks, then fewest rows."""
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
