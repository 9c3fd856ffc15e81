"""Settling all operators of a graph: groups that can be taken together are offered first.

Planning before retargeting and dispatch after it both use this.  They decide differently about an
offer, which is their `Judge`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from patterns.dispatch.cached import cached_attention_around
from patterns.dispatch.groups import Group, combination_at, pair_at
from patterns.dispatch.mha import NoAttention, attention_around
from patterns.op import Work
from patterns.ops.add import Add
from patterns.ops.integer.rescale import Rescale
from patterns.ops.pulp.ita import ItaActivation

if TYPE_CHECKING:
    from patterns.reading.graph import Graph
    from patterns.reading.node import Node


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
    nodes = graph.in_order
    softmaxes = [node for node in nodes if node.op.work is Work.SOFTMAX]
    groups: list[Group | None] = []
    missed = []
    for node in softmaxes:
        if any(group is not None and node.name in group.parts for group in groups):
            continue  # of another head
        found = attention_around(node, graph)
        if isinstance(found, NoAttention):
            missed.append(found)
        else:
            groups.append(found)
    groups += [cached_attention_around(node, graph) for node in softmaxes]
    groups += [combination_at(node, graph) for node in nodes if isinstance(node.op, Add | Rescale)]
    ends = [node for node in nodes if isinstance(node.op, Rescale | ItaActivation)]
    groups += [pair_at(node, graph) for node in ends]
    return Together(tuple(group for group in groups if group is not None), tuple(missed))


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
