"""Rules that both cores of DIANA have; each docstring is the public statement."""

from __future__ import annotations

from byoc_dory.layers import Layer
from byoc_dory.soc import rules
from byoc_dory.soc.base import Accelerator, Soc
from byoc_dory.soc.rules import ACCEPTED
from byoc_dory.verdict import Refused, Verdict


def padding_is_below_kernel(soc: Soc, core: Accelerator, layer: Layer) -> Verdict:
    """The padding of each side is smaller than the kernel."""
    top, left, bottom, right = layer.pad
    if max(top, bottom) >= layer.fy or max(left, right) >= layer.fx:
        return Refused(f"the padding is {layer.pad} for a kernel of {layer.fy}x{layer.fx}")
    return ACCEPTED


def sizes_fit_registers(soc: Soc, core: Accelerator, layer: Layer) -> Verdict:
    """Every dimension is below 65536."""
    largest = max(layer.K, layer.C, layer.iy, layer.ix, layer.oy, layer.ox)
    if largest >= 1 << 16:
        return Refused(f"a dimension is {largest}")
    return ACCEPTED


def smallest_tile_fits(soc: Soc, core: Accelerator, layer: Layer) -> Verdict:
    """At least the smallest tile fits L1 and the memory for weights."""
    return rules.smallest_tile_fits(soc, core, layer)
