"""One way through the operators of a graph: what can be taken together is offered first.

Planning before retargeting and dispatch after it both go this way.  They differ in how an offer is
judged, which is their `Judge`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from patterns.dispatch.groups import Group, groups_of
from patterns.dispatch.mha import NoAttention, attentions

if TYPE_CHECKING:
    from patterns.reading.graph import Graph
    from patterns.reading.node import Node

__all__ = ["Judge", "Together", "settle", "together_in"]


@dataclass(frozen=True)
class Together:
    """What accelerators may take together, in the order in which it is offered.

    Attributes:
        groups: operators that make up one layer, attentions first; they may overlap.
        missed: what looks like attention and is none, with the reason.
    """

    groups: tuple[Group, ...] = ()
    missed: tuple[NoAttention, ...] = ()


def together_in(graph: Graph) -> Together:
    """Find what accelerators may take together."""
    found = tuple(attentions(graph))
    return Together(
        groups=(*(entry for entry in found if isinstance(entry, Group)), *groups_of(graph)),
        missed=tuple(entry for entry in found if isinstance(entry, NoAttention)),
    )


class Judge(Protocol):
    """Decides where operators run."""

    def together(self, group: Group) -> Mapping[str, str]:
        """Return where operators of a group run, by name; nothing leaves them to other offers."""

    def alone(self, nodes: Sequence[Node]) -> Mapping[str, str]:
        """Return where operators run that no group settled, by name."""


def settle(graph: Graph, groups: Sequence[Group], judge: Judge) -> dict[str, str]:
    """Offer groups, then the operators that they leave.

    Args:
        graph: all operators.
        groups: what is offered together; one of which an operator is settled is not offered.
        judge: decides.

    Returns:
        Operator -> where it runs, in execution order, of those that the judge names.
    """
    places: dict[str, str] = {}
    for group in groups:
        if not any(name in places for name in group.parts):
            places |= judge.together(group)
    places |= judge.alone([node for node in graph.in_order if node.name not in places])
    return {node.name: places[node.name] for node in graph.in_order if node.name in places}
