"""The designs of a sweep: full grids, random and Latin-hypercube samples of a grid, searches."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from byoc_dory.errors import TargetError
from byoc_dory.soc.numbers import adjustable, known_parameters, unknown
from byoc_dory.soc.registry import resolve, split_name
from htvm.shown import optional
from htvm.tools.sweeping.row import COLUMNS

if TYPE_CHECKING:
    from byoc_dory.soc.base import Target
    from byoc_dory.soc.parameters import Parameter, Value
    from htvm.tools.sweeping.row import Row


METHODS = ("grid", "random", "latin", "search")
_MOST = 1_000_000  # designs; the rows of larger sweeps would not fit memory


@dataclass(frozen=True)
class Axis:
    """One parameter and the values to try, without repetitions, in the order given."""

    parameter: Parameter
    values: tuple[Value, ...]

    def cell(self, row: Row) -> str:
        """Return the parameter's value in a row, as text."""
        return self.parameter.text(dict(row.values)[self.parameter.name])


@dataclass(frozen=True)
class Space:
    """Axes of a grid of designs around a target.

    Attributes:
        target: the target whose other parameters all designs share.
        axes: what is swept, in the order of the SoC's parameters and of its other numbers.
    """

    target: Target
    axes: tuple[Axis, ...]

    @property
    def size(self) -> int:
        """Number of designs in the full grid."""
        return math.prod(len(axis.values) for axis in self.axes)

    def design(self, levels: Sequence[int]) -> dict[str, Value]:
        """Return the values at the given level of each axis."""
        return {
            axis.parameter.name: axis.values[level]
            for axis, level in zip(self.axes, levels, strict=True)
        }

    def grid(self) -> Iterator[dict[str, Value]]:
        """Yield all designs; the last axis changes fastest."""
        for levels in itertools.product(*(range(len(axis.values)) for axis in self.axes)):
            yield self.design(levels)

    def random(self, samples: int, seed: int) -> Iterator[dict[str, Value]]:
        """Yield random designs, all different."""
        rng = np.random.default_rng(seed)
        for number in rng.choice(self.size, size=min(samples, self.size), replace=False):
            yield self.design(np.unravel_index(int(number), self._lengths))

    def latin(self, samples: int, seed: int) -> Iterator[dict[str, Value]]:
        """Yield a Latin hypercube of the levels (McKay et al. 1979).

        Each axis is cut into as many strata as there are samples, and every stratum is used once,
        so each level occurs equally often up to one.  Designs may repeat if there are few levels.
        """
        rng = np.random.default_rng(seed)
        strata = np.stack([rng.permutation(samples) for _ in self.axes], axis=1)
        places = (strata + rng.random(strata.shape)) / samples
        for place in places:
            yield self.design([int(at * n) for at, n in zip(place, self._lengths, strict=True)])

    def designs(self, method: str, samples: int | None, seed: int) -> list[dict[str, Value]]:
        """Return the designs of a method other than a search, in order, all different.

        Raises:
            TargetError: there are too many, or the number of samples is missing or not positive.
        """
        if method == "grid":
            if samples is not None:
                raise TargetError(
                    "a grid has no number of samples",
                    where="option 'samples'",
                    hint="leave it out, or give method='random' or 'latin'",
                )
            if self.size > _MOST:
                raise TargetError(
                    f"the grid has {self.size:,} designs",
                    where="grid",
                    hint="draw samples of it: method='random' or 'latin' with samples=N",
                )
            return list(self.grid())
        count = check_samples(samples)
        drawn = self.random(count, seed) if method == "random" else self.latin(count, seed)
        unique = {tuple(design.items()): design for design in drawn}
        return list(unique.values())

    @property
    def _lengths(self) -> tuple[int, ...]:
        return tuple(len(axis.values) for axis in self.axes)


def check_samples(samples: int | None) -> int:
    """Return the number of samples.

    Raises:
        TargetError: it is missing, or not a positive number below a million.
    """
    whole = isinstance(samples, int) and not isinstance(samples, bool)
    if samples is None or not whole or not 0 < samples <= _MOST:
        raise TargetError(
            f"{samples} is not a number of samples",
            where="option 'samples'",
            hint=f"give a number from 1 to {_MOST:,}",
        )
    return samples


def space_of(target: Target, grid: Mapping[str, object]) -> Space:
    """Return the space of a grid: lists of values (or one value) by name.

    Args:
        target: the target, possibly with values of parameters that are not swept.
        grid: values by name of a parameter, or of any number of the SoC's description
            (`byoc_dory.soc.numbers`).

    Raises:
        TargetError: a name is unknown, a figure's of the results, or has a value in the target's
            name, a list is empty, or a value is not possible, or refused by the description.
    """
    where = f"target '{target.name}'"
    if not isinstance(grid, Mapping) or not grid:
        raise TargetError(
            "there is nothing to sweep",
            where="grid",
            hint=f"give lists of values by name: {adjustable(target.soc)}",
        )
    known = {entry.name: entry for entry in known_parameters(target.soc)}
    _, fixed = split_name(target.name)
    for name in grid:
        if name not in known:
            raise unknown(target.soc, name, where)
        if name in COLUMNS:
            raise TargetError(
                f"the parameter {name!r} has the name of a column of the results",
                where=where,
                hint="give the SoC's parameter another name",
            )
        if name in fixed:
            raise TargetError(
                f"{name} is given twice: {fixed[name]}, and in the grid",
                where=where,
                hint="leave it out of the target's name, or of the grid",
            )
    axes = []
    for name, parameter in known.items():
        if name in grid:
            given = grid[name]
            several = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str)
            listed: list[object] = list(given) if several else [given]  # type: ignore[call-overload]
            values = [parameter.parse(value, where) for value in listed]
            if not values:
                raise TargetError(f"no values of {name}", where="grid", hint="give at least one")
            axes.append(Axis(parameter, tuple(dict.fromkeys(values))))
    space = Space(target, tuple(axes))
    _check_numbers(space)
    return space


def _check_numbers(space: Space) -> None:
    """Refuse values of numbers that the description refuses in every design.

    A declared parameter says itself which values are possible.
    """
    declared = {entry.name for entry in space.target.soc.parameters}
    for place, axis in enumerate(space.axes):
        if axis.parameter.name in declared:
            continue
        for level in range(len(axis.values)):
            levels = [range(len(each.values)) for each in space.axes]
            levels[place] = range(level, level + 1)
            refusal = None
            for chosen in itertools.islice(itertools.product(*levels), _TRIED):
                try:
                    resolve(space.target, parameters=space.design(chosen))
                    break
                except TargetError as error:
                    refusal = refusal or error
            else:
                raise refusal or TargetError("no design", where="grid")


_TRIED = 200  # designs that are looked at for one that takes a value


_FIGURES = ("cycles", "ms", "energy_uj", "area", "moved_bytes")
# Designs that are asked for before the first is told; independent of the number of processes, so
# that the search is the same on every machine.
_BATCH = 8


class Search:
    """Asks for designs, and is told what they are like.

    Args:
        space: the designs to choose from.
        samples: number of designs.
        seed: seed of the search.
        objectives: figures or swept numbers to minimise.

    Raises:
        TargetError: an objective is neither.
        DependencyError: optuna is not installed.
    """

    def __init__(self, space: Space, samples: int, seed: int, objectives: tuple[str, ...]) -> None:
        numbers = [
            axis.parameter.name
            for axis in space.axes
            if axis.parameter.kind in ("integer", "bytes", "number")
        ]
        for name in objectives or ("",):
            if name not in (*_FIGURES, *numbers):
                raise TargetError(
                    f"{name!r} cannot be minimised",
                    where="option 'objectives'",
                    hint=f"one or several of {', '.join((*_FIGURES, *numbers))}",
                )
        self.samples = samples
        self._space = space
        self._objectives = objectives
        self._optuna = optional("optuna", "searches", "search")
        self._optuna.logging.set_verbosity(self._optuna.logging.WARNING)
        sampler = self._optuna.samplers.NSGAIISampler(
            seed=seed, population_size=max(2, min(24, samples // 2))
        )
        self._study = self._optuna.create_study(
            directions=["minimize"] * len(objectives), sampler=sampler
        )
        self._trials: dict[int, Any] = {}

    def batches(self) -> Iterator[list[tuple[int, dict[str, Value]]]]:
        """Yield (number, values) of designs; all of a batch are told before the next one."""
        for first in range(0, self.samples, _BATCH):
            yield [
                (number, self._ask(number))
                for number in range(first, min(first + _BATCH, self.samples))
            ]

    def _ask(self, number: int) -> dict[str, Value]:
        trial = self._trials[number] = self._study.ask()
        levels = [
            trial.suggest_categorical(axis.parameter.name, list(range(len(axis.values))))
            if axis.parameter.kind in ("text", "switch")
            else trial.suggest_int(axis.parameter.name, 0, len(axis.values) - 1)
            for axis in self._space.axes
        ]
        return self._space.design(levels)

    def tell(self, number: int, rows: Sequence[Row]) -> None:
        """Tell the rows of a design, one for each network; one that is not ok counts as failed."""
        values = [self._value(name, rows) for name in self._objectives]
        if any(row.status != "ok" for row in rows) or None in values:
            self._study.tell(self._trials[number], state=self._optuna.trial.TrialState.FAIL)
        else:
            self._study.tell(self._trials[number], values)

    def _value(self, name: str, rows: Sequence[Row]) -> float | None:
        if name == "area" or name not in _FIGURES:
            found = rows[0].record[name]
            return None if found is None else float(found)
        each = [getattr(row, name) for row in rows]
        return None if None in each else float(sum(each))
