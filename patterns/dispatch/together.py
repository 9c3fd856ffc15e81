"""Settling all operators of a graph: groups that can be taken together are offered first.

Planning before retargeting and dispatch after it both use this.  They decide differently about an
offer, which is their `Judge`; that of dispatch applies accelerators' rules to operators as written
(`Rules`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from byoc_dory.errors import PolicyError
from byoc_dory.layers import Add as AddLayer
from byoc_dory.layers import (
    Concatenation,
    Interleaving,
    Layer,
    MultiHeadAttention,
    Padding,
    Repetition,
    Reshaping,
    SameScale,
    Slicing,
    Tensor,
)
from byoc_dory.soc.rules import fits_budget
from byoc_dory.verdict import CPU, OperatorVerdict, Refused
from patterns.dispatch.cached import cached_attention_around
from patterns.dispatch.groups import Group, combination_at, pair_at
from patterns.dispatch.heads import is_arranged
from patterns.dispatch.mha import NoAttention, attention_around
from patterns.op import Work
from patterns.ops.add import Add
from patterns.ops.integer.rescale import Rescale
from patterns.ops.pulp.ita import ItaActivation
from patterns.reading.building import layouts_of
from patterns.relax_op import ComposedOp, compositions

if TYPE_CHECKING:
    from byoc_dory.soc.base import Accelerator, Soc
    from patterns.reading.graph import Graph
    from patterns.reading.node import Node


_MOVES = Concatenation | Interleaving | Padding | Repetition | Reshaping | Slicing


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


class Rules:
    """Decides by the rules: dispatch's implementation of `patterns.dispatch.together.Judge`.

    Args:
        graph: all operators.
        soc: SoC passed to the rules.
        accelerators: accelerators in order of preference.
        missed: parts of the graph that look like attention but do not form a layer.
        wanted: operator -> planned place.
        binding: operators of ``wanted`` that must not run elsewhere.
        l1_budget: bytes of L1 that may be used; None for all.
        refused: operators that no accelerator gets whatever its rules say, with the reason.

    Attributes:
        formed: the groups that an accelerator took.
        verdicts: the accelerators' answers to an operator, by its name.
    """

    def __init__(
        self,
        graph: Graph,
        soc: Soc,
        accelerators: Sequence[Accelerator],
        missed: Sequence[NoAttention],
        wanted: Mapping[str, str],
        binding: Container[str],
        l1_budget: int | None = None,
        refused: Mapping[str, str] | None = None,
    ) -> None:
        self.formed: list[Group] = []
        self.verdicts: dict[str, list[OperatorVerdict]] = {}
        self._graph = graph
        self._soc = soc
        self._accelerators = accelerators
        self._wanted = wanted
        self._binding = binding
        self._l1_budget = l1_budget
        self._refused_anyway = refused or {}
        self._turned = _channels_first(graph.in_order)
        self._turned_maps = _maps_of_channels_first(graph.in_order)
        self._forms = {cls for cls, _ in compositions({type(node.op) for node in graph.in_order})}
        self._refused = {
            entry.softmax: [
                OperatorVerdict(
                    accelerator.name,
                    False,
                    f"attention: {entry.reason}",
                    layer=entry.softmax,
                    kind="mha",
                )  # fmt: skip
                for accelerator in accelerators
            ]
            for entry in missed
        }

    def together(self, group: Group) -> dict[str, str]:
        """Return the accelerator that takes a group, for all its operators; empty if none does."""
        said = [self._of_group(group, entry) for entry in self._accelerators]
        place = _taker(said, self._wanted.get(group.name))
        if place is None:
            self._note(group, said)
            return {}
        self.formed.append(group)
        for name in group.parts:
            self.verdicts[name] = [_of_part(entry, name, group, self._graph) for entry in said]
        return dict.fromkeys(group.parts, place)

    def _of_group(self, group: Group, accelerator: Accelerator) -> OperatorVerdict:
        """Return an accelerator's verdict about a group, whose operators it may take one by one."""
        said = _verdict(self._soc, accelerator, group.layer, group.kind, self._turned)
        if not said.accepted:
            return said
        fitting = fits_budget(self._soc, accelerator, group.layer, self._l1_budget)
        if isinstance(fitting, Refused):
            return replace(said, accepted=False, reason=fitting.reason)
        return said

    def alone(self, nodes: Sequence[Node]) -> dict[str, str]:
        """Return each operator's wanted place, or else the first accelerator that accepts it.

        Raises:
            PolicyError: an operator that must run on an accelerator is refused by it.
        """
        places = {}
        for node in nodes:
            said = [
                self._of_operator(as_seen(node, self._soc, entry), entry)
                for entry in self._accelerators
            ]
            said = self.verdicts[node.name] = self._with_refusals(node, said)
            wanted = self._wanted.get(node.name)
            places[node.name] = _placed(said, wanted, node.name in self._binding)
        self._join_moves(nodes, places)
        return places

    def _join_moves(self, nodes: Sequence[Node], places: dict[str, str]) -> None:
        """Give moves of elements to an accelerator only together with all that read them."""
        homes = {entry.name: entry for entry in self._accelerators if entry.scheme.keeps}
        for node in reversed(nodes) if homes else ():
            home = homes.get(places[node.name])
            layer = as_seen(node, self._soc, home).layer
            if home is None or not isinstance(layer, _MOVES):
                continue
            readers = self._graph.read_by(node.name)
            if readers and all(places.get(each.name) == home.name for each in readers):
                continue
            places[node.name] = CPU
            self.verdicts[node.name] = [
                replace(said, accepted=False, reason="not all that read it run there")
                if said.accelerator == home.name
                else said
                for said in self.verdicts[node.name]
            ]

    def _of_operator(self, node: Node, accelerator: Accelerator) -> OperatorVerdict:
        """Return an accelerator's verdict about an operator, which patterns must find to take."""
        op = node.op
        if node.name in self._refused_anyway:
            reason = self._refused_anyway[node.name]
            return OperatorVerdict(accelerator.name, False, reason, layer=node.name, kind=node.kind)
        is_found = not isinstance(op, ComposedOp) or (op.form or type(op)) in self._forms
        if node.layer is None or not is_found:
            what = f"{node.kind}{op.special}"
            reason = accelerator.obstacles.get(what, f"no pattern for {what}")
            return OperatorVerdict(accelerator.name, False, reason, layer=node.name, kind=node.kind)
        matrices = () if node.scaled is not None else self._turned
        if isinstance(node.layer, SameScale):
            # Only what moves elements along any axis depends on their order.
            moves = isinstance(node.layer, Concatenation | Reshaping | Slicing)
            matrices = self._turned_maps if moves else ()
        return _verdict(self._soc, accelerator, node.layer, node.kind, matrices)

    def _with_refusals(self, node: Node, said: list[OperatorVerdict]) -> list[OperatorVerdict]:
        """Return an operator's verdicts, with those of the refused groups that it belongs to.

        For an operator without a pattern of its own, only the latter are informative.
        """
        refusals = self._refused.get(node.name, [])
        return refusals if node.layer is None and refusals else [*said, *refusals]

    def _note(self, group: Group, said: Sequence[OperatorVerdict]) -> None:
        refusals = [entry for entry in said if not entry.accepted]
        if isinstance(group.layer, MultiHeadAttention):
            count = group.layer.attention.heads
            heads = f"attention of {count} head{'s' if count > 1 else ''}"
            refusals = [replace(entry, reason=f"{heads}: {entry.reason}") for entry in refusals]
        for name in group.parts:
            node = self._graph.nodes[name]
            if name == group.name or (node.layer is None and not is_arranged(node)):
                renamed = [replace(entry, layer=name) for entry in refusals]
                self._refused.setdefault(name, []).extend(renamed)


def as_seen(node: Node, soc: Soc, accelerator: Accelerator | None) -> Node:
    """Return an operator in the form in which it is offered to an accelerator.

    A sum of matrices is offered as a sum of vectors, except to accelerators that store matrices row
    by row, whose cores share the rows.  Operators that are not retargeted are offered only to
    accelerators that compute in the source's numbers, and averages to cores that know them.
    """
    layer = node.layer
    if layer is None and accelerator is not None:
        kept = node.op.kept_layer(node.name, node.read, node.result)
        if kept is not None and accelerator.scheme.takes_kept(kept):
            return replace(node, layer=kept)
    if accelerator is None or not isinstance(layer, AddLayer):
        return node
    if len(node.output_shape) == 4 or len(layer.output.shape) == 1:
        return node
    if accelerator.layout(soc).keeps_rows:
        return node

    def vector(tensor: Tensor) -> Tensor:
        return replace(tensor, shape=(tensor.elements,), layout="C")

    flat = replace(layer, inputs=tuple(map(vector, layer.inputs)), output=vector(layer.output))
    return replace(node, layer=flat)


def _taker(said: Sequence[OperatorVerdict], wanted: str | None) -> str | None:
    """Return the accelerator that takes a group: the wanted one, or else the first that accepts."""
    names = [entry.accelerator for entry in said if entry.accepted]
    if wanted is not None:
        return wanted if wanted in names else None
    return names[0] if names else None


def _of_part(said: OperatorVerdict, name: str, group: Group, graph: Graph) -> OperatorVerdict:
    """Return a group's verdict as one about one of its operators."""
    if name == group.name:
        return said
    reason = f"part of {group.kind} '{group.name}'" if said.accepted else said.reason
    return replace(said, layer=name, kind=graph.nodes[name].kind, reason=reason)


def _placed(said: Sequence[OperatorVerdict], wanted: str | None, binding: bool) -> str:
    """Return the place of an operator with these verdicts."""
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


def _channels_first(nodes: Iterable[Node]) -> frozenset[str]:
    """The tensors that are maps with channels first, which are not matrices of channel rows."""
    return frozenset(
        tensor.name
        for node in nodes
        if node.scaled is not None
        for tensor in (*node.scaled.inputs, node.scaled.output)
        if tensor.layout == "NCHW"
    )


def _maps_of_channels_first(nodes: Iterable[Node]) -> frozenset[str]:
    """Return the maps with channels first, but those whose elements are in one order anyway."""
    shapes = {name: kind.shape for node in nodes for name, kind in node.read}
    shapes |= {node.output: node.output_shape for node in nodes}
    layouts = layouts_of(tuple(nodes))
    return frozenset(
        name
        for name, shape in shapes.items()
        if layouts.get(name) != "NHWC" and len(shape) == 4 and sum(size > 1 for size in shape) > 1
        if name in layouts
    )


def _verdict(
    soc: Soc, accelerator: Accelerator, layer: Layer, kind: str, turned: Container[str]
) -> OperatorVerdict:
    """Return an accelerator's verdict; matrix layers with a tensor in ``turned`` are refused."""
    accepted = OperatorVerdict(accelerator.name, True, layer=layer.name, kind=kind)
    verdict = accelerator.judge(soc, layer)
    if isinstance(verdict, Refused):
        return replace(accepted, accepted=False, reason=verdict.reason, rule=verdict.rule)
    odd = [tensor.name for tensor in (*layer.inputs, layer.output) if tensor.name in turned]
    if odd:
        reason = f"tensor '{odd[0]}' has its channels first"
        return replace(accepted, accepted=False, reason=reason)
    return accepted
