"""Placement: choosing a core for each layer by its shapes, before retargeting.

The cores of a SoC may differ in their arithmetic, so the choice changes the results: it is a
*plan*.  Each layer of the source is offered to each accelerator in the form it would be retargeted
to (`htvm.placement.offers`), checked, estimated if the policy needs estimates, and placed.
Retargeting then writes the layers in their cores' forms, and
`patterns.dispatch.dispatching.dispatch` checks the layers as written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from byoc_dory.errors import PolicyError, TilingError
from byoc_dory.layers import Convolution, Dense, Layer
from byoc_dory.soc.schemes import all_keep, all_multiply
from byoc_dory.verdict import CPU
from htvm.placement.offers import Offers, is_rewritable, rewritten_offers
from htvm.policy import POLICIES, Candidate, LayerInfo, check_policy, info_of
from patterns.dispatch.together import settle, together_in
from patterns.ops.moves.pad import Pad

if TYPE_CHECKING:
    from byoc_dory.cost import Cost
    from byoc_dory.soc.base import Target
    from htvm.policy import Decide, Policy
    from htvm.rewriting.rewrites import Rewrite
    from patterns.dispatch.groups import Group
    from patterns.reading.graph import Graph
    from patterns.reading.node import Node


@dataclass(frozen=True, eq=False)
class Placement:
    """The plan of which core runs each layer.

    Attributes:
        policy: name of the policy that decided, ``"a function"`` or ``"a table"``.
        places: layer -> accelerator or ``"cpu"``, in execution order; operators that an accelerator
            takes together all have its name.
        candidates: layer -> the candidates offered to the policy, in the order of the accelerators,
            the CPU last; a layer of several operators has the name of the last one.
        binding: layers placed by the user; they must run there.
        final: whether the model's layers are executed without retargeting.
        rewrites: layer -> how it is rewritten, for layers that their accelerator takes only so.
        groups: layers that consist of several operators -> their names in execution order; the last
            one is the layer's name.
    """

    policy: str
    places: Mapping[str, str]
    candidates: Mapping[str, tuple[Candidate, ...]]
    binding: frozenset[str] = frozenset()
    final: bool = False
    rewrites: Mapping[str, Rewrite] = field(default_factory=dict[str, "Rewrite"])
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


def place(
    graph: Graph,
    target: Target,
    cost: Cost,
    policy: Policy | None = None,
    *,
    rewrites: bool = True,
) -> Placement:
    """Plan which core runs each layer of a model.

    Args:
        graph: operators of the source model.
        target: the target whose accelerators are considered.
        cost: cycles on the target's SoC, with the options of the tiler.
        policy: name, function or table; the target's own by default.  Groups of operators that an
            accelerator takes together (an attention, a product and its activation) are placed
            first, under the name of the last operator; if the CPU is chosen, their operators are
            placed one by one.
        rewrites: whether layers are also offered as other operators that compute the same (see
            `htvm.rewriting`).

    Raises:
        PolicyError: there is no such policy, or it names an unknown layer or accelerator, or an
            accelerator that cannot take the layer.
        TilingError: the policy needs estimates, and no tile of a layer fits.
    """
    chosen = target.policy if policy is None else policy
    check_policy(chosen)
    final = _is_final(graph, target)
    groups = together_in(graph).groups if target.accelerators else ()
    asked = Offers(target, cost, final=final, rewrites=rewrites)
    judge = _Planner(graph, target, asked, groups, chosen, final, rewrites)
    places = settle(graph, groups, judge)
    name, binding = "a function", frozenset(places)
    if isinstance(chosen, str):
        name, binding = chosen, frozenset()
    elif isinstance(chosen, Mapping):
        name, binding = "a table", frozenset(chosen)
    chosen_rewrites = {
        layer: judge.rewrites[layer, where]
        for layer, where in places.items()
        if (layer, where) in judge.rewrites
    }
    return Placement(name, places, judge.offers, binding, final, chosen_rewrites, judge.formed)


class _Planner:
    """Decides by shapes and a policy: the plan's `patterns.dispatch.together.Judge`.

    Attributes:
        offers: layer -> its candidates, for layers that the policy can choose a core for.
        rewrites: (layer, accelerator) -> the rewrite with which it takes the layer.
        formed: layers that consist of several operators -> their names.
    """

    def __init__(
        self,
        graph: Graph,
        target: Target,
        asked: Offers,
        groups: Sequence[Group],
        chosen: Policy,
        final: bool,
        rewrites: bool,
    ) -> None:
        estimates = callable(chosen) or "latency" in (chosen, target.policy)
        self._layers = _layers(graph.in_order, target)
        candidates = {
            name: asked.candidates(layer, estimates) for name, layer in self._layers.items()
        }
        self.formed: dict[str, tuple[str, ...]] = {}
        self.rewrites: dict[tuple[str, str], Rewrite] = {}
        for name, offered in candidates.items() if rewrites else ():
            if any(map(is_rewritable, offered)):
                node = graph.nodes[name]
                candidates[name], found = rewritten_offers(node, offered, asked, graph)
                self.rewrites |= {(name, core): rewrite for core, rewrite in found.items()}
        # For matrix layers, the policy is asked only if an accelerator accepts.
        self.offers = {
            name: offered
            for name, offered in candidates.items()
            if not self._layers[name].of_matrices or _is_taken(offered)
        }
        self._together = {
            group: offered
            for group in groups
            if _is_taken(offered := _together(asked, group, estimates))
        }
        if isinstance(chosen, Mapping):
            _check_layers(chosen, [*self.offers, *(group.name for group in self._together)])
        self._chosen = chosen
        self._decide = _decider(chosen, target.policy, final)

    def together(self, group: Group) -> dict[str, str]:
        """Return the place of all operators of a group; empty if they are placed one by one."""
        candidates = self._together.get(group)
        is_layer = group.name in self.offers
        if candidates is None or (is_layer and _is_of_one(self._chosen, group, candidates)):
            return {}
        where = self._decide(info_of(group.layer), candidates)
        if where == CPU and is_layer:
            return {}
        if where != CPU:
            self.formed[group.name] = group.parts
            for name in group.parts:
                self.offers.pop(name, None)
        self.offers[group.name] = candidates
        return {group.name: CPU} if where == CPU else dict.fromkeys(group.parts, where)

    def alone(self, nodes: Sequence[Node]) -> dict[str, str]:
        """Return the place of each layer that the policy can choose a core for."""
        names = [node.name for node in nodes if node.name in self.offers]
        infos = _infos([self._layers[name] for name in names])
        return {name: self._decide(infos[name], self.offers[name]) for name in names}


def _together(asked: Offers, group: Group, estimates: bool) -> tuple[Candidate, ...]:
    """Return the answers to a group; none if L1 is too small, which may suffice for its parts."""
    try:
        return asked.candidates(group.layer, estimates)
    except TilingError:
        return ()


def _is_taken(candidates: Sequence[Candidate]) -> bool:
    """Whether an accelerator accepts."""
    return any(candidate.accepted for candidate in candidates if candidate.name != CPU)


def _is_of_one(chosen: Policy, group: Group, candidates: Sequence[Candidate]) -> bool:
    """Whether a table's entry means the last operator of a group, not the whole group."""
    if not isinstance(chosen, Mapping) or group.name not in chosen:
        return False
    return chosen[group.name] not in {c.name for c in candidates if c.accepted and c.name != CPU}


def _decider(chosen: Policy, default: str, final: bool) -> Decide:
    """Return the user's choice as a function whose answers are checked."""
    if isinstance(chosen, str):
        return _named(chosen, final)
    if isinstance(chosen, Mapping):
        otherwise = _named(default, final)

        def of_table(layer: LayerInfo, candidates: Sequence[Candidate]) -> str:
            if layer.name in chosen:
                return _checked(chosen[layer.name], layer.name, candidates, "the table")
            return otherwise(layer, candidates)

        return of_table
    return lambda layer, candidates: _checked(
        _ask(chosen, layer, candidates), layer.name, candidates, "it"
    )


def _is_final(graph: Graph, target: Target) -> bool:
    """Whether retargeting would leave every layer unchanged, judging by the layers' form."""
    schemes = [entry.scheme for entry in target.accelerators]
    # Layers in a ternary core's form cannot be retargeted again.
    return (
        graph.has_ternary or all_keep(schemes) or (all_multiply(schemes) and graph.has_mul_shifts)
    )


def _named(policy: str, final: bool) -> Decide:
    """Return a built-in policy; without retargeting, every core that accepts a layer is exact."""
    decide = POLICIES[policy]
    if not final or policy == "latency":
        return decide

    def first_accepting(layer: LayerInfo, candidates: Sequence[Candidate]) -> str:
        answer = decide(layer, candidates)
        if answer != CPU:
            return answer
        return next(candidate.name for candidate in candidates if candidate.accepted)

    return first_accepting


# ------------------------------------------------------------------------------ layers


def _layers(nodes: Sequence[Node], target: Target) -> dict[str, Layer]:
    """Return the layers as they will be after retargeting, which merges paddings into them."""
    pads = {node.name: (node.inputs[0], node.op) for node in nodes if isinstance(node.op, Pad)}
    layers = {node.name: _offered(node, target) for node in nodes}
    return {name: _behind_pad(each, pads) for name, each in layers.items() if each is not None}


def _offered(node: Node, target: Target) -> Layer | None:
    """Return the layer of an operator, also if it is not retargeted and a core takes it so."""
    if node.layer is not None:
        return node.layer
    kept = node.op.kept_layer(node.name, node.read, node.result)
    schemes = [entry.scheme for entry in target.accelerators if not entry.scheme.keeps]
    return kept if kept and any(scheme.takes_kept(kept) for scheme in schemes) else None


def _behind_pad(layer: Layer, pads: Mapping[str, tuple[str, Pad]]) -> Layer:
    source = layer.inputs[0]
    if source.name not in pads or not isinstance(layer, Convolution) or any(layer.pad):
        return layer
    name, pad = pads[source.name]
    top, left, bottom, right = pad.padding
    channels, iy, ix = source.shape
    inner = (channels, iy - top - bottom, ix - left - right)
    inputs = (replace(source, name=name, shape=inner),)
    return replace(layer, inputs=inputs, pad=(top, left, bottom, right))


def _infos(layers: Sequence[Layer]) -> dict[str, LayerInfo]:
    convolutions = [
        layer.name for layer in layers if isinstance(layer, Convolution) and not layer.depthwise
    ]
    products = convolutions or [layer.name for layer in layers if isinstance(layer, Dense)]
    border = {*products[:1], *products[-1:]}
    return {
        layer.name: info_of(layer, border=layer.name in border, product=layer.name in products)
        for layer in layers
    }


# ------------------------------------------------------------------------------ the user's own


def _ask(policy: Callable[..., str] | Decide, info: LayerInfo, offers: Sequence[Candidate]) -> str:
    try:
        answer = policy(info, offers)
    except Exception as error:
        raise PolicyError(
            f"the policy failed: {type(error).__name__}: {error}",
            where=f"layer '{info.name}'",
            hint="it is called with a LayerInfo and a tuple of Candidates, and names one of them",
        ) from error
    if not isinstance(answer, str):
        raise PolicyError(
            f"the policy answered {answer!r}",
            where=f"layer '{info.name}'",
            hint=f"answer one of {', '.join(offer.name for offer in offers)}",
        )
    return answer


def _check_layers(table: Mapping[str, str], known: Collection[str]) -> None:
    for name in table:
        if name not in known:
            raise PolicyError(
                f"there is no layer {name!r}",
                where="option 'policy'",
                hint=f"layers that can be placed: {', '.join(known) or 'none'}",
            )


def _checked(answer: str, layer: str, offers: Sequence[Candidate], who: str) -> str:
    """Return the answer if it names a candidate that takes the layer; raise otherwise."""
    for offer in offers:
        if offer.name == answer:
            if offer.accepted:
                return answer
            raise PolicyError(
                f"'{answer}' cannot take the layer: {offer.reason}",
                where=f"layer '{layer}', by {who}",
                hint=f"its rule: {offer.rule}",
            )
    raise PolicyError(
        f"there is no accelerator {answer!r} on this target",
        where=f"layer '{layer}', by {who}",
        hint=f"one of {', '.join(offer.name for offer in offers)}",
    )
