"""Other settings of a build that are quicker, each tried by building it as far as its costs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from htvm.errors import DefectError, HtvmError
from htvm.tools.explain.step_costs import build_costs
from htvm.tools.report.verdicts import Numbers, Setting

if TYPE_CHECKING:
    from collections.abc import Callable

    from htvm.compiled import BuildOptions, Compiled
    from htvm.tools.explain.step_costs import BuildCosts

    Compiler: TypeAlias = Callable[[BuildOptions], Compiled]

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
    after = build_costs(other, measure=measured).total
    if after is None or costs.total - after < _WORTHWHILE * costs.total:
        return ()
    before, places = compiled.dispatch.placement, other.dispatch.placement
    moved = tuple(name for name in places if places[name] != before.get(name))
    found = Setting(
        f"--policy {_POLICY}", costs.total, after, moved, _numbers(compiled), _numbers(other)
    )
    return (found,)


def _numbers(compiled: Compiled) -> Numbers:
    report = compiled.retargeted.report
    return Numbers(report.output_sqnr_db, report.agreement)
