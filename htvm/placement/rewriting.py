"""Offers of rewritten layers to accelerators that refuse them as they are."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from byoc_dory.soc.schemes import TernaryScheme
from htvm.rewriting.filters import filter_of
from htvm.rewriting.known import REWRITES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from byoc_dory.soc.base import Accelerator, Target
    from htvm.placement.offers import Offers
    from htvm.policy import Candidate
    from htvm.rewriting.filters import Rewritten
    from htvm.rewriting.rewrite import Rewrite
    from patterns.reading.graph import Graph
    from patterns.reading.node import Node

__all__ = ["Rewriting"]


class Rewriting:
    """Looks for rewrites with which accelerators take layers that they refuse.

    A core of another arithmetic than the CPU's (ternary weights) is not asked: there a layer's
    passes are part of its definition, and a rewritten one would compute something else.

    Args:
        target: the target whose accelerators are asked.
        asked: the answers of its accelerators to layers.
        graph: all operators of the source.

    Attributes:
        found: (layer, accelerator) -> the rewrite with which it takes the layer.
    """

    def __init__(self, target: Target, asked: Offers, graph: Graph) -> None:
        self._target = target
        self._asked = asked
        self._graph = graph
        self.found: dict[tuple[str, str], Rewrite] = {}

    def offered(self, node: Node, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """Return the candidates for a layer; those that take it rewritten accept it.

        They do so only if that is quicker than the layer on the CPU, by predicted cycles.
        """
        it = filter_of(node, self._graph, symmetric=True)
        refused = [offer for offer in candidates if not offer.accepted]
        if it is None or not refused or node.layer is None:
            return tuple(candidates)
        limit = self._asked.cpu(node.layer)
        written = [(rewrite, done) for rewrite in REWRITES if (done := rewrite.of(it)) is not None]
        return tuple(
            offer if offer.accepted else self._improved(node.name, offer, written, limit)
            for offer in candidates
        )

    def _improved(
        self,
        name: str,
        offer: Candidate,
        written: Sequence[tuple[Rewrite, Rewritten]],
        limit: int,
    ) -> Candidate:
        """Return an accelerator's offer for the rewritten layer, if it is quicker than the CPU."""
        accelerator = next(e for e in self._target.accelerators if e.name == offer.name)
        if isinstance(accelerator.scheme, TernaryScheme):
            return offer
        for rewrite, done in written:
            cycles = self._cycles(done, accelerator)
            if cycles is not None and cycles < limit:
                limit = cycles
                self.found[name, offer.name] = rewrite
                offer = replace(
                    offer, accepted=True, cycles=cycles, reason="", rule="", rewrite=done.says
                )
        return offer

    def _cycles(self, done: Rewritten, accelerator: Accelerator) -> int | None:
        """Return the cycles of all parts, conversions of layout included; None if refused."""
        host, total = self._asked.cost.host, 0
        layers = done.layers
        made = {part.name: part for part in done.parts}
        for part in done.parts:
            if part.name in layers:
                cycles = self._asked.accepted(accelerator, layers[part.name])
                # Its operands that other parts compute on the CPU are converted.
                total += sum(
                    host.conversion(prod(made[each].output_shape))
                    for each in part.inputs
                    if each in made and each not in layers
                )
            else:
                read = sum(map(prod, part.input_shapes))
                written = prod(part.output_shape)
                cycles = host.operator(part.op.work, read, written)
                total += sum(
                    host.conversion(prod(made[each].output_shape))
                    for each in part.inputs
                    if each in layers
                )
            if cycles is None:
                return None
            total += cycles
        return total
