"""The model that is executed: rewritten and retargeted as planned."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from htvm.errors import UnsupportedError
from htvm.quantization.report import unchanged
from htvm.quantization.retarget import Retargeted, retarget
from htvm.rewriting.apply import Applied, apply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from byoc_dory.soc.base import Target
    from htvm.model import Model
    from htvm.placement.plan import Placement
    from htvm.quantization.samples import Data
    from htvm.rewriting.filters import Rewritten
    from htvm.stage_cache import StageCache

_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Executed:
    """The model to execute, and where its operators are to run.

    Attributes:
        retargeted: the model in the scheme of the target's accelerators, with rewritten layers.
        places: operator -> planned accelerator or ``"cpu"``, for operators that a core may take.
        binding: operators that must run where they are planned.
        rewritten: rewritten layer -> what is computed instead.
    """

    retargeted: Retargeted
    places: Mapping[str, str]
    binding: frozenset[str]
    rewritten: Mapping[str, str]


def as_planned(
    source: Model,
    planned: Placement,
    target: Target,
    *,
    data: Data | None = None,
    cache: StageCache | None = None,
) -> Executed:
    """Rewrite and retarget a model as planned.

    Layers are rewritten after retargeting, so that the numbers are those of the network without
    rewrites; except those that only exist in the source's numbers otherwise (`Rewrite.early`).  A
    layer is not rewritten if its accelerator refuses the result, and none is in a model that cannot
    be retargeted.

    Args:
        source: the model as imported.
        planned: the plan for the target.
        target: the target.
        data, cache: as for `htvm.quantization.retarget.retarget`.

    Raises:
        UnsupportedError: the model cannot be retargeted, and the user named an accelerator.
        InputError: ``data`` do not fit the model's inputs.
    """
    homes = {entry.name: entry for entry in target.accelerators}

    def agrees(name: str, found: Rewritten) -> bool:
        home = homes[planned.places[name]]
        return all(home.judge(target.soc, layer) for layer in found.layers.values())

    early = {name: found for name, found in planned.rewrites.items() if found.early}
    late_rewrites = {name: found for name, found in planned.rewrites.items() if not found.early}
    first = apply(source, early)
    places = dict(planned.places)
    places |= {part: places[first.origins[part]] for part in first.layers}
    binding = set(planned.binding)
    retargeted = _retarget_or_keep(first.model, target, places, data, bool(binding), cache)
    if retargeted.report.impossible:
        # The host computes every layer, at its best as it is.
        first, retargeted = Applied(source), replace(retargeted, model=source)
    second = apply(retargeted.model, late_rewrites, agrees)
    places |= {part: places[second.origins[part]] for part in second.layers}
    for done in (first, second):
        # Only their parts can be required to run somewhere.
        parts = {part for part in done.layers if done.origins[part] in planned.binding}
        binding = (binding - set(done.says)) | parts
    return Executed(
        replace(retargeted, model=second.model),
        places,
        frozenset(binding),
        {**first.says, **second.says},
    )


def _retarget_or_keep(
    model: Model,
    target: Target,
    places: Mapping[str, str],
    data: Data | None,
    binding: bool,
    cache: StageCache | None,
) -> Retargeted:
    """Retarget a model, or return it as it is, with the reason, if that is not possible.

    Layers that no accelerator takes in the source's numbers then run on the host, which computes
    all of them.  The reason is logged as a warning, and part of the report; but it is an error if
    ``binding``: the user asked for an accelerator by name.  A model of which no layer is placed on
    an accelerator is returned as it is, too.

    Raises:
        UnsupportedError: it cannot be retargeted, and ``binding``.
        InputError: the calibration data are invalid.
    """
    names = {accelerator.name for accelerator in target.accelerators}
    if names and places and not binding and not names & set(places.values()):
        # Other numbers would cost accuracy, and gain nothing.
        reason = "no layer of it is placed on an accelerator"
        return Retargeted(model, unchanged(model.name, reason))
    try:
        return retarget(model, target.accelerators, places=places, data=data, cache=cache)
    except UnsupportedError as error:
        if binding:
            raise
        # Where and what, without the hint, which is about giving other networks.
        reason = "; ".join(part for part in (error.what, error.where) if part)
    _log.warning(
        "%s keeps its numbers, and what needs others runs on the host: %s", model.name, reason
    )
    report = replace(unchanged(model.name, f"it cannot be: {reason}"), impossible=reason)
    return Retargeted(model, report)
