"""`fit`: whether a model fits a target, memory by memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byoc_dory.errors import TilingError
from byoc_dory.options import TilingOptions
from byoc_dory.soc.registry import resolve
from byoc_dory.tiling.shortage import shortage_of
from byoc_dory.verdict import CPU
from htvm.build_options import BuildOptions
from htvm.compiled import Compiled
from htvm.model import Model
from htvm.pipeline import compile_model
from htvm.progress import Progress
from htvm.progress_bar import with_progress
from htvm.public import public
from htvm.stage_cache import StageCache
from htvm.tools.fitting.changes import changes_for_l1, changes_for_l2, nearest_first
from htvm.tools.fitting.levels import (
    kept_weights,
    l2_levels,
    layer_demands,
    layer_levels,
    weight_levels,
)
from htvm.tools.report.fit import Answer, Change, Fit, LayerDemand, Level

if TYPE_CHECKING:
    from tvm.ir import IRModule

    from byoc_dory.options import ScheduleKind
    from byoc_dory.soc.base import Soc, Target
    from byoc_dory.soc.cores import Host
    from htvm.firmware.toolchain import Compiler
    from htvm.policy import Policy

__all__ = ["fit"]


@public
@with_progress
def fit(
    model: Model | IRModule | str | Path,
    target: str | Target = "diana",
    *,
    policy: Policy | None = None,
    schedule: ScheduleKind | None = None,
    tiling: TilingOptions | None = None,
    l2_bytes: int | None = None,
    data: Any = None,
    cc: str | None = None,
    progress: Progress | None = None,
) -> Fit:
    """Return whether a model fits a target: per memory the demand, the limit, and what dominates.

    Everything is exact: the machine code is compiled and measured, also where it does not fit.
    Only where that is impossible, as for a SoC whose drivers are not written yet, is its size
    estimated from the generated C.  If the model does not fit, changes are tried, and the smallest
    one that makes it fit comes first.

    Args:
        model: a model from `htvm.load`, or anything `htvm.load` takes.
        target: one of `htvm.targets()`.
        policy: decides where a layer runs if several cores could run it, as for `htvm.build`.
        schedule: ``"published"``, ``"decoupled"`` or ``"overlapped"``; overrides that of
            ``tiling``.
        tiling: options of the tiler, including the L1 budget.
        l2_bytes: size of L2 in bytes, for targets whose L2 is adjustable.
        data: calibration inputs for retargeting, as for `htvm.build`.
        cc: a GCC for the target's core that compiles instead of ziglang's clang, as for
            `htvm.build`.
        progress: receives the stages of the work; by default a bar on a terminal
            and in a notebook, if it takes a while.

    Raises:
        ModelError, UnsupportedError, TargetError, PolicyError: as for `htvm.build`.
        TilingError: the smallest tile of a layer exceeds all of the target's L1.
        ToolchainError: ``cc`` is no compiler for the core, or it failed.
    """
    from htvm.firmware.user_compiler import user_compiler

    soc = resolve(target, l2_bytes=l2_bytes).soc
    compiler = None if cc is None else user_compiler(cc, soc)
    progress = progress or Progress()
    options = BuildOptions(
        tiling=_scheduled(tiling or TilingOptions(), schedule), l2_bytes=l2_bytes, policy=policy
    )
    planner = _Planner(model, data, progress, compiler, soc.host)
    compiled, demands, levels = planner.plan(target, options)
    found = Fit(
        network=compiled.source.name,
        target=compiled.target.name,
        schedule=options.tiling.schedule if compiled.target.accelerators else "",
        levels=levels,
        layers=demands,
        refused=_refused(compiled),
        weights=kept_weights(compiled),
    )
    if found.fits != "no":
        return found
    with progress.stage("looking for changes"):
        changes = _changes(compiled, found, planner)
    return replace(found, changes=nearest_first(changes))


def _scheduled(tiling: TilingOptions, schedule: ScheduleKind | None) -> TilingOptions:
    return tiling if schedule is None else replace(tiling, schedule=schedule)


class _Planner:
    """Compiles variants of one model up to their C; the model is loaded once."""

    def __init__(
        self,
        model: Model | IRModule | str | Path,
        data: Any,
        progress: Progress,
        compiler: Compiler | None,
        host: Host,
    ) -> None:
        self._compiler, self._host = compiler, host
        self._model = model
        self._data = data
        self._progress = progress

    def plan(
        self, target: str | Target, options: BuildOptions
    ) -> tuple[Compiled, tuple[LayerDemand, ...], tuple[Level, ...]]:
        """Compile, using all of L1 if the budget is too small for a layer."""
        budget = options.tiling.l1_budget
        try:
            compiled = self._compiled(target, options)
        except TilingError:
            if budget is None:
                raise
            whole = replace(options, tiling=replace(options.tiling, l1_budget=None))
            compiled = self._compiled(target, whole)
        demands = layer_demands(compiled, budget)
        with self._progress.stage("measuring the code"):
            program = l2_levels(compiled, self._compiler_for(compiled.target.soc))
        levels = (*layer_levels(compiled, demands), *weight_levels(compiled), *program)
        return compiled, demands, levels

    def attempt(self, target: str, options: BuildOptions) -> tuple[Answer, tuple[Level, ...]]:
        """Return whether a variant fits, and its levels."""
        compiled, demands, levels = self.plan(target, options)
        return Fit(compiled.source.name, target, "", levels, demands).fits, levels

    def _compiler_for(self, soc: Soc) -> Compiler | None:
        """Return the user's compiler, if it is for this core; other targets have ziglang's."""
        return self._compiler if soc.host == self._host else None

    def _compiled(self, target: str | Target, options: BuildOptions) -> Compiled:
        compiled = compile_model(
            self._model, target, options, data=self._data, progress=self._progress,
            cache=StageCache.of_user(),
        )  # fmt: skip
        self._model = compiled.source
        return compiled


def _changes(compiled: Compiled, fit_found: Fit, planner: _Planner) -> list[Change]:
    changes: list[Change] = []
    for level in fit_found.levels:
        if level.fits != "no":
            continue
        if level.memory in ("L2", "RAM", compiled.target.soc.code_memory):
            changes += changes_for_l2(compiled, level, planner.attempt)
        else:
            lacking = tuple(d.layer for d in fit_found.layers if d.l1_least > d.l1_limit)
            changes += changes_for_l1(compiled, level, lacking, planner.attempt)
    return changes


def _refused(compiled: Compiled) -> tuple[tuple[str, str, str], ...]:
    """Return the layers on the CPU that an accelerator refuses only for lack of memory."""
    soc, changes = compiled.target.soc, []
    for name, offers in compiled.planned.candidates.items():
        on_cpu = compiled.dispatch.placement.get(name) == CPU
        if not on_cpu or name not in compiled.dispatch.layers:
            continue
        for offer in offers:
            if offer.accepted or "fits" not in offer.rule:
                continue
            accelerator = soc.accelerator(offer.name)
            form = accelerator.scheme.form_of(compiled.dispatch.layers[name])
            lacking = shortage_of(accelerator.problem(soc, form, compiled.options.tiling))
            if lacking is not None and lacking.error().what == offer.reason:
                changes.append((name, offer.name, offer.reason))
    return tuple(changes)
