"""The noise of a choice of scales as a sum of terms, each of which is known for all units.

A term is the noise of rounding and clipping one tensor, or that of one layer's weights as its
input or its output sees it.  It depends on one tie's unit, for which it is tabulated, and on little
else: on how the adds are executed, on the layer's shift and on the steps at its other end.  It is
computed again only if one of these has changed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from byoc_dory.layers import Add, Array, Weighted
from htvm.quantization.annotated import passes
from htvm.quantization.chosen import COARSEST, FINEST, Chosen
from htvm.quantization.noise import NoiseModel
from htvm.quantization.ties import Tie
from patterns.reading.node import Node

EXHAUSTIVE = 64
"""Terms of a tie up to which all of it is considered for each choice around it.

A tie of more terms (sums or concatenations of dozens of layers) makes retargeting quadratic
otherwise; there only as many terms are considered, the nearest ones.
"""

WIDE = np.arange(FINEST, COARSEST + 1)
"""All exponents."""

_REMEMBERED = 8  # tables of a term for the last values of what it depends on


@dataclass(frozen=True)
class Term:
    """Noise that depends on the steps of a tensor.

    Attributes:
        tensor: the tensor.
        layer: name of the layer whose weights are rounded, which computes or reads the tensor;
            empty: the tensor itself is rounded and clipped.
    """

    tensor: str
    layer: str = ""


@dataclass(frozen=True, eq=False)
class Scope:
    """A part of a tie, whose noise is considered.

    Attributes:
        tie: the tie.
        lanes: the lanes that are moved, int64 ``[D]``.
        terms: the terms, each with its rows for lanes among these, and their places among them.
        is_held: whether the lanes are not moved after all: too many terms depend on them.
    """

    tie: Tie
    lanes: Array
    terms: Sequence[tuple[Term, Array | slice, Array | slice]]
    is_held: bool = False


class Terms:
    """The terms of a network's noise.

    Args:
        chosen: what the terms depend on.
        noise: error model of the source.

    Attributes:
        computed: number of tables computed so far.
        added: number of tables added up so far.
    """

    def __init__(self, chosen: Chosen, noise: NoiseModel) -> None:
        self.chosen = chosen
        self.noise = noise
        self.computed = self.added = 0
        self._terms_by_tie = {tie: self._terms_of(tie.members) for tie in chosen.ties.distinct}
        self._touching: dict[Tie, list[list[Term]]] = {}
        self._whole: dict[Tie, Scope] = {}
        self._tables: dict[Term, dict[Hashable, tuple[object, Array]]] = {}

    def _terms_of(self, tensors: Iterable[str]) -> list[Term]:
        """Return all terms that depend on the steps of tensors."""
        net, terms = self.chosen.net, []
        for name in tensors:
            terms.append(Term(name))
            around = (net.producer(name), *net.graph.read_by(name))
            # The cost of ternary weights does not depend on steps, which their scales absorb.
            terms += [
                Term(name, node.name)
                for node in around
                if node is not None and isinstance(node.scaled, Weighted) and net.core(node) is None
            ]
        return terms

    # -------------------------------------------------------------------- scopes

    def whole_tie(self, tie: Tie) -> Scope:
        """Return all of a tie."""
        if tie not in self._whole:
            self._whole[tie] = self._scope(tie, np.arange(tie.lanes), self._terms_by_tie[tie])
        return self._whole[tie]

    def is_large(self, tie: Tie) -> bool:
        """Whether a tie has more than `EXHAUSTIVE` terms."""
        return len(self._terms_by_tie[tie]) > EXHAUSTIVE

    def around_layer(self, node: Node) -> list[Scope]:
        """Return what a layer's shift is chosen by: the ties of its input and its output.

        Of a large tie only the lanes of these tensors and the terms that touch them; if even these
        are too many, the lanes are held, and only the layer's own terms count.
        """
        names_by_tie: dict[Tie, list[str]] = {}
        for name in (node.inputs[0], node.name):
            names_by_tie.setdefault(self.chosen.ties.tie_of[name], []).append(name)
        return [self._layer_scope(tie, names, node) for tie, names in names_by_tie.items()]

    def _layer_scope(self, tie: Tie, tensors: Sequence[str], node: Node) -> Scope:
        if not self.is_large(tie):
            return self.whole_tie(tie)
        lanes = np.unique(np.concatenate([tie.members[name] for name in tensors]))
        terms: dict[Term, None] = {}
        for lane in lanes:
            terms |= dict.fromkeys(self._touching_lane(tie, int(lane)))
            if len(terms) > EXHAUSTIVE:
                layer_terms = [Term(name, node.name) for name in tensors]
                return self._scope(tie, lanes, layer_terms, is_held=True)
        return self._scope(tie, lanes, list(terms))

    def _touching_lane(self, tie: Tie, lane: int) -> list[Term]:
        if tie not in self._touching:
            touching: list[list[Term]] = [[] for _ in range(tie.lanes)]
            for term in self._terms_by_tie[tie]:
                for each in np.unique(tie.members[term.tensor]):
                    touching[each].append(term)
            self._touching[tie] = touching
        return self._touching[tie][lane]

    def around_add(self, node: Node) -> Scope:
        """Return what the execution of an add is chosen by: its tie.

        Of a large tie only the terms that the fewest adds, pools and moves are between.
        """
        tie = self.chosen.ties.tie_of[node.name]
        if not self.is_large(tie):
            return self.whole_tie(tie)
        net, terms = self.chosen.net, list[Term]()
        nearby = dict.fromkeys((node.name, *node.inputs))
        to_visit = list(nearby)
        for name in to_visit:
            terms += self._terms_of([name])
            if len(terms) > EXHAUSTIVE:
                break
            maker = net.producer(name)
            behind = maker.inputs if maker is not None and maker.name in tie.members else ()
            ahead = [reader.name for reader in net.graph.read_by(name)]
            for neighbour in (*behind, *ahead):
                if (
                    neighbour in tie.members
                    and neighbour not in nearby
                    and self._are_tied(name, neighbour)
                ):
                    nearby[neighbour] = None
                    to_visit.append(neighbour)
        return self._scope(tie, np.arange(tie.lanes), terms[:EXHAUSTIVE])

    def _are_tied(self, first: str, second: str) -> bool:
        """Whether an add or an operator that passes scales through is what is between tensors."""
        net = self.chosen.net
        for name, other in ((first, second), (second, first)):
            node = net.producer(name)
            if node is not None and other in node.inputs:
                return passes(node) or isinstance(node.scaled, Add)
        return False

    def _scope(
        self, tie: Tie, lanes: Array, terms: Sequence[Term], *, is_held: bool = False
    ) -> Scope:
        is_whole = len(lanes) == tie.lanes
        place = np.full(tie.lanes, -1)
        place[lanes] = np.arange(len(lanes))
        parts: list[tuple[Term, Array | slice, Array | slice]] = []
        for term in terms:
            term_lanes = np.unique(tie.members[term.tensor])
            rows: Array | slice = slice(None)
            places: Array | slice = place[term_lanes]
            if not is_whole:
                rows = np.flatnonzero(place[term_lanes] >= 0)
                places = place[term_lanes[rows]]
            if np.array_equal(places, np.arange(len(lanes))):
                places = slice(None)
            parts.append((term, rows, places))
        return Scope(tie, lanes, parts, is_held)

    # -------------------------------------------------------------------- noise

    def noise_of(self, scope: Scope) -> Array:
        """Return the noise ``[D, E]`` of a scope's terms for every exponent of its lanes."""
        total = np.zeros((len(scope.lanes), len(WIDE)))
        for term, rows, places in scope.terms:
            total[places] += self._table(term)[rows]
        self.added += len(scope.terms)
        return total

    def _table(self, term: Term) -> Array:
        """Return the noise ``[lanes of the tensor, E]`` of a term for every exponent."""
        chosen, name = self.chosen, term.tensor
        key: tuple[Hashable, ...]
        depends: object = None
        if not term.layer:
            key = chosen.factor(name), chosen.bounds(name), chosen.adds.get(name)
        else:
            other = (
                chosen.net.graph.nodes[term.layer].inputs[0] if term.layer == name else term.layer
            )
            depends = chosen.exponent[chosen.ties.tie_of[other]]
            shift = chosen.shift[term.layer]
            # Arrays are told apart by identity: `depends` is kept, so that its number is its own.
            key = chosen.factor(name), chosen.factor(other), shift, id(depends)
        tables = self._tables.setdefault(term, {})
        if key not in tables:
            if len(tables) >= _REMEMBERED:
                tables.clear()
            tables[key] = depends, self._by_lane(name, self._compute_table(term))
        return tables[key][1]

    def _compute_table(self, term: Term) -> Array:
        """Return the noise ``[C, E]`` of a term for every exponent, by channel."""
        self.computed += 1
        chosen, noise, name = self.chosen, self.noise, term.tensor
        tie = chosen.ties.tie_of[name]
        step = chosen.step(name, np.broadcast_to(WIDE, (tie.lanes, len(WIDE))))
        if term.layer:
            node = chosen.net.graph.nodes[term.layer]
            shift = chosen.shift[term.layer]
            if term.layer == name:
                return noise.row_noise(node, shift, chosen.step(node.inputs[0]), step)
            return noise.column_noise(node, shift, step, chosen.step(node.name))
        choice = chosen.adds.get(name)
        rounding = noise.rounding(name, step, choice, chosen.input_shift.get(name, 0))
        maker = chosen.net.producer(name)
        clipping = np.zeros(step.shape)
        if maker is None or not passes(maker):
            clipping = noise.clipping(name, step, *chosen.bounds(name))
        return noise.activation_noise(name, rounding, clipping)

    def _by_lane(self, name: str, table: Array) -> Array:
        """Return the sums ``[lanes of the tensor, E]`` of a table's channels, lanes in order."""
        lanes = self.chosen.ties.tie_of[name].members[name]
        if len(lanes) < 2 or (np.diff(lanes) > 0).all():
            return table
        distinct_lanes, places = np.unique(lanes, return_inverse=True)
        total = np.zeros((len(distinct_lanes), len(WIDE)))
        np.add.at(total, places, table)
        return total
