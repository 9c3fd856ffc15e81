"""`explore`: how tiles of layers and their cycles depend on objectives and budgets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from byoc_dory.cost import Cost
from byoc_dory.errors import ModelError, TargetError, UnsupportedError
from byoc_dory.explore import Sweep, Tried, explore_layer
from byoc_dory.layers import Layer
from byoc_dory.options import TilingOptions
from byoc_dory.pinning import plan_weights
from byoc_dory.soc.registry import resolve
from byoc_dory.verdict import Refused
from htvm.model import Model
from htvm.progress import Progress
from htvm.progress_bar import with_progress
from htvm.public import public
from htvm.tools.report.sweep import Exploration

if TYPE_CHECKING:
    from tvm.ir import IRModule

    from byoc_dory.soc.base import Accelerator, Target
    from byoc_dory.tiling import Objective
    from htvm.policy import Policy

_Item = TypeVar("_Item")
_Placed: TypeAlias = "list[tuple[Layer, Accelerator]]"


@public
@with_progress
def explore(
    what: Layer | Sequence[Layer] | Model | IRModule | str | Path,
    target: str | Target = "diana",
    *,
    objectives: Sequence[str | Objective] = (),
    alphas: Sequence[int] = (),
    betas: Mapping[str, Sequence[int]] | None = None,
    l1_budgets: Sequence[int] = (),
    tiling: TilingOptions | None = None,
    policy: Policy | None = None,
    progress: Progress | None = None,
) -> Exploration:
    """Tile layers under every combination of objective, weights and L1 budget.

    Nothing is compiled; cycles are predicted for each layer alone.  A budget that no tile of a
    layer fits becomes a row that says so.  Ctrl-C ends the sweep early with the results so far.

    Args:
        what: a `Layer` or several (no TVM needed), or a model as for `htvm.build`, whose
            accelerated layers are explored.
        target: one of `htvm.targets()`, or what `htvm.soc` returns.  Each accelerator that takes a
            layer is tried.
        objectives: names of the accelerators' objectives, ``"latency"``, or
            `byoc_dory.tiling.Objective`s; all of them by default.
        alphas: weights of a byte of L1 in use; those of the objectives by default.
        betas: weights to try by name of the heuristic; those of the objectives by default.
        l1_budgets: bytes of L1; the target's whole L1 by default.
        tiling: solver, schedule and limits (its objective and budget are ignored if these are
            swept).
        policy: decides where a model's layers run, as for `htvm.build`.
        progress: receives the layers as they are explored; by default a bar on a terminal
            and in a notebook, if it takes a while.

    Raises:
        PolicyError: the policy is invalid or cannot be followed.
        TargetError: an unknown target, objective or heuristic, or a bad number.
        UnsupportedError: no accelerator of the target takes a layer.
        ModelError: ``what`` is not a model.
    """
    progress = progress or Progress()
    place = resolve(target)
    if not place.accelerators:
        raise TargetError(
            "there is no accelerator to tile for",
            where=f"target '{target}'",
            hint="name a target with accelerators, such as diana.digital",
        )
    if not isinstance(tiling, TilingOptions | None):
        raise TargetError(
            f"a {type(tiling).__name__} is not a choice of tiling",
            where="option 'tiling'",
            hint="give byoc_dory.options.TilingOptions(...)",
        )
    if not isinstance(betas, Mapping | None):
        raise TargetError(
            f"a {type(betas).__name__} is not a choice of betas",
            where="option 'betas'",
            hint="give a dict from heuristic to weights",
        )
    sweep = Sweep(
        objectives=_several_values("objectives", objectives),
        alphas=_several_values("alphas", alphas),
        betas={name: _several_values(f"betas['{name}']", w) for name, w in (betas or {}).items()},
        l1_budgets=_several_values("l1_budgets", l1_budgets),
        options=tiling or TilingOptions(),
    )
    _check_sweep(sweep, place)
    cost = Cost(place.soc, sweep.options)
    placed = _placed_layers(what, place, cost, policy, progress)
    for accelerator in dict.fromkeys(home for _, home in placed):
        # Report errors before the first hour of a sweep, not after.
        sweep.variants(accelerator)
    rows: list[Tried] = []
    interrupted = not _run(placed, cost, sweep, rows, progress)
    return Exploration(tuple(rows), place.soc.clock_hz, interrupted, sweep.options.schedule)


def _check_sweep(sweep: Sweep, target: Target) -> None:
    """Refuse a sweep that no accelerator of the target can make, before anything is opened."""
    refused = []
    for accelerator in target.accelerators:
        try:
            sweep.variants(accelerator)
        except TargetError as error:
            refused.append(error)
    if refused and len(refused) == len(target.accelerators):
        raise refused[0]


def _several_values(option: str, values: Iterable[_Item]) -> tuple[_Item, ...]:
    """Return the items of an option; refuse text, which is iterable but not a list."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TargetError(
            f"{option} cannot be {values!r}", where=f"option '{option}'", hint="give a list"
        )
    return tuple(values)


def _run(placed: _Placed, cost: Cost, sweep: Sweep, rows: list[Tried], progress: Progress) -> bool:
    """Fill ``rows``; return whether the sweep was completed.  Equal layers are tiled once."""
    known: dict[tuple[object, ...], list[Tried]] = {}
    try:
        for number, (layer, accelerator) in enumerate(placed):
            key = cost.cost_key(accelerator, layer)
            name = f"exploring {layer.name} on {accelerator.name} ({number + 1} of {len(placed)})"
            with progress.stage(name, (number + 1, len(placed))):
                if key in known:
                    rows += [_renamed_row(row, layer.name) for row in known[key]]
                    continue
                begin = len(rows)
                for row in explore_layer(cost.soc, accelerator, layer, sweep):
                    rows.append(row)
                known[key] = rows[begin:]
    except KeyboardInterrupt:
        return False
    return True


def _renamed_row(row: Tried, name: str) -> Tried:
    lacking = row.shortage
    return replace(
        row, layer=name, shortage=None if lacking is None else replace(lacking, layer=name)
    )


def _placed_layers(
    what: Layer | Sequence[Layer] | Model | IRModule | str | Path,
    target: Target,
    cost: Cost,
    policy: Policy | None,
    progress: Progress,
) -> _Placed:
    """Return the layers to explore, each with an accelerator that takes it."""
    from htvm.opening import opened

    if isinstance(what, Layer):
        return _accepting(what, target)
    if isinstance(what, (list, tuple)):
        return [pair for layer in what for pair in _accepting(layer, target)]
    with progress.stage("importing"):
        source = opened(what)
    return _of_model(source, target, cost, policy, progress)


def _accepting(layer: object, target: Target) -> _Placed:
    if not isinstance(layer, Layer):
        raise ModelError(
            f"a {type(layer).__name__} is not a layer",
            where="what to explore",
            hint="give byoc_dory.layers.layer.Layer objects, or a model",
        )
    refusals = []
    accepting: _Placed = []
    for accelerator in target.accelerators:
        verdict = accelerator.judge(target.soc, layer)
        if isinstance(verdict, Refused):
            refusals.append(f"{accelerator.name}: {verdict.reason} (rule: {verdict.rule})")
        else:
            accepting.append((layer, accelerator))
    if not accepting:
        raise UnsupportedError(
            "no accelerator takes the layer",
            where=f"layer '{layer.name}' on target '{target.name}'",
            hint="; ".join(refusals),
        )
    return accepting


def _of_model(
    source: Model, target: Target, cost: Cost, policy: Policy | None, progress: Progress
) -> _Placed:
    """Return the layers of a model, placed as in a build."""
    from htvm.placement.plan import place
    from htvm.quantization.as_planned import as_planned
    from patterns.dispatch.dispatching import dispatch

    with progress.stage("placing layers"):
        planned = place(source.graph, target, cost, policy)
    with progress.stage("retargeting"):
        executed = as_planned(source, planned, target)
    placed = dispatch(
        executed.retargeted.model.graph,
        target.soc,
        target.accelerators,
        executed.places,
        executed.binding,
        cost.options.l1_budget,
    )
    homes = {accelerator.name: accelerator for accelerator in target.accelerators}
    placed_layers = [
        (placed.layers[name], homes[home])
        for name, home in placed.placement.items()
        if home in homes and name in placed.layers
    ]
    kept = plan_weights(placed_layers, cost).homes
    return [
        (layer, home.keeping(kept[layer.name]) if layer.name in kept else home)
        for layer, home in placed_layers
    ]
