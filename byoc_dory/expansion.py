"""The layers that a region is executed as, and the accelerator of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from byoc_dory.errors import TargetError
from byoc_dory.layers import Layer
from byoc_dory.region import Region
from byoc_dory.soc.base import Accelerator, Soc


@dataclass(frozen=True, eq=False)
class Expanded:
    """A region whose layers are executed as they are.

    Attributes:
        region: the region, with expanded layers in place of the original ones.
        homes: the accelerator of each layer, by the layer's name.
    """

    region: Region
    homes: Mapping[str, Accelerator]


def expand(soc: Soc, region: Region, accelerator: str | None = None) -> Expanded:
    """Return the layers that a region is executed as.

    Args:
        soc: description of the SoC.
        region: the region.
        accelerator: name of the accelerator for layers without a home in the region; the SoC's
            first one by default.

    Raises:
        TargetError: the SoC has no such accelerator.
    """
    homes = {layer.name: _accelerator(soc, accelerator) for layer in region.layers}
    for layer, own in zip(region.layers, region.homes, strict=False):
        homes[layer.name] = soc.accelerator(own)
    layers: list[Layer] = []
    found: dict[str, Accelerator] = {}
    for layer in region.layers:
        home = homes[layer.name]
        for part, name in home.expand(soc, layer):
            layers.append(part)
            found[part.name] = home if name == home.name else soc.accelerator(name)
    return Expanded(replace(region, layers=tuple(layers), homes=()), found)


def _accelerator(soc: Soc, name: str | None) -> Accelerator:
    if name is not None:
        return soc.accelerator(name)
    if not soc.accelerators:
        raise TargetError("there is no accelerator to generate code for", where=f"SoC {soc.name}")
    return soc.accelerators[0]
