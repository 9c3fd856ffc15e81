"""`Search`: a multi-objective search over designs (optuna's NSGA-II)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from byoc_dory.errors import TargetError
from htvm.shown import optional

if TYPE_CHECKING:
    from byoc_dory.soc.parameters import Value
    from htvm.tools.sweeping.row import Row
    from htvm.tools.sweeping.space import Space

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
