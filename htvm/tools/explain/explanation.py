"""The explanation of a build: where operators run, the accelerators' answers, and the cycles."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from byoc_dory.errors import TilingError
from byoc_dory.verdict import CPU
from htvm.errors import DefectError, HtvmError
from htvm.stage_cache import StageCache
from htvm.tools.explain.improvements import improvements
from htvm.tools.explain.step_costs import build_costs, one_core_cycles
from htvm.tools.report.explain import Explanation
from htvm.tools.report.verdicts import PLAIN, Numbers, Setting, VerdictRow

if TYPE_CHECKING:
    from collections.abc import Callable

    from byoc_dory.verdict import OperatorVerdict
    from htvm.build_options import BuildOptions
    from htvm.compiled import Compiled
    from htvm.tools.explain.step_costs import BuildCosts

    Compiler: TypeAlias = Callable[[BuildOptions], Compiled]


def explanation_of(
    compiled: Compiled,
    changes: int = 0,
    cache: StageCache | None = None,
    *,
    measure: bool = True,
    compile_with: Callable[[BuildOptions], Compiled] | None = None,
) -> Explanation:
    """Return where each operator runs, how each accelerator answered, and the cycles.

    With ``changes`` > 0, also return up to that many changes to the model that would gain most, and
    the settings that would be quicker (`htvm.tools.explain.explanation`).
    An explanation that ``cache`` keeps is not computed again.

    An accelerator's answer is about the layer alone, in the form in which retargeting would write
    it for this accelerator, even if it runs elsewhere.  Only if a planned accelerator refused the
    written layer is its answer about that layer.

    Args:
        compiled: the build.
        changes: largest number of changes to look for.
        cache: keeps explanations; they are computed again without.
        measure: whether to simulate the CPU's steps; if not, they are estimated.
        compile_with: compiles the same model for the same target with other options; without, no
            settings are tried.
    """
    cache = StageCache(None) if cache is None else cache
    costs = build_costs(compiled, measure=measure)
    tried = compile_with is not None
    key = cache.key(compiled.key, changes, costs, tried) if compiled.key else ""
    return cache.get(
        "explaining", key, lambda: _explanation(compiled, changes, costs, compile_with)
    )


def _explanation(
    compiled: Compiled,
    changes: int,
    costs: BuildCosts,
    compile_with: Callable[[BuildOptions], Compiled] | None,
) -> Explanation:
    dispatch = compiled.dispatch
    own_cycles = _own_cycles(costs)
    kernels = _kernels(compiled)
    rows = [
        VerdictRow(
            layer=name,
            op=dispatch.kinds[name],
            placed=place,
            offers=_offers(compiled, name),
            cpu_cycles=one_core_cycles(compiled, name),
            shape=dispatch.layers[name].sizes_text if name in dispatch.layers else "",
            source=compiled.source.sources.get(name, ""),
            rewritten=compiled.rewritten.get(name, ""),
            cycles=own_cycles[name][0] if name in own_cycles else None,
            basis=own_cycles[name][1] if name in own_cycles else "",
            kernel=kernels.get(name, "") if place == CPU else "",
        )
        for name, place in dispatch.placement.items()
    ]
    found = improvements(compiled, changes, costs) if changes else ()
    quicker = settings(compiled, costs, compile_with) if changes else ()
    counted = "cycles" if compiled.target.soc.host.platform == "rv32" else "instructions"
    changes_found = tuple(replace(entry, counted=counted) for entry in found)
    return Explanation(
        tuple(rows), changes_found, costs.total, costs.steps, costs.missing, counted, quicker,
        compiled.state.text, compiled.retargeted.report.clips, _in_turn(compiled),
    )  # fmt: skip


def _in_turn(compiled: Compiled) -> tuple[str, ...]:
    """Return why the layers of regions are computed one after another, and how many there are."""
    plans = [code.plan for code in compiled.regions.values() if code.plan is not None]
    layers: Counter[str] = Counter()
    for plan in plans:
        layers[plan.in_turn] += len(plan.layers)
    return tuple(f"{reason} ({number} layers)" for reason, number in layers.items() if reason)


def _own_cycles(costs: BuildCosts) -> dict[str, tuple[int, str]]:
    """Return layer -> its cycles and what they are based on."""
    basis = {name: step.basis for step in costs.steps if step.kind == CPU for name in step.layers}
    own: dict[str, tuple[int, str]] = {
        name: (cycles, basis[name]) for name, cycles in costs.layers.items()
    }
    for step in costs.steps:
        if step.kind == "layer" and step.cycles is not None:
            for name in step.layers:
                known = own[name][0] if name in own else 0
                own[name] = known + costs.shares.get(name, step.cycles), step.basis
    return own


def _kernels(compiled: Compiled) -> dict[str, str]:
    """Return how the loops of each operator on the CPU were made; a padding is not its layer's."""
    found: dict[str, str] = {}
    for kernel in compiled.cpu_kernels:
        said = f"{PLAIN}, {kernel.schedule}" if kernel.plain else kernel.schedule
        if kernel.operators != ("pad",):
            found.update(dict.fromkeys(kernel.layers, said))
    return found


def _offers(compiled: Compiled, name: str) -> tuple[OperatorVerdict, ...]:
    """Return the answers to an operator, one per accelerator of the target, with estimates."""
    verdicts = compiled.dispatch.verdicts
    return tuple(_offer(compiled, name, each) for each in verdicts if each.layer == name)


def _offer(compiled: Compiled, name: str, verdict: OperatorVerdict) -> OperatorVerdict:
    planned, where = compiled.planned, verdict.accelerator
    if verdict.kind != compiled.dispatch.kinds[name] or name not in planned.places:
        # The verdict is about a group of operators that contains this one.
        return verdict
    candidate = next(
        (offer for offer in planned.candidates.get(name, ()) if offer.accelerator == where), None
    )
    if candidate is None or (planned.places[name] == where and not verdict.accepted):
        return verdict
    if not candidate.accepted or candidate.rewrite:
        return candidate
    return replace(candidate, cycles=_estimate(compiled, name, where))


def _estimate(compiled: Compiled, name: str, where: str) -> int | None:
    """Return the cycles of the layer alone, for comparison; ``None`` if L1 is too small."""
    accelerator = compiled.target.soc.accelerator(where)
    layer = compiled.dispatch.layers[name]
    if not compiled.planned.final:
        layer = accelerator.scheme.form_of(layer)
    try:
        return compiled.cost.cycles_alone(accelerator, layer)
    except TilingError:
        return None


_POLICY = "latency"
# A setting that gains a smaller fraction of the cycles is not worth its line.
_WORTHWHILE = 0.01


def settings(
    compiled: Compiled, costs: BuildCosts, compile_with: Compiler | None
) -> tuple[Setting, ...]:
    """Return the settings that would be quicker.

    Today this is the policy by estimated cycles, on targets whose own is another one.  It is built
    up to its C, so that its cycles are predicted as those of the build are, and the loss of
    accuracy is measured on the same inputs.

    Args:
        compiled: the build.
        costs: of its steps.
        compile_with: compiles the same model for the same target with other options; nothing is
            tried without.
    """
    used = compiled.planned.policy
    if not compiled.target.accelerators or compiled.options.policy not in (None, used):
        return ()
    if used == _POLICY or costs.total is None or compile_with is None:
        return ()
    try:
        other = compile_with(replace(compiled.options, policy=_POLICY))
    except DefectError:
        raise
    except HtvmError:
        return ()  # it cannot be built
    if other.dispatch.placement == compiled.dispatch.placement:
        return ()
    # Like is compared with like: both measured, or both estimated.
    measured = any(step.basis == "measured" for step in costs.steps)
    cycles_after = build_costs(other, measure=measured).total
    if cycles_after is None or costs.total - cycles_after < _WORTHWHILE * costs.total:
        return ()
    before, places = compiled.dispatch.placement, other.dispatch.placement
    moved = tuple(name for name in places if places[name] != before.get(name))
    setting = Setting(
        f"--policy {_POLICY}", costs.total, cycles_after, moved, _numbers(compiled), _numbers(other)
    )
    return (setting,)


def _numbers(compiled: Compiled) -> Numbers:
    report = compiled.retargeted.report
    return Numbers(report.output_sqnr_db, report.agreement)
