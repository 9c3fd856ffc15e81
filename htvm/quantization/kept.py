"""Networks that cannot be written in an accelerator's numbers keep their own."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from byoc_dory.errors import UnsupportedError
from htvm.quantization.report import unchanged
from htvm.quantization.retarget import Retargeted, retarget

if TYPE_CHECKING:
    from byoc_dory.soc.base import Accelerator
    from htvm.model import Model
    from htvm.quantization.samples import Data
    from htvm.stage_cache import StageCache

__all__ = ["retarget_or_keep"]

_log = logging.getLogger(__name__)


def retarget_or_keep(
    model: Model,
    accelerators: Sequence[Accelerator],
    *,
    places: Mapping[str, str],
    data: Data | None = None,
    binding: bool = False,
    cache: StageCache | None = None,
) -> Retargeted:
    """Retarget a model, or return it as it is, with the reason, if that is not possible.

    Layers that no accelerator takes in the source's numbers then run on the host, which computes
    all of them.  The reason is logged as a warning, and part of the report.  A model of which no
    layer is placed on an accelerator is returned as it is, too.

    Args:
        model, accelerators, places, data, cache: as for `retarget`.
        binding: whether the user asked for an accelerator by name, so that a model that cannot be
            retargeted is an error.

    Raises:
        UnsupportedError: the model cannot be retargeted, and ``binding``.
        InputError: ``data`` do not fit the model's inputs.
    """
    names = {accelerator.name for accelerator in accelerators}
    if accelerators and places and not binding and not names & set(places.values()):
        # Other numbers would cost accuracy, and gain nothing.
        return Retargeted(
            model, unchanged(model.name, "no layer of it is placed on an accelerator")
        )
    try:
        return retarget(model, accelerators, places=places, data=data, cache=cache)
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
