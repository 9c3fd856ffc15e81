"""Tiles of one layer that has SRAM to itself: what they need, and their cycles.

The formulas for cycles are those of ``runtime_c/soc/dla/model/dla_cycles.c``.

A convolution takes one cycle for each position of its window in each output, times the groups of
input channels and the groups of output channels that the PEs work on at a time; everything else one
cycle per PE-wide group of elements (derived, fact sheet of the published accelerator, section 4).
Reading operands from SRAM and writing results hides behind that.

Integers only, like `memory`.
"""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.errors import TilingError
from byoc_dory.soc.dla.design import Design
from byoc_dory.soc.dla.region_file import LayerEntry, RegionFile
from byoc_dory.soc.parts import round_up


def groups(size: int, width: int) -> int:
    """Return how many groups of ``width`` make ``size``."""
    return (size + width - 1) // width


def conv_cycles(design: Design, positions: int, channels: int, outputs: int) -> int:
    """Return the cycles of OP_CONV: ``positions`` is rows * columns * height * width."""
    return positions * groups(channels, design.pes_in) * groups(outputs, design.pes_out)


def depth_cycles(design: Design, positions: int, channels: int) -> int:
    """Return the cycles of OP_DEPTH_CONV and OP_POOL, which have one channel per PE."""
    return positions * groups(channels, design.pes)


def element_cycles(design: Design, elements: int) -> int:
    """Return the cycles of an element-wise instruction."""
    return groups(elements, design.pes)


def dma_cycles(design: Design, rows: int, size: int, contiguous: bool) -> int:
    """Return the cycles of a transfer of ``rows`` rows of ``size`` bytes."""
    if contiguous:
        rows, size = 1, rows * size
    return design.dma_setup + rows * groups(size, design.dma_bytes)


_WORD = 4


@dataclass(frozen=True)
class Tiling:
    """Sizes of a layer's tiles: output channels and output rows."""

    k: int
    y: int


@dataclass(frozen=True)
class Need:
    """Bytes of SRAM of one tile: of each operand, the result or its sums, weights with biases."""

    source: int
    operands: int
    result: int
    weights: int

    @property
    def total(self) -> int:
        """All bytes."""
        return self.source * self.operands + self.result + self.weights


def rows_in(region: RegionFile, layer: LayerEntry, rows: int) -> int:
    """Return the input rows that a tile of ``rows`` output rows needs at most."""
    source = region.source(layer)
    if rows == region.result(layer).rows:
        return source.rows
    return min(layer.stride[0] * (rows - 1) + layer.kernel[0], source.rows)


def memory_need(region: RegionFile, layer: LayerEntry, design: Design, tile: Tiling) -> Need:
    """Return the SRAM that a tile takes if nothing stays there between layers."""
    source, result = region.source(layer), region.result(layer)
    pixels = tile.y * result.columns
    if layer.op == "add":
        size = round_up(pixels * tile.k, _WORD)
        return Need(size, 2, size, 0)
    channels = tile.k if layer.op == "depthwise" else source.channels
    return Need(
        source=round_up(rows_in(region, layer, tile.y) * source.columns * channels, _WORD),
        operands=1,
        result=round_up(pixels * tile.k * design.sum_bytes, _WORD),
        weights=_weights(region, layer, tile.k),
    )


def _weights(region: RegionFile, layer: LayerEntry, channels: int) -> int:
    if layer.op == "add":
        return 0
    return round_up(channels * region.channel_bytes(layer), _WORD) + 4 * channels


def tiles(region: RegionFile, layer: LayerEntry, design: Design) -> Tiling:
    """Return the tile of a layer that has SRAM to itself.

    Raises:
        TilingError: not even the smallest tile fits; the message has limit, demand and levers.
    """
    result = region.result(layer)
    best_tiling: Tiling | None = None
    fewest = 0
    for bands in range(1, result.rows + 1 if design.rows else 2):
        y = groups(result.rows, bands)
        if groups(result.rows, y) != bands:
            continue  # as high as with fewer bands
        k = _widest(region, layer, design, y)
        if k == 0:
            continue
        for tile in (Tiling(k, y), Tiling(_whole_groups(design, layer, k, result.channels), y)):
            cycles = tiled_cycles(region, layer, design, tile) if design.rows else 0
            if best_tiling is None or cycles < fewest:
                best_tiling, fewest = tile, cycles
    if best_tiling is None:
        raise _too_small(region, layer, design)
    return best_tiling


def _widest(region: RegionFile, layer: LayerEntry, design: Design, y: int) -> int:
    """Return the largest number of output channels that fit, 0 if not even one does."""
    low, high = 0, region.result(layer).channels
    while low < high:
        middle = (low + high + 1) // 2
        if memory_need(region, layer, design, Tiling(middle, y)).total <= design.sram:
            low = middle
        else:
            high = middle - 1
    return low


def _whole_groups(design: Design, layer: LayerEntry, k: int, channels: int) -> int:
    """Return k, or, unless it is a multiple of the PEs' width, the multiple below it, if any."""
    lanes = design.pes_out if layer.op in ("conv", "dense") else design.pes
    return k if k == channels or k < lanes else k // lanes * lanes


def tiled_cycles(region: RegionFile, layer: LayerEntry, design: Design, tile: Tiling) -> int:
    """Return the device's cycles of a layer in tiles, if nothing stays in SRAM between layers."""
    device, moved = layer_cycles(region, layer, design, tile, (False,) * len(layer.inputs), False)
    return device + moved


def layer_cycles(
    region: RegionFile,
    layer: LayerEntry,
    design: Design,
    tile: Tiling,
    resident: tuple[bool, ...],
    result_stays: bool,
) -> tuple[int, int]:
    """Return the cycles that a layer computes, and those of its transfers."""
    result = region.result(layer)
    computing = moving = 0
    wide, high = groups(result.channels, tile.k), groups(result.rows, tile.y)
    for first in range(high):
        rows = min(tile.y, result.rows - first * tile.y)
        if layer.op in ("conv", "dense") and not resident[0]:
            moving += _band_cycles(region, layer, design, first * tile.y, rows, None)
        # All tiles of channels are equal but the last.
        last = result.channels - (wide - 1) * tile.k
        for count, k in ((wide - 1, tile.k), (1, last)):
            if count == 0:
                continue
            computing += count * compute_cycles(region, layer, design, k, rows)
            each = _transfer_cycles(region, layer, design, k, rows, resident, result_stays)
            if layer.op == "depthwise" and not resident[0]:
                each += _band_cycles(region, layer, design, first * tile.y, rows, k)
            if wide > 1 or first == 0:
                each += _weight_cycles(region, layer, design, k)
            moving += count * each
    return computing, moving


def _band_cycles(
    region: RegionFile, layer: LayerEntry, design: Design, start: int, rows: int, k: int | None
) -> int:
    """Return the cycles of loading what some output rows read: all channels, or k of them."""
    source = region.source(layer)
    first, last = input_rows(region, layer, start, rows)
    if last <= first:
        return 0
    size = source.channels if k is None else k
    pixels = (last - first) * source.columns
    return dma_cycles(design, pixels, size, size == source.channels)


def input_rows(region: RegionFile, layer: LayerEntry, start: int, rows: int) -> tuple[int, int]:
    """Return the first input row that output rows from ``start`` on read, and the one behind."""
    source = region.source(layer)
    if rows == region.result(layer).rows:
        return 0, source.rows
    first = max(0, start * layer.stride[0] - layer.pad[0])
    last = (start + rows - 1) * layer.stride[0] - layer.pad[0] + layer.kernel[0]
    return min(first, source.rows), min(last, source.rows)


def compute_cycles(region: RegionFile, layer: LayerEntry, design: Design, k: int, rows: int) -> int:
    source, result = region.source(layer), region.result(layer)
    elements = rows * result.columns * k
    if layer.op == "add":
        return element_cycles(design, elements)
    positions = rows * result.columns * layer.kernel[0] * layer.kernel[1]
    requant = 0 if design.fused else element_cycles(design, elements)
    if layer.op != "depthwise":
        return conv_cycles(design, positions, source.channels, k) + requant
    if design.emulated:
        return k * conv_cycles(design, positions, 1, 1) + requant
    return depth_cycles(design, positions, k) + requant


def _weight_cycles(region: RegionFile, layer: LayerEntry, design: Design, k: int) -> int:
    if layer.op == "add":
        return 0
    if k == region.result(layer).channels:
        return dma_cycles(design, 1, region.block_bytes(layer), True)
    own = dma_cycles(design, 1, k * region.channel_bytes(layer), True)
    return own + dma_cycles(design, 1, 4 * k, True)


def _transfer_cycles(
    region: RegionFile,
    layer: LayerEntry,
    design: Design,
    k: int,
    rows: int,
    resident: tuple[bool, ...],
    result_stays: bool,
) -> int:
    result = region.result(layer)
    pixels = rows * result.columns
    one = dma_cycles(design, pixels, k, k == result.channels)
    moved = 0 if result_stays else one
    if layer.op == "add":
        moved += one * sum(not found for found in resident)
    return moved


def smallest(region: RegionFile, layer: LayerEntry, design: Design) -> Tiling:
    """Return the tile that needs the least SRAM."""
    return Tiling(1, 1 if design.rows else region.result(layer).rows)


def _too_small(region: RegionFile, layer: LayerEntry, design: Design) -> TilingError:
    tiling = smallest(region, layer, design)
    small = memory_need(region, layer, design, tiling)
    result = region.result(layer)
    whole = memory_need(region, layer, design, Tiling(result.channels, result.rows)).total
    levers = [f"give {small.total} B of SRAM or more"]
    if not design.rows and result.rows > 1:
        lower = memory_need(region, layer, design, Tiling(1, 1)).total
        levers.append(f"tile rows, too (rows=tiled), which needs {lower} B")
    if not design.fused and layer.op != "add":
        levers.append("requantize in the convolution (fused), whose results take a quarter")
    levers.append("leave the layer to the CPU")
    return TilingError(
        f"the smallest tile (K={tiling.k}, oy={tiling.y}) needs {small.total} B of SRAM (operands "
        f"{small.source * small.operands}, result {small.result}, weights {small.weights}), "
        f"the limit is {design.sram} B, and the whole layer would need {whole} B",
        where=f"layer '{layer.name}'",
        hint=f"{', '.join(levers[:-1])}, or {levers[-1]}",
    )
