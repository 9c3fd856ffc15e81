"""The explanation of a build: where operators run, the accelerators' answers, and the cycles."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from byoc_dory.errors import TilingError
from byoc_dory.host_cost import cpu_cycles, cpu_operator_cycles
from htvm.explain.improvements import improvements
from htvm.placement.offers import Estimator
from htvm.policy import CPU
from htvm.report.explain import Explanation, VerdictRow
from htvm.stage_cache import StageCache

if TYPE_CHECKING:
    from collections.abc import Sequence

    from byoc_dory.verdict import OperatorVerdict
    from htvm.compiled import Compiled

__all__ = ["explanation_of"]


def explanation_of(
    compiled: Compiled, changes: int = 0, cache: StageCache | None = None
) -> Explanation:
    """Return where each operator runs, how each accelerator answered, and estimated cycles.

    With ``changes`` > 0, also return up to that many changes to the model that would gain most.
    An explanation that ``cache`` keeps is not computed again.

    An accelerator's answer is about the layer alone, in the form in which retargeting would write
    it for this accelerator, even if it runs elsewhere.  Only if a planned accelerator refused the
    written layer is its answer about that layer.
    """
    cache = cache or StageCache(None)
    key = cache.key(compiled.key, changes) if compiled.key else ""
    return cache.get("explaining", key, lambda: _explanation(compiled, changes))


def _explanation(compiled: Compiled, changes: int) -> Explanation:
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
    """Predicted cycles of the whole model; ``None`` if an operator on the CPU has no estimate."""
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
    """The accelerators' answers to each operator of a build, with estimates."""

    def __init__(self, compiled: Compiled) -> None:
        self._compiled = compiled
        self._estimator = Estimator(compiled.target.soc, compiled.options.tiling)

    def of(self, name: str) -> tuple[OperatorVerdict, ...]:
        """Return one answer per accelerator of the target."""
        return tuple(
            self._offer(name, verdict)
            for verdict in self._compiled.dispatch.verdicts
            if verdict.layer == name
        )

    def _offer(self, name: str, verdict: OperatorVerdict) -> OperatorVerdict:
        planned, where = self._compiled.planned, verdict.accelerator
        if verdict.kind != self._compiled.dispatch.kinds[name] or name not in planned.places:
            # The verdict is about a group of operators that contains this one.
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
        """Return the cycles of the layer alone, for comparison; ``None`` if L1 is too small."""
        accelerator = self._compiled.target.soc.accelerator(where)
        layer = self._compiled.dispatch.layers[name]
        if not self._compiled.planned.final:
            layer = accelerator.scheme.form_of(layer)
        try:
            return self._estimator.cycles(layer, accelerator)
        except TilingError:
            return None
