"""The one way through a graph: groups first, then what they leave."""

from __future__ import annotations

from collections.abc import Sequence

from byoc_dory.layers import Shift, add_layer, matrix
from patterns.dispatch.groups import Group
from patterns.dispatch.together import settle
from patterns.ops.add import Add
from patterns.reading.graph import Graph
from patterns.reading.node import Node

LAYER = add_layer("s", matrix("a", 8, 16), matrix("b", 8, 16), "s", requant=Shift(1))


def chain(*names: str) -> Graph:
    """Operators that each read the one before."""
    nodes = tuple(
        Node(name, Add(Shift(1)), (before,), name, ((1,),), (1,))
        for before, name in zip(("x", *names), names, strict=False)
    )
    return Graph(nodes, names[-1:])


class Recorder:
    """Takes the groups of these names, and says what it was asked."""

    def __init__(self, *taken: str) -> None:
        self.taken = taken
        self.asked: list[str] = []

    def together(self, group: Group) -> dict[str, str]:
        self.asked.append("+".join(group.parts))
        return dict.fromkeys(group.parts, "core") if group.name in self.taken else {}

    def alone(self, nodes: Sequence[Node]) -> dict[str, str]:
        self.asked.append(" ".join(node.name for node in nodes))
        return {node.name: "cpu" for node in nodes if node.name != "d"}


def of(*parts: str) -> Group:
    return Group("chain", LAYER, parts)


def test_what_a_group_leaves_is_offered_alone() -> None:
    judge = Recorder("c")
    places = settle(chain("a", "b", "c", "d"), [of("b", "c")], judge)
    assert judge.asked == ["b+c", "a d"]
    assert list(places.items()) == [("a", "cpu"), ("b", "core"), ("c", "core")]


def test_an_operator_that_is_settled_is_not_offered_again() -> None:
    judge = Recorder("c", "b")
    settle(chain("a", "b", "c"), [of("a", "b", "c"), of("a", "b")], judge)
    assert judge.asked == ["a+b+c", ""]


def test_a_refused_group_leaves_its_operators_to_smaller_ones() -> None:
    judge = Recorder("b")
    places = settle(chain("a", "b", "c"), [of("a", "b", "c"), of("a", "b")], judge)
    assert judge.asked == ["a+b+c", "a+b", "c"]
    assert places == {"a": "core", "b": "core", "c": "cpu"}
