"""Offers: each accelerator's answer to a layer, and the predicted cycles there and on the CPU.

A layer is offered before it is retargeted, in the form that retargeting would write for the
accelerator (`NumberScheme.form_of`), with placeholder values for its numbers; accelerators that
refuse it are offered the layer rewritten.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from byoc_dory.errors import TilingError
from byoc_dory.layers import Pool
from byoc_dory.soc.rules import fits_budget
from byoc_dory.verdict import CPU, Refused
from htvm.policy import Candidate
from htvm.rewriting.filters import filter_of
from htvm.rewriting.rewrites import REWRITES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from byoc_dory.cost import Cost
    from byoc_dory.layers import Layer
    from byoc_dory.soc.base import Accelerator, Target
    from htvm.rewriting.filters import Rewritten
    from htvm.rewriting.rewrites import Rewrite
    from patterns.reading.graph import Graph
    from patterns.reading.node import Node


_OF_AVERAGES = "Averages are computed where a tile fits L1, and not under the published schedule."
_AS_IT_IS = "Without rewrites, and under the published schedule, layers are computed as they are."


class Offers:
    """The answers of a target's accelerators to layers.

    Args:
        target: the target whose accelerators answer.
        cost: cycles on accelerators that accept, and on the host.
        final: whether layers are offered unchanged; otherwise in the form retargeting would write.
        rewrites: whether an accelerator may compute something else with the same result.

    Attributes:
        accelerators: the accelerators by name.
        cost: as given.
    """

    def __init__(self, target: Target, cost: Cost, *, final: bool, rewrites: bool) -> None:
        self.accelerators = {entry.name: entry for entry in target.accelerators}
        self.cost = cost
        self._final = final
        self._otherwise = rewrites and cost.options.schedule != "published"

    def candidates(self, layer: Layer, estimates: bool) -> tuple[Candidate, ...]:
        """Return the answer of each accelerator, and the CPU as a candidate.

        Raises:
            TilingError: the layer would run on an accelerator if the options did not make L1 too
                small.
        """
        offers, errors = [], []
        for entry in self.accelerators.values():
            try:
                offers.append(self._offer(entry, layer, estimates))
            except TilingError as error:
                errors.append(error)
                offers.append(
                    replace(self._of(entry, layer), reason=error.what, rule="A tile fits L1.")
                )
        if errors and not any(offer.accepted for offer in offers):
            raise errors[0]
        cycles = self.cpu(layer) if estimates else None
        return (*offers, Candidate(CPU, True, cycles=cycles, layer=layer.name, kind=layer.op))

    def _offer(self, accelerator: Accelerator, layer: Layer, estimates: bool) -> Candidate:
        """Return one accelerator's answer; raise `TilingError` if no tile to estimate fits."""
        form = layer if self._final else accelerator.scheme.form_of(layer)
        verdict = accelerator.judge(self.cost.soc, form)
        said = self._of(accelerator, layer)
        if isinstance(verdict, Refused):
            return replace(said, reason=verdict.reason, rule=verdict.rule)
        instead = accelerator.instead(form)
        if instead and not self._otherwise:
            return replace(said, reason=f"it would compute {instead}", rule=_AS_IT_IS)
        obstacle = self._obstacle(accelerator, form)
        if obstacle:
            return replace(said, reason=obstacle, rule=_OF_AVERAGES)
        cycles = self.cost.cycles_alone(accelerator, form) if estimates else None
        return replace(said, accepted=True, cycles=cycles, rewrite=instead)

    def _obstacle(self, accelerator: Accelerator, layer: Layer) -> str:
        """Return why the options leave an average to the CPU; empty for none, and other layers."""
        options = self.cost.options
        if not isinstance(layer, Pool) or accelerator.scheme.keeps:
            return ""
        if options.schedule == "published":
            return "the schedule is the published one"
        fitting = fits_budget(self.cost.soc, accelerator, layer, options.l1_budget)
        return fitting.reason if isinstance(fitting, Refused) else ""

    @staticmethod
    def _of(accelerator: Accelerator, layer: Layer) -> Candidate:
        """Return a candidate without the accelerator's acceptance."""
        return Candidate(
            accelerator.name, False, layer=layer.name, kind=layer.op, scheme=accelerator.scheme.name
        )

    def accepted(self, accelerator: Accelerator, layer: Layer) -> int | None:
        """Return the cycles of a layer on an accelerator; ``None`` if it refuses it."""
        try:
            return self._offer(accelerator, layer, estimates=True).cycles
        except TilingError:
            return None

    def cpu(self, layer: Layer) -> int:
        """Return the cycles on the host, including layout conversions of the layer's tensors."""
        host = self.cost.host
        if not self.accelerators:
            return host.layer(layer)
        moved = sum(tensor.elements for tensor in (*layer.inputs, layer.output))
        return host.layer(layer) + host.conversion(moved)


def is_rewritable(offer: Candidate) -> bool:
    """Whether a refusing accelerator may be offered other operators that compute the layer.

    A core of another arithmetic than the CPU's (ternary weights) is not asked: there a layer's
    passes are part of its definition, and a rewritten one would compute something else.
    """
    return not offer.accepted and offer.scheme != "ternary"


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
        on_accelerator = part.name in layers
        if on_accelerator:
            cycles = asked.accepted(accelerator, layers[part.name])
        else:
            read, written = sum(map(prod, part.input_shapes)), prod(part.output_shape)
            cycles = host.operator(part.op.work, read, written)
        # Its operands that parts on the other side compute are converted.
        total += sum(
            host.conversion(prod(made[each].output_shape))
            for each in part.inputs
            if each in made and (each in layers) != on_accelerator
        )
        if cycles is None:
            return None
        total += cycles
    return total
