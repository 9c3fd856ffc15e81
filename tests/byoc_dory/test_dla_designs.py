"""Random designs of the accelerator compute random regions exactly, with the cycles predicted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from byoc_dory.errors import TilingError
from byoc_dory.soc.dla.design import Design
from byoc_dory.soc.dla.memory import plan
from byoc_dory.soc.dla.region_file import RegionFile, lower
from byoc_dory.soc.dla.tiles import layer_cycles, memory_need, smallest
from tests.byoc_dory.dla_draws import check_region, draw_design, draw_region


def least_sram(file: RegionFile, design: Design) -> int:
    """Bytes of SRAM of the region's largest smallest tile."""
    return max(
        memory_need(file, layer, design, smallest(file, layer, design)).total
        for layer in file.layers
    )


def check_random(seed: int) -> None:
    """Check one region with exactly one tile of SRAM, one byte less, and more.

    Cycles of every layer are those of the closed form.
    """
    rng = np.random.default_rng([seed, 13])
    region = draw_region(rng, int(rng.integers(1, 5)))
    design = draw_design(rng, 1 << 20)
    file, _ = lower(region)
    least = least_sram(file, design)
    with pytest.raises(TilingError, match=f"needs {least} B of SRAM"):
        plan(file, replace(design, sram=least - 1))
    for sram in (least, int(rng.integers(least, 4 * least + 64)), 1 << 20):
        sized = replace(design, sram=sram)
        counts = check_region(region, sized, rng)
        for count, layer, entry in zip(counts, file.layers, plan(file, sized).layers, strict=True):
            own, moved = layer_cycles(file, layer, sized, entry.tile, entry.resident, entry.stays)
            assert (count.computing, count.cycles["DMA"]) == (own, moved), layer


@pytest.mark.parametrize("seed", range(40))
def test_random_regions(seed: int) -> None:
    check_random(seed)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(10))
def test_a_thousand_random_designs(batch: int) -> None:
    for seed in range(100):
        check_random(1000 + 100 * batch + seed)
