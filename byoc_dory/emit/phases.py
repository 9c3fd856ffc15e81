"""The comment that explains a pipelined loop: its prologue, its steady state and its epilogue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_INDEX = "step"  # what the loop in C counts


@dataclass(frozen=True)
class Stage:
    """What a step of the loop does for one of the tiles in flight.

    Attributes:
        what: the actions in words, e.g. ``finish, store``.
        distance: step s does this for tile s - distance.
        code: C statements.
    """

    what: str
    distance: int
    code: str

    @property
    def tile(self) -> str:
        """C expression of the tile's number."""
        return f"{_INDEX} - {self.distance}" if self.distance else _INDEX


def condition(stage: Stage, tiles: int, steps: int) -> str:
    """Return the C condition under which there is a tile for this stage."""
    begun = [f"{_INDEX} >= {stage.distance}u"] if stage.distance else []
    end = tiles + stage.distance
    return " && ".join([*begun, *([f"{_INDEX} < {end}u"] if end < steps else [])])


def phases(stages: Sequence[Stage], tiles: int) -> str:
    """Return a C comment with a table of the tile that each stage works on in each step.

    Args:
        stages: the stages of a step, at least one of them at a distance.
        tiles: number of tiles.
    """
    ordered = sorted(stages, key=lambda stage: stage.distance)
    longest = ordered[-1].distance
    rows = [(_INDEX, *(stage.what for stage in ordered), "")]
    rows += [_row(step, ordered, tiles, "prologue") for step in range(min(longest, tiles))]
    if tiles == longest + 1:
        rows.append(_row(longest, ordered, tiles, "steady state"))
    elif tiles > longest:
        numbers = [f"tile {stage.tile}" for stage in ordered]
        rows.append((f"{longest} to {tiles - 1}", *numbers, "steady state"))
    begin = max(longest, tiles)
    rows += [_row(step, ordered, tiles, "epilogue") for step in range(begin, tiles + longest)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    if tiles <= longest:
        lines.append("There are too few tiles for a steady state.")
    return (
        "/* Several tiles are under way at a time, each at a different stage:\n *\n"
        + "".join(f" *   {line}\n" for line in lines)
        + " */\n"
    )


def _row(step: int, stages: Sequence[Stage], tiles: int, phase: str) -> tuple[str, ...]:
    """Return the row of one step, with the numbers of its tiles."""
    numbers = [step - stage.distance for stage in stages]
    found = [f"tile {number}" if 0 <= number < tiles else "-" for number in numbers]
    return (str(step), *found, phase)
