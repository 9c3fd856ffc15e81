"""What an explanation says units and layers cost, as figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htvm.errors import InputError
from htvm.tools.plots.bars import Bar, bar_figure
from htvm.tools.plots.colours import unit_classes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def units_figure(spent: Sequence[tuple[str, int]], units: Sequence[str], counted: str) -> Figure:
    """Draw the cycles of each unit, the most first.

    Args:
        spent: unit and cycles of each step.
        units: the SoC's units, accelerators first: their colours.
        counted: "cycles" or "instructions".

    Raises:
        DependencyError: matplotlib is not installed.
        InputError: the costs of all steps are unknown.
    """
    sums: dict[str, int] = {}
    for unit, cycles in spent:
        sums[unit] = sums.get(unit, 0) + cycles
    whole = sum(sums.values())
    if not whole:
        raise _unknown("units")
    classes = unit_classes(units)
    bars = [
        Bar(unit, cycles, f"{cycles:,} ({100 * cycles / whole:.1f} %)", classes[unit])
        for unit, cycles in sorted(sums.items(), key=lambda entry: -entry[1])
    ]
    return bar_figure(f"{whole:,} {counted} by unit", bars, counted)


def layers_figure(
    rows: Sequence[tuple[str, str, int, str]], units: Sequence[str], counted: str
) -> Figure:
    """Draw the cycles of layers.

    Args:
        rows: name, unit, cycles and their basis of each layer, as they are drawn.
        units, counted: as for `units_figure`.

    Raises:
        DependencyError: matplotlib is not installed.
        InputError: there are no rows.
    """
    if not rows:
        raise _unknown("layers")
    classes = unit_classes(units)
    bars = [
        Bar(name, cycles, f"{cycles:,}, {basis}", classes[unit])
        for name, unit, cycles, basis in rows
    ]
    keys = {classes[unit]: unit for unit in dict.fromkeys(unit for _, unit, _, _ in rows)}
    return bar_figure(f"the layers that take most {counted}", bars, counted, keys=keys)


def _unknown(part: str) -> InputError:
    return InputError(
        f"there are no {part} to plot: no costs are known",
        where="explanation",
        hint="explain a module whose build was complete",
    )
