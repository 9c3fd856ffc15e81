"""Dispatch: which operator runs where, and why.

:func:`dispatch` judges every operator by the rules of every accelerator and places it; the regions
that follow are `patterns.byoc.partition`'s.  Nothing here knows a SoC: the rules judge a `Layer`,
and accelerators are names.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING

from byoc_dory.errors import PolicyError
from byoc_dory.layers import Add, Array, Layer, MultiHeadAttention, Tensor
from byoc_dory.verdict import Refused
from patterns.dispatch.arrange import is_arranged
from patterns.dispatch.groups import Group, groups_of
from patterns.dispatch.mha import NoAttention, attentions
from patterns.dispatch.renames import renames
from patterns.ops.elementwise import has_table, read_table

if TYPE_CHECKING:
    from byoc_dory.soc.base import Accelerator, Soc
    from patterns.reading.graph import Graph
    from patterns.reading.node import Node

__all__ = ["CPU", "Dispatch", "OperatorVerdict", "dispatch", "offers_of"]

CPU = "cpu"
"""Placement of an operator that no accelerator takes."""


@dataclass(frozen=True)
class OperatorVerdict:
    """What one accelerator says to one operator.

    Attributes:
        layer: the operator's name.
        kind: conv2d, depthwise, dense, add, softmax, ...
        accelerator: the accelerator's name.
        accepted: whether the operator may run there.
        reason: if not, one sentence with the offending value; if it does as a part of a layer,
            which one.
        rule: public statement of the rule that objects, empty where no pattern matches.
    """

    layer: str
    kind: str
    accelerator: str
    accepted: bool
    reason: str = ""
    rule: str = ""


@dataclass(frozen=True, eq=False)
class Dispatch:
    """Where each operator runs, and why.

    Attributes:
        placement: operator name -> accelerator name or "cpu", in execution order.
        verdicts: one per operator and accelerator, in execution order; one more where operators
            were offered together and refused.
        kinds: what each operator is: conv2d, depthwise, dense, add, softmax, ...
        layers: the operators a pattern describes, by name, but for parts of others' layers.
        groups: layers that consist of several operators: name -> these, in execution order; the
            last has the layer's name.
        renamed: reshapes that are another name of a tensor inside a region, so that nothing runs
            for them: name -> family of accelerators of the region.
        elements: how many elements each operator reads (those of a window as often as they are
            read) and writes.
        absorbed: conversions between scales that the host does while their tensor enters a region:
            name -> family of accelerators of the region.
        tables: what each source byte becomes, for every absorbed conversion: uint8 [256].
    """

    placement: Mapping[str, str]
    verdicts: tuple[OperatorVerdict, ...]
    kinds: Mapping[str, str]
    layers: Mapping[str, Layer]
    elements: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    absorbed: Mapping[str, str] = field(default_factory=dict[str, str])
    tables: Mapping[str, Array] = field(default_factory=dict[str, Array])
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def inner(self) -> frozenset[str]:
        """The operators that are part of another's layer."""
        return frozenset(name for parts in self.groups.values() for name in parts[:-1])


def dispatch(
    graph: Graph,
    soc: Soc,
    accelerators: Sequence[Accelerator],
    wanted: Mapping[str, str] | None = None,
    binding: Container[str] = (),
) -> Dispatch:
    """Judge every operator, and place it where it is wanted or on the first that accepts it.

    Args:
        graph: the operators, and what the module returns.
        soc: passed to the rules.
        accelerators: in order of preference; none places everything on the CPU.
        wanted: operator -> accelerator or "cpu", as a plan made before retargeting has it.  Where
            that accelerator refuses what was written, the first that accepts gets the operator.
        binding: operators of ``wanted`` that must not go elsewhere.

    Raises:
        PolicyError: an operator that must run on an accelerator is refused by it.
    """
    wanted = wanted or {}
    nodes, results = graph.in_order, graph.results
    offered = _Offered(graph, soc, accelerators, wanted)
    turned = _channels_first(nodes)
    placement: dict[str, str] = {}
    verdicts: list[OperatorVerdict] = []
    for node in nodes:
        said = offered.together(node)
        if said is None:
            said = [_judge(_as_seen(node, entry), soc, entry, turned) for entry in accelerators]
            said = offered.with_refusals(node, said)
            placement[node.name] = _placed(said, wanted.get(node.name), node.name in binding)
        else:
            placement[node.name] = offered.places[node.name]
        verdicts += said
    families = {entry.name: entry.family for entry in accelerators}
    groups = {group.name: group for group in offered.formed}
    kinds = {node.name: node.kind for node in nodes}
    kinds |= {name: group.kind for name, group in groups.items()}
    homes = {entry.name: entry for entry in accelerators}
    seen = {node.name: _as_seen(node, homes.get(placement[node.name])) for node in nodes}
    layers = {name: node.layer for name, node in seen.items() if node.layer is not None}
    layers |= {name: group.layer for name, group in groups.items()}
    inner = {name for group in groups.values() for name in group.parts[:-1]}
    layers = {name: layer for name, layer in layers.items() if name not in inner}
    placed = {name: families[place] for name, place in placement.items() if place in families}
    absorbed = {
        node.name: home
        for node in nodes
        if node.name not in results
        and (home := _home(node, nodes, placement, families)) is not None
    }
    tables = {node.name: read_table(node.attrs) for node in nodes if node.name in absorbed}
    elements = {node.name: _elements(node) for node in nodes}
    parts = {name: group.parts for name, group in groups.items()}
    renamed = renames(graph, placed, layers, inner)
    told = tuple(_of_renamed(verdict, graph, renamed) for verdict in verdicts)
    return Dispatch(placement, told, kinds, layers, elements, absorbed, tables, parts, renamed)


def _as_seen(node: Node, accelerator: Accelerator | None) -> Node:
    """The operator as an accelerator is offered it: a sum of matrices as one of vectors, unless
    matrices lie row by row there, where rows are what cores share."""
    layer = node.layer
    if accelerator is None or accelerator.keeps_rows or not isinstance(layer, Add):
        return node
    if len(node.output_shape) == 4 or len(layer.output.shape) == 1:
        return node

    def vector(tensor: Tensor) -> Tensor:
        return replace(tensor, shape=(tensor.elements,), layout="C")

    flat = replace(layer, inputs=tuple(map(vector, layer.inputs)), output=vector(layer.output))
    return replace(node, layer=flat)


def _of_renamed(verdict: OperatorVerdict, graph: Graph, renamed: Container[str]) -> OperatorVerdict:
    if verdict.layer not in renamed:
        return verdict
    origin, _ = graph.behind_reshapes(verdict.layer)
    return replace(verdict, reason=f"nothing to do: it is another name of '{origin}'")


def offers_of(graph: Graph) -> Iterator[Group | NoAttention]:
    """What is offered to accelerators before single operators are, the largest first."""
    yield from attentions(graph)
    yield from groups_of(graph)


class _Offered:
    """Groups of operators, offered to the accelerators before their operators are.

    Attributes:
        formed: those that an accelerator took.
        places: where their operators run.
    """

    def __init__(
        self,
        graph: Graph,
        soc: Soc,
        accelerators: Sequence[Accelerator],
        wanted: Mapping[str, str],
    ) -> None:
        self.formed: list[Group] = []
        self.places: dict[str, str] = {}
        self._taken: dict[str, list[OperatorVerdict]] = {}
        self._refused: dict[str, list[OperatorVerdict]] = {}
        turned = _channels_first(graph.nodes.values())
        for group in offers_of(graph) if accelerators else ():
            if isinstance(group, NoAttention):
                self._refused[group.softmax] = [
                    OperatorVerdict(
                        group.softmax, "mha", entry.name, False, f"attention: {group.reason}"
                    )
                    for entry in accelerators
                ]
                continue
            if any(name in self.places for name in group.parts):
                continue
            said = [_verdict(group.layer, group.kind, soc, entry, turned) for entry in accelerators]
            place = _taker(said, wanted.get(group.name))
            if place is None:
                self._note(group, said, graph)
                continue
            self.formed.append(group)
            for name in group.parts:
                self.places[name] = place
                self._taken[name] = [_of_part(entry, name, group, graph) for entry in said]

    def together(self, node: Node) -> list[OperatorVerdict] | None:
        """What was said to a group that was formed of this operator and others."""
        return self._taken.get(node.name)

    def with_refusals(self, node: Node, said: list[OperatorVerdict]) -> list[OperatorVerdict]:
        """The verdicts on an operator, and those on its group, which is refused.

        Of an operator that no pattern describes by itself, only the latter tell something.
        """
        refusals = self._refused.get(node.name, [])
        return refusals if node.layer is None and refusals else [*said, *refusals]

    def _note(self, group: Group, said: Sequence[OperatorVerdict], graph: Graph) -> None:
        refusals = [entry for entry in said if not entry.accepted]
        if isinstance(group.layer, MultiHeadAttention):
            count = group.layer.attention.heads
            heads = f"attention of {count} head{'s' if count > 1 else ''}"
            refusals = [replace(entry, reason=f"{heads}: {entry.reason}") for entry in refusals]
        for name in group.parts:
            node = graph.nodes[name]
            if name == group.name or (node.layer is None and not is_arranged(node)):
                renamed = [replace(entry, layer=name) for entry in refusals]
                self._refused.setdefault(name, []).extend(renamed)


def _taker(said: Sequence[OperatorVerdict], wanted: str | None) -> str | None:
    """Who takes a group: the accelerator that is wanted, or else the first that accepts."""
    names = [entry.accelerator for entry in said if entry.accepted]
    if wanted is not None:
        return wanted if wanted in names else None
    return names[0] if names else None


def _of_part(said: OperatorVerdict, name: str, group: Group, graph: Graph) -> OperatorVerdict:
    """What was said to a group, about one of its operators."""
    if name == group.name:
        return said
    reason = f"part of {group.kind} '{group.name}'" if said.accepted else said.reason
    return replace(said, layer=name, kind=graph.nodes[name].kind, reason=reason)


def _elements(node: Node) -> tuple[int, int]:
    """Elements an operator reads and writes."""
    written = prod(node.output_shape)
    if node.kind in ("average_pool", "max_pool"):
        kernel = node.attrs["kernel"]
        assert isinstance(kernel, tuple)
        return written * prod(kernel), written
    return sum(prod(shape) for shape in node.input_shapes), written


def _placed(said: Sequence[OperatorVerdict], wanted: str | None, binding: bool) -> str:
    """Where an operator of these verdicts goes."""
    if wanted == CPU:
        return CPU
    for verdict in said:
        if verdict.accelerator != wanted:
            continue
        if verdict.accepted:
            return wanted
        if binding:
            raise PolicyError(
                f"'{wanted}' cannot take the layer as it was written: {verdict.reason}",
                where=f"layer '{verdict.layer}'",
                hint=f"its rule: {verdict.rule}",
            )
    return next((verdict.accelerator for verdict in said if verdict.accepted), CPU)


def _home(
    node: Node,
    nodes: Sequence[Node],
    placement: Mapping[str, str],
    families: Mapping[str, str],
) -> str | None:
    """The family of accelerators into whose region a conversion can be absorbed.

    All who read it must be there, and what it reads must come from outside.
    """
    if node.kind != "convert" or placement[node.name] != CPU or not has_table(node.attrs):
        return None
    homes = {families.get(placement[other.name]) for other in nodes if node.name in other.inputs}
    outside = all(placement.get(name, CPU) == CPU for name in node.inputs)
    if len(homes) != 1 or not outside:
        return None
    return homes.pop()


def _channels_first(nodes: Iterable[Node]) -> frozenset[str]:
    """The tensors that are maps with their channels first: no matrices of rows of channels."""
    return frozenset(
        tensor.name
        for node in nodes
        if node.scaled is not None
        for tensor in (*node.scaled.inputs, node.scaled.output)
        if tensor.layout == "NCHW"
    )


def _judge(
    node: Node, soc: Soc, accelerator: Accelerator, turned: Container[str]
) -> OperatorVerdict:
    if node.layer is None:
        return OperatorVerdict(
            node.name, node.kind, accelerator.name, False,
            f"no pattern describes {node.kind}",
        )  # fmt: skip
    matrices = () if node.scaled is not None else turned
    return _verdict(node.layer, node.kind, soc, accelerator, matrices)


def _verdict(
    layer: Layer, kind: str, soc: Soc, accelerator: Accelerator, turned: Container[str]
) -> OperatorVerdict:
    """What an accelerator says; a layer of matrices is refused where a tensor is in ``turned``."""
    verdict = accelerator.judge(layer, soc)
    if isinstance(verdict, Refused):
        return OperatorVerdict(
            layer.name, kind, accelerator.name, False, verdict.reason, verdict.rule
        )
    odd = [tensor.name for tensor in (*layer.inputs, layer.output) if tensor.name in turned]
    if odd:
        reason = f"tensor '{odd[0]}' has its channels first"
        return OperatorVerdict(layer.name, kind, accelerator.name, False, reason)
    return OperatorVerdict(layer.name, kind, accelerator.name, True)
