"""Other targets whose accelerators take a network as it is."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from byoc_dory.verdict import CPU

if TYPE_CHECKING:
    from byoc_dory.soc.base import Target
    from htvm.model import Model
    from patterns.reading.graph import Graph

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OtherTarget:
    """A target, and how many of a network's layers its accelerators take.

    Attributes:
        target: its name.
        taken, layers: layers on its accelerators, and all layers.
    """

    target: str
    taken: int
    layers: int

    def __str__(self) -> str:
        """Return it in words."""
        share = "all" if self.taken == self.layers else f"{self.taken} of {self.layers}"
        return f"{self.target} runs {share} layers on accelerators (-t {self.target})"


def other_targets(graph: Graph, target: Target) -> tuple[OtherTarget, ...]:
    """Return the targets of other SoCs that take layers in the source's own numbers, best first.

    Of those that leave as little to the host, the first joins most operators in one layer.

    One target stands for each SoC: the one with most accelerators.

    Args:
        graph: the operators of the source.
        target: the target of the build.
    """
    from byoc_dory.soc.registry import resolve, targets
    from patterns.dispatch.dispatching import dispatch

    best: dict[str, Target] = {}
    for name in targets():
        other = resolve(name)
        known = best.get(other.soc.name)
        if known is None or len(other.accelerators) > len(known.accelerators):
            best[other.soc.name] = other
    found = []
    for other in best.values():
        if other.soc.name == target.soc.name or not other.accelerators:
            continue
        placed = dispatch(graph, other.soc, other.accelerators)
        places = [placed.placement[name] for name in placed.layers]
        taken = sum(place != CPU for place in places)
        if taken:
            found.append(OtherTarget(other.name, taken, len(places)))
    return tuple(sorted(found, key=lambda entry: (-entry.taken / entry.layers, entry.layers)))


def advise(source: Model, target: Target) -> None:
    """Warn that other targets take a network that could not be written in this one's numbers."""
    found = other_targets(source.graph, target)
    if found:
        words = ", ".join(map(str, found))
        _log.warning("other targets take %s as it is: %s", source.name, words)
