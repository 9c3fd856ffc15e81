"""Objectives by name: ``array``, ``latency``, or with weights ``array(alpha=2, long DMA=0)``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from byoc_dory.errors import TargetError
from byoc_dory.tiling.latency import LATENCY
from byoc_dory.tiling.objectives import Objective

_WEIGHTED = re.compile(r"([^()]+?)\s*\((.*)\)")
_ALPHA = "alpha"


def objective_named(text: str, known: Mapping[str, Objective], where: str) -> Objective | None:
    """Return an objective by name, with the weights given in brackets; None for latency.

    Args:
        text: name of an objective, alone or with weights as `objective_text` writes them.
        known: the accelerator's objectives by name.
        where: what the objectives belong to, for errors.

    Raises:
        TargetError: there is no such objective or heuristic, or a weight is no whole number.
    """
    found = _WEIGHTED.fullmatch(text.strip())
    name = found[1] if found else text.strip()
    if name == LATENCY and found is None:
        return None
    if name not in known:
        raise TargetError(
            f"there is no tiling objective '{text}'",
            where=where,
            hint=f"one of {', '.join([*known, LATENCY])}",
        )
    objective = known[name]
    return objective if found is None else _weighted(objective, found[2], where)


def objective_text(name: str, alpha: int | None, betas: Mapping[str, int]) -> str:
    """Return the name with its weights, as `objective_named` reads them; latency has none."""
    if alpha is None:
        return name
    weights = {_ALPHA: alpha, **betas}
    return f"{name}({', '.join(f'{key}={value}' for key, value in weights.items())})"


def _weighted(objective: Objective, text: str, where: str) -> Objective:
    terms = {term.name: term for term in objective.heuristics}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, _, value = part.rpartition("=")
        name = name.strip()
        if re.fullmatch(r"\s*-?\d{1,18}\s*", value) is None or name not in (_ALPHA, *terms):
            raise TargetError(
                f"{part!r} is no weight of objective '{objective.name}'",
                where=where,
                hint=f"NAME=NUMBER, with the names {', '.join([_ALPHA, *terms])}",
            )
        if name == _ALPHA:
            objective = replace(objective, alpha=int(value))
        else:
            terms[name] = replace(terms[name], weight=int(value))
    return replace(objective, heuristics=tuple(terms.values()))
