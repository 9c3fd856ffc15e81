"""Offers of rewritten layers to accelerators that refuse them as they are."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from htvm.placement.offers import is_rewritable
from htvm.rewriting.filters import filter_of
from htvm.rewriting.known import REWRITES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from byoc_dory.soc.base import Accelerator
    from htvm.placement.offers import Offers
    from htvm.policy import Candidate
    from htvm.rewriting.filters import Rewritten
    from htvm.rewriting.rewrite import Rewrite
    from patterns.reading.graph import Graph
    from patterns.reading.node import Node


def rewritten_offers(
    node: Node, candidates: Sequence[Candidate], asked: Offers, graph: Graph
) -> tuple[tuple[Candidate, ...], dict[str, Rewrite]]:
    """Return the candidates for a layer; those that take it rewritten accept it.

    They do so only if that is quicker than the layer on the CPU, by predicted cycles.

    Args:
        node: the operator of the layer.
        candidates: the accelerators' answers to the layer, and the CPU.
        asked: answers of accelerators to other layers.
        graph: all operators of the source.

    Returns:
        The candidates, and accelerator -> the rewrite with which it takes the layer.
    """
    found: dict[str, Rewrite] = {}
    it = filter_of(node, graph, symmetric=True)
    if it is None or node.layer is None:
        return tuple(candidates), found
    written = [(rewrite, done) for rewrite in REWRITES if (done := rewrite.of(it)) is not None]
    offers = []
    for offer in candidates:
        limit = asked.cpu(node.layer)
        for rewrite, done in written if is_rewritable(offer) else ():
            cycles = _cycles(asked, asked.accelerators[offer.name], done)
            if cycles is not None and cycles < limit:
                limit, found[offer.name] = cycles, rewrite
                offer = replace(
                    offer, accepted=True, cycles=cycles, reason="", rule="", rewrite=done.says
                )
        offers.append(offer)
    return tuple(offers), found


def _cycles(asked: Offers, accelerator: Accelerator, done: Rewritten) -> int | None:
    """Return the cycles of all parts, conversions of layout included; None if refused."""
    host, total = asked.cost.host, 0
    layers = done.layers
    made = {part.name: part for part in done.parts}
    for part in done.parts:
        if part.name in layers:
            cycles = asked.accepted(accelerator, layers[part.name])
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
