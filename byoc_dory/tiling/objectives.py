"""The objectives of tiling: memory use plus named, weighted heuristics (HTVM paper Eq. 1).

Objectives have names: ``array``, ``latency``, or with weights ``array(alpha=2, long DMA=0)``.

An objective is ``alpha * (L1_w + L1_in + L1_out) + sum(beta_i * H_i)``, to be maximised.  Each
``H_i`` is one of a few *quantities* of a tile.  A quantity can be evaluated exactly (integers or
numpy arrays) and, in `byoc_dory.tiling.milp`, be written as a linear expression; weights are
integers, so objective values are exact and comparable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from byoc_dory.errors import TargetError
from byoc_dory.tiling.problem import Tile, TilingProblem

Dim: TypeAlias = Literal["k", "c", "y", "x", "iy", "ix"]

_AXES = ("k", "c", "y", "x")


def _dimension_of_tile(problem: TilingProblem, dim: Dim, tile: tuple[Any, Any, Any, Any]) -> Any:
    if dim == "iy":
        return problem.rows_in(tile[2])
    if dim == "ix":
        return problem.columns_read(tile[3])
    return tile[_AXES.index(dim)]


def _largest_dimension(problem: TilingProblem, dim: Dim) -> int:
    """Return the value of a dimension if nothing is tiled, which is its largest."""
    whole = problem.whole
    return {
        "k": whole.k, "c": whole.c, "y": whole.y, "x": whole.x,
        "iy": problem.window.iy, "ix": problem.window.ix,
    }[dim]  # fmt: skip


@dataclass(frozen=True)
class Size:
    """The size of a dimension of the tile."""

    dim: Dim

    def value(self, problem: TilingProblem, tile: tuple[Any, Any, Any, Any]) -> Any:
        """Return the quantity for a tile (k, c, y, x)."""
        return _dimension_of_tile(problem, self.dim, tile)

    def upper(self, problem: TilingProblem) -> int:
        """Return an upper bound over all tiles."""
        return _largest_dimension(problem, self.dim)


@dataclass(frozen=True)
class Fill:
    """``(size - 1) mod modulus``: how well a dimension fills the array (HTVM paper Eq. 3-4).

    With ``whole_is_full``, a dimension that is not tiled counts as filled: its remainder comes from
    the layer, and no tile could avoid it.
    """

    dim: Dim
    modulus: int
    whole_is_full: bool = False

    def value(self, problem: TilingProblem, tile: tuple[Any, Any, Any, Any]) -> Any:
        """Return the quantity for a tile (k, c, y, x)."""
        value = _dimension_of_tile(problem, self.dim, tile)
        fill = (value - 1) % self.modulus
        if self.whole_is_full:
            full = np.equal(value, _largest_dimension(problem, self.dim))
            fill = np.where(full, self.modulus - 1, fill)
        return fill

    def upper(self, problem: TilingProblem) -> int:
        """Return an upper bound over all tiles."""
        if self.whole_is_full:
            return self.modulus - 1
        return min(self.modulus, _largest_dimension(problem, self.dim)) - 1


@dataclass(frozen=True)
class Whole:
    """1 if none of the given dimensions is tiled, else 0."""

    dims: tuple[Literal["k", "c", "y", "x"], ...]

    def value(self, problem: TilingProblem, tile: tuple[Any, Any, Any, Any]) -> Any:
        """Return the quantity for a tile (k, c, y, x)."""
        result: Any = True
        for dim in self.dims:
            axis = _AXES.index(dim)
            result = result & np.equal(tile[axis], problem.axes[axis].size)
        return np.multiply(result, 1)

    def upper(self, problem: TilingProblem) -> int:
        """Return an upper bound over all tiles."""
        return 1


Quantity: TypeAlias = Size | Fill | Whole


@dataclass(frozen=True)
class Heuristic:
    """One named term of an objective.

    Attributes:
        name: short name for reports.
        quantity: the quantity that is rewarded.
        weight: beta of Eq. 1, in objective units per unit of the quantity.
        why: one sentence on its purpose.
        scope: ``"reducing"`` limits it to layers that sum over input channels (conv, dense),
            ``"channelwise"`` to those whose channels are independent (depthwise, add).
    """

    name: str
    quantity: Quantity
    weight: int
    why: str = ""
    scope: Literal["all", "reducing", "channelwise"] = "all"

    def applies(self, problem: TilingProblem) -> bool:
        """Whether the heuristic applies to this layer."""
        if self.scope == "all":
            return True
        return problem.channels_follow_k == (self.scope == "channelwise")


@dataclass(frozen=True)
class Objective:
    """A named objective: ``alpha`` per byte of L1 used, plus heuristics (HTVM paper Eq. 1)."""

    name: str
    heuristics: tuple[Heuristic, ...] = ()
    alpha: int = 1

    def terms(self, problem: TilingProblem) -> tuple[Heuristic, ...]:
        """Return the heuristics that apply to this layer."""
        return tuple(entry for entry in self.heuristics if entry.applies(problem))

    def value(self, problem: TilingProblem, k: Any, c: Any, y: Any, x: Any) -> Any:
        """Return the objective for a tile, or for arrays of tiles."""
        tile = (k, c, y, x)
        total = self.alpha * (
            problem.in_bytes(*tile) + problem.out_bytes(*tile) + problem.weight_bytes(*tile)
        )
        for heuristic in self.terms(problem):
            total = total + heuristic.weight * heuristic.quantity.value(problem, tile)
        return total

    def of(self, problem: TilingProblem, tile: Tile) -> int:
        """Return the exact objective for one tile."""
        return int(self.value(problem, tile.k, tile.c, tile.y, tile.x))

    def whole_is_optimal(self, problem: TilingProblem) -> bool:
        """Whether the whole layer, if it fits, is provably optimal.

        This holds if no term can be larger elsewhere: all weights are non-negative, memory grows
        with every dimension (only int32 partial sums break that), and each heuristic reaches its
        upper bound.  It also holds if a heuristic rewards the whole layer by more than all others
        together could gain elsewhere.
        """
        if self.alpha < 0 or problem.c.tiled:
            return False
        sizes = (problem.k.size, problem.c.size, problem.y.size, problem.x.size)
        could_gain = 0
        bonus = 0
        for heuristic in self.terms(problem):
            if heuristic.weight < 0:
                return False
            quantity = heuristic.quantity
            missing = quantity.upper(problem) - int(quantity.value(problem, sizes))
            could_gain += heuristic.weight * missing
            if isinstance(quantity, Whole) and set(quantity.dims) >= {"k", "y", "x"}:
                bonus += heuristic.weight
        return could_gain <= bonus if could_gain else True


_WEIGHTED = re.compile(r"([^()]+?)\s*\((.*)\)")
_ALPHA = "alpha"

LATENCY = "latency"
"""The name of the objective of fewest cycles."""


def objective_named(text: str, known: Mapping[str, Objective], where: str) -> Objective | None:
    """Return an objective by name, with the weights given in brackets; None for latency.

    Args:
        text: name of an objective, alone or with weights as `objective_text` writes them.
        known: the accelerator's objectives by name.
        where: what the objectives belong to, for errors.

    Raises:
        TargetError: there is no such objective or heuristic, or a weight is no whole number.
    """
    match = _WEIGHTED.fullmatch(text.strip())
    name = match[1] if match else text.strip()
    if name == LATENCY and match is None:
        return None
    if name not in known:
        raise TargetError(
            f"there is no tiling objective '{text}'",
            where=where,
            hint=f"one of {', '.join([*known, LATENCY])}",
        )
    objective = known[name]
    return objective if match is None else _with_weights(objective, match[2], where)


def objective_text(name: str, alpha: int | None, betas: Mapping[str, int]) -> str:
    """Return the name with its weights, as `objective_named` reads them; latency has none."""
    if alpha is None:
        return name
    weights = {_ALPHA: alpha, **betas}
    return f"{name}({', '.join(f'{key}={value}' for key, value in weights.items())})"


def _with_weights(objective: Objective, text: str, where: str) -> Objective:
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
