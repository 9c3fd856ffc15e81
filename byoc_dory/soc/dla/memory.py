"""Memory plan of a region: tiles, results that stay in SRAM, and places.

Integers only, no solver, and the order of everything is fixed, so that the late assembler
(``runtime_c/soc/dla``) does the same on a device.

1. Each layer alone (`byoc_dory.soc.dla.tiles`): output channels are tiled as published, the whole
   input being in SRAM (of sums and depthwise layers, only the channels of the tile); the tile is
   the largest that fits.  With ``Design.rows``, bands of rows are tiles, too, and the one with the
   fewest cycles is taken, the tallest of equal ones.
2. Results stay in SRAM until their last reader, one after another in the order of layers, if all
   buffers of the region still have a place, with unchanged tiles.
3. Places: layer after layer, each buffer at the lowest address that is free.
"""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.soc.dla.design import Design
from byoc_dory.soc.dla.region_file import LayerEntry, RegionFile
from byoc_dory.soc.dla.tiles import Tiling, memory_need, tiles
from byoc_dory.soc.parts import round_up

_WORD = 4

NOWHERE = 0xFFFFFFFF
"""Address of a buffer that a layer does not have."""


@dataclass(frozen=True)
class LayerMemory:
    """What a layer has in SRAM.

    Attributes:
        tile: sizes of its tiles.
        operands: address of each operand: of a tile, or of the whole tensor if it stays in SRAM.
        result: address of the result, likewise.
        sums: address of a tile's int32 sums; that of the result if they are requantized in place.
        weights: address of a tile's weights, which its biases follow.
        resident: for each operand, whether the whole tensor is in SRAM.
        stays: whether the result stays in SRAM, and is not written to system memory.
    """

    tile: Tiling
    operands: tuple[int, ...]
    result: int
    sums: int
    weights: int
    resident: tuple[bool, ...]
    stays: bool


@dataclass(frozen=True)
class MemoryPlan:
    """The plan of a region.

    Attributes:
        layers: one entry per layer.
        peak: bytes of SRAM in use.
        used: for each layer, bytes in use while it runs.
    """

    layers: tuple[LayerMemory, ...]
    peak: int
    used: tuple[int, ...]


def plan(region: RegionFile, design: Design) -> MemoryPlan:
    """Return tiles and places of a region's layers.

    Raises:
        TilingError: a layer's smallest tile does not fit.
    """
    tilings = [tiles(region, layer, design) for layer in region.layers]
    writer = {layer.output: number for number, layer in enumerate(region.layers)}
    reader = {entry: n for n, layer in enumerate(region.layers) for entry in layer.inputs}
    staying: set[int] = set()
    best_plan = _place_layers(region, design, tilings, staying, reader)
    assert best_plan is not None  # each layer fits alone
    for tensor in writer:
        if not design.resident or region.tensors[tensor].kind != "internal":
            continue
        tried = _place_layers(region, design, tilings, staying | {tensor}, reader)
        if tried is not None:
            staying, best_plan = staying | {tensor}, tried
    return best_plan


def _place_layers(
    region: RegionFile,
    design: Design,
    tilings: list[Tiling],
    staying: set[int],
    reader: dict[int, int],
) -> MemoryPlan | None:
    """Return the plan with these tensors staying in SRAM; None if a buffer has no place."""
    places: dict[int, int] = {}
    layers, used, peak = [], [], 0
    for number, layer in enumerate(region.layers):
        occupied = [
            (places[tensor], places[tensor] + round_up(region.tensors[tensor].bytes, _WORD))
            for tensor in places
            if reader[tensor] >= number
        ]
        entry = _place_layer(region, design, layer, tilings[number], staying, places, occupied)
        if entry is None:
            return None
        layers.append(entry)
        used.append(sum(end - start for start, end in occupied))
        peak = max(peak, *(end for _, end in occupied))
    return MemoryPlan(tuple(layers), peak, tuple(used))


def _place_layer(
    region: RegionFile,
    design: Design,
    layer: LayerEntry,
    tile: Tiling,
    staying: set[int],
    where: dict[int, int],
    occupied: list[tuple[int, int]],
) -> LayerMemory | None:
    """Place a layer's buffers beside the taken ones, to which they are added."""
    sizes = memory_need(region, layer, design, tile)
    stays = layer.output in staying
    resident = tuple(tensor in where for tensor in layer.inputs)
    wanted: list[int] = []
    wanted.append(round_up(region.result(layer).bytes, _WORD) if stays else sizes.result)
    wanted += [0 if found else sizes.source for found in resident]
    split = stays and not design.fused and layer.op != "add"
    wanted += [sizes.result if split else 0, sizes.weights]
    places: list[int] = []
    for size in wanted:
        start = _lowest_free(occupied, size, design.sram)
        if start is None:
            return None
        if size:
            occupied.append((start, start + size))
        places.append(start)
    if stays:
        where[layer.output] = places[0]
    return LayerMemory(
        tile=tile,
        operands=tuple(
            where[tensor] if found else place
            for tensor, found, place in zip(layer.inputs, resident, places[1:], strict=False)
        ),
        result=places[0],
        sums=places[-2] if split else places[0],
        weights=places[-1] if sizes.weights else NOWHERE,
        resident=resident,
        stays=stays,
    )


def _lowest_free(occupied: list[tuple[int, int]], size: int, limit: int) -> int | None:
    """Return the lowest free address for ``size`` bytes (NOWHERE for 0); None: there is none."""
    if size == 0:
        return NOWHERE
    start, moved = 0, True
    while moved:
        moved = False
        for low, high in occupied:
            if low < start + size and start < high:
                start, moved = high, True
    return start if start + size <= limit else None
