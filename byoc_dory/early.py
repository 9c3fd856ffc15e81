"""Layers that are started as soon as their operands are there, and waited for in their turn.

While the cores compute what a layer does not depend on, an engine beside them computes that layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from byoc_dory.blocks import Schedule, held_back
from byoc_dory.layers import Layer
from byoc_dory.options import TilingOptions
from byoc_dory.soc.base import Accelerator, Soc


def schedule_early(
    layers: Sequence[Layer],
    homes: Mapping[str, Accelerator],
    soc: Soc,
    options: TilingOptions,
    cycles: Callable[[Accelerator, Layer], float],
) -> tuple[Schedule, float]:
    """Return the layers with those that are started before their turn, and what that saves.

    The cycles saved are an estimate; they are a part of the schedule's cycles one after another.

    Args:
        layers: layers in execution order.
        homes: the accelerator of each, by the layer's name.
        soc: their SoC.
        options: options of the tiler.
        cycles: returns the predicted cycles of a layer by itself.
    """
    starts = dict(_starts(layers, homes, soc))
    if not starts:
        return Schedule(tuple(layers)), 0
    times = [cycles(homes[layer.name], layer) for layer in layers]
    saved = 0.0
    for number, layer in enumerate(layers):
        if layer.name in starts:
            started = homes[layer.name].started_cycles(soc, layer, options)
            saved += min(sum(times[starts[layer.name] : number]), started)
            saved -= max(0, started - times[number])
    return Schedule(tuple(layers), starts, sum(times)), saved


def _starts(
    layers: Sequence[Layer], homes: Mapping[str, Accelerator], soc: Soc
) -> Iterator[tuple[str, int]]:
    """Yield each layer that can begin before its turn, and the layer before which it does.

    Its operands are written then, and its accelerator is done with the layer before.
    """
    behind: dict[str, int] = {}  # tensor, or accelerator: the first layer behind it
    for number, layer in enumerate(layers):
        home = homes[layer.name]
        own = f"on {home.name}"
        reads = {name for each in layer.inputs for name in (each.name, each.stored.name)}
        begin = max(behind.get(name, 0) for name in (*reads, own))
        if begin < number and not held_back(soc, home, layer):
            yield layer.name, begin
        behind |= dict.fromkeys((layer.output.name, layer.output.stored.name, own), number + 1)
