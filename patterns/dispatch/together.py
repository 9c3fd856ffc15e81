"""Settling all operators of a graph: groups that can be taken together are offered first.

Planning before retargeting and dispatch after it both use this.  They decide differently about an
offer, which is their `Judge`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from patterns.dispatch.cached import cached_attentions
from patterns.dispatch.combined import combinations
from patterns.dispatch.groups import Group, groups_of
from patterns.dispatch.mha import NoAttention, attentions

if TYPE_CHECKING:
    from patterns.reading.graph import Graph
    from patterns.reading.node import Node

__all__ = ["Judge", "Together", "settle", "together_in"]


@dataclass(frozen=True)
class Together:
    """Groups that accelerators may take together, in the order in which they are offered.

    Attributes:
        groups: operators that make up one layer, attentions first; they may overlap.
        missed: parts of the graph that look like attention but do not form a layer, with the
            reason.
    """

    groups: tuple[Group, ...] = ()
    missed: tuple[NoAttention, ...] = ()


def together_in(graph: Graph) -> Together:
    """Find the groups that accelerators may take together."""
    found = tuple(attentions(graph))
    whole = (entry for entry in found if isinstance(entry, Group))
    return Together(
        groups=(*whole, *cached_attentions(graph), *combinations(graph), *groups_of(graph)),
        missed=tuple(entry for entry in found if isinstance(entry, NoAttention)),
    )


class Judge(Protocol):
    """Decides where operators run."""

    def together(self, group: Group) -> Mapping[str, str]:
        """Return the places of a group's operators by name; empty leaves them to other offers."""

    def alone(self, nodes: Sequence[Node]) -> Mapping[str, str]:
        """Return the places of operators that no group settled, by name."""


def settle(graph: Graph, groups: Sequence[Group], judge: Judge) -> dict[str, str]:
    """Offer groups first, then the remaining operators.

    Args:
        graph: all operators.
        groups: groups to offer; a group with an operator that is already settled is not offered.
        judge: decides about the offers.

    Returns:
        Operator -> its place, in execution order, for the operators that the judge places.
    """
    places: dict[str, str] = {}
    for group in groups:
        if not any(name in places for name in group.parts):
            places |= judge.together(group)
    places |= judge.alone([node for node in graph.in_order if node.name not in places])
    return {node.name: places[node.name] for node in graph.in_order if node.name in places}
