"""Other orders of a region's layers, in which more of them can be computed side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from byoc_dory.layers import Add
from byoc_dory.region import Region
from byoc_dory.soc.base import Accelerator


def with_long_before_sums(region: Region, homes: Mapping[str, Accelerator]) -> Region:
    """Return the region with the longest operand of each add directly before it.

    An accelerator that takes the next layer along (`Accelerator.takes_next`) hides most of an add
    behind a long layer, and little behind a short one.  Layers move only past those that do not
    read their results.  Without such an add, the region itself is returned.
    """
    layers = list(region.layers)
    for add in [layer for layer in layers if isinstance(layer, Add)]:
        at = layers.index(add)
        reads = {tensor.name for tensor in add.inputs}
        writers = [layer for layer in layers[:at] if layer.output.name in reads]
        able = [layer for layer in writers if homes[layer.name].takes_next]
        if not able:
            continue
        longest = max(able, key=lambda layer: layer.macs)
        between = layers[layers.index(longest) + 1 : at]
        passes = all(
            longest.output.name not in [tensor.name for tensor in layer.inputs] for layer in between
        )
        if between and passes:
            layers.remove(longest)
            layers.insert(at - 1, longest)
    if layers == list(region.layers):
        return region
    return replace(region, layers=tuple(layers))
