"""Where each operator runs, what each accelerator said to it, and what it costs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from byoc_dory.errors import TilingError
from byoc_dory.host_cost import cpu_cycles, cpu_operator_cycles
from htvm.explain.improvements import improvements
from htvm.placement.offers import Estimator
from htvm.policy import CPU
from htvm.report.explain import Explanation, VerdictRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from byoc_dory.verdict import OperatorVerdict
    from htvm.compiled import Compiled

__all__ = ["explanation_of"]


def explanation_of(compiled: Compiled, changes: int = 0) -> Explanation:
    """Return where each operator runs, what each accelerator said, and estimated cycles.

    With ``changes``, also so many changes to the model that would gain most.

    An accelerator's answer is about the layer alone as it would be written for it, whoever runs it;
    only one that was to run the layer and then refused what was written answers about that.
    """
    dispatch = compiled.dispatch
    offers = _Offers(compiled)
    rows = [
        VerdictRow(
            layer=name,
            op=dispatch.kinds[name],
            placed=place,
            offers=offers.of(name),
            cpu_cycles=_cpu_cycles(compiled, name),
            shape=dispatch.layers[name].sizes_text if name in dispatch.layers else "",
            source=compiled.source.sources.get(name, ""),
        )
        for name, place in dispatch.placement.items()
    ]
    found = improvements(compiled, changes) if changes else ()
    return Explanation(tuple(rows), found, _total(compiled, rows))


def _total(compiled: Compiled, rows: Sequence[VerdictRow]) -> int | None:
    """Predicted cycles of everything; ``None`` where an operator on the CPU has no estimate."""
    total = sum(step.predicted_cycles for step in compiled.program.steps)
    for row in rows:
        if row.placed == CPU and row.layer not in compiled.dispatch.absorbed:
            if row.cpu_cycles is None:
                return None
            total += row.cpu_cycles
    return total


def _cpu_cycles(compiled: Compiled, name: str) -> int | None:
    dispatch, soc = compiled.dispatch, compiled.target.soc
    if name in dispatch.layers:
        return cpu_cycles(dispatch.layers[name], soc)
    return cpu_operator_cycles(dispatch.works[name], *dispatch.elements[name], soc)


class _Offers:
    """What the accelerators said to each operator of a build, with estimates."""

    def __init__(self, compiled: Compiled) -> None:
        self._compiled = compiled
        self._estimator = Estimator(compiled.target.soc, compiled.options.tiling)

    def of(self, name: str) -> tuple[OperatorVerdict, ...]:
        """One per accelerator of the target."""
        return tuple(
            self._offer(name, verdict)
            for verdict in self._compiled.dispatch.verdicts
            if verdict.layer == name
        )

    def _offer(self, name: str, verdict: OperatorVerdict) -> OperatorVerdict:
        planned, where = self._compiled.planned, verdict.accelerator
        if verdict.kind != self._compiled.dispatch.kinds[name] or name not in planned.places:
            # About operators that were offered together, of which this is one.
            return verdict
        candidate = next(
            (offer for offer in planned.candidates.get(name, ()) if offer.accelerator == where),
            None,
        )
        if candidate is None or (planned.places[name] == where and not verdict.accepted):
            return verdict
        if not candidate.accepted:
            return candidate
        return replace(candidate, cycles=self._estimate(name, where))

    def _estimate(self, name: str, where: str) -> int | None:
        """Cycles of the layer alone, so that candidates compare; ``None`` where L1 is too small."""
        accelerator = self._compiled.target.soc.accelerator(where)
        layer = self._compiled.dispatch.layers[name]
        if not self._compiled.planned.final:
            layer = accelerator.scheme.form_of(layer)
        try:
            return self._estimator.cycles(layer, accelerator)
        except TilingError:
            return None
