"""Predicted against simulated cycles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from htvm.tools.report.data import LayerRow


@dataclass(frozen=True)
class Accuracy:
    """Errors of the predicted cycles, as fractions of the simulated cycles.

    Attributes:
        steps: number of steps with both a prediction and simulated cycles.
        median: median of the absolute errors.
        worst: name of the step with the largest error.
        worst_error: the error of that step, positive if the prediction is too high.
    """

    steps: int
    median: float
    worst: str
    worst_error: float


def error_of(row: LayerRow) -> float | None:
    """Return the prediction's error as a fraction of the simulated cycles; None without either."""
    if row.predicted_cycles is None or not row.cycles:
        return None
    return row.predicted_cycles / row.cycles - 1


def accuracy_of(rows: Sequence[LayerRow]) -> Accuracy | None:
    """The accuracy over all steps predicted and simulated; None if there are no such steps."""
    errors = {
        index: error for index, row in enumerate(rows) if (error := error_of(row)) is not None
    }
    if not errors:
        return None
    worst = max(errors, key=lambda index: abs(errors[index]))
    return Accuracy(
        steps=len(errors),
        median=median(abs(error) for error in errors.values()),
        worst=rows[worst].label,
        worst_error=errors[worst],
    )


def accuracy_text(rows: Sequence[LayerRow]) -> str:
    """Return the accuracy in a few lines; empty if nothing can be compared.

    Steps on accelerators and the host's conversions for them are listed separately: tiles are
    chosen by the predictions of the former.
    """
    layers = [row for row in rows if row.kind == "layer"]
    others = [row for row in rows if row.kind != "layer"]
    parts = []
    for what, found in (
        ("layers on accelerators", accuracy_of(layers)),
        ("conversions", accuracy_of(others)),
    ):
        if found is not None:
            parts.append(
                f"  {what} ({found.steps}): median error {100 * found.median:.1f} %, "
                f"worst {found.worst} ({100 * found.worst_error:+.1f} %)"
            )
    return "\n".join(["predicted against simulated cycles:", *parts]) if parts else ""
