"""The network as a picture: operators in dependency order, laid out like lines of text.

An operator's column is its longest distance from an input; columns follow each other from left to
right and continue on the next line when one is full, so that deep networks stay readable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from htvm.tools.report.html.svg import Drawing, number
from htvm.tools.report.table import count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from htvm.tools.report.picture_types import NetworkNode

_COLUMNS = 10  # of a line
_PITCH_X, _PITCH_Y = 126, 46
_BOX_X, _BOX_Y = 106, 34
_MARGIN, _GAP = 18, 34  # around the drawing, and between lines
_LETTERS = 14  # of a name in a box


@dataclass(frozen=True)
class _Place:
    """The place of an operator in the picture.

    Attributes:
        line, row: the number of its line, and its position in the column there, both from 0.
        top: where its line begins, in the drawing's units.
        x, y: upper left corner of its box.
    """

    line: int
    row: int
    top: float
    x: float
    y: float


def graph_of(
    nodes: Sequence[NetworkNode], classes: Mapping[str, str], steps: Mapping[str, int]
) -> Drawing | None:
    """Draw the network; None without operators.

    Args:
        nodes: the operators in execution order.
        classes: colour class of each accelerator.
        steps: index of each layer's step.
    """
    if not nodes:
        return None
    places, height = _places(nodes)
    columns = min(_COLUMNS, 1 + max(_ranks(nodes).values()))
    width = 2 * _MARGIN + (columns - 1) * _PITCH_X + _BOX_X
    drawing = Drawing(width, height, "the network's operators", "figure graph")
    for node in nodes:
        for name in node.inputs:
            if name in places:
                _edge(drawing, places[name], places[node.name])
    for node in nodes:
        _box(drawing, node, places[node.name], classes, steps.get(node.name))
    return drawing


def _ranks(nodes: Sequence[NetworkNode]) -> dict[str, int]:
    """Return each operator's longest distance from an input; nodes must be in execution order."""
    ranks: dict[str, int] = {}
    for node in nodes:
        ranks[node.name] = max(
            (ranks[name] + 1 for name in node.inputs if name in ranks), default=0
        )
    return ranks


def _places(nodes: Sequence[NetworkNode]) -> tuple[dict[str, _Place], float]:
    """Return the place of each operator, and the height of the whole."""
    columns: dict[int, list[str]] = {}
    for name, rank in _ranks(nodes).items():
        columns.setdefault(rank, []).append(name)
    places, top = {}, float(_MARGIN) + _GAP / 2
    for line in range(-(-len(columns) // _COLUMNS)):
        ranks = range(line * _COLUMNS, min(len(columns), (line + 1) * _COLUMNS))
        for rank in ranks:
            for row, name in enumerate(columns[rank]):
                x = _MARGIN + (rank - ranks.start) * _PITCH_X
                places[name] = _Place(line, row, top, x, top + row * _PITCH_Y)
        top += max(len(columns[rank]) for rank in ranks) * _PITCH_Y + _GAP
    return places, top - _GAP / 2


def _edge(drawing: Drawing, source: _Place, target: _Place) -> None:
    """Draw an edge through the gaps between columns and lines, so that it crosses no other box."""
    x1, y1 = source.x + _BOX_X, source.y + _BOX_Y / 2
    x2, y2 = target.x, target.y + _BOX_Y / 2
    gap = (_PITCH_X - _BOX_X) / 2
    if source.line != target.line:
        # Down beside the boxes, along the gap above the other line, and down to the box.
        path = f"M{number(x1)} {number(y1)}h{number(gap)}V{number(target.top - _GAP / 2)}"
        if target.row:  # beside the boxes above it
            path += f"H{number(x2 - gap)}V{number(y2)}H{number(x2)}"
        else:
            path += f"H{number(target.x + _BOX_X / 2)}V{number(target.y)}"
    elif x2 - x1 < _PITCH_X:
        middle = (x1 + x2) / 2
        path = _curve(x1, y1, middle, y1, middle, y2, x2, y2)
    elif source.row:
        path = f"M{number(x1)} {number(y1)}H{number(x2 - gap)}V{number(y2)}H{number(x2)}"
    else:
        x1, y1, x2, y2 = source.x + _BOX_X / 2, source.y, target.x + _BOX_X / 2, target.y
        top = source.y - _GAP * 0.55
        path = _curve(x1, y1, x1 + 12, top, x2 - 12, top, x2, y2)
    drawing.add("path", "edge", d=path)


def _curve(*points: float) -> str:
    x1, y1, *others = (number(value) for value in points)
    return f"M{x1} {y1}C{' '.join(others)}"


def _box(
    drawing: Drawing, node: NetworkNode, place: _Place, classes: Mapping[str, str], step: int | None
) -> None:
    tip = f"{node.name}: {node.op} on {node.accelerator}"
    if node.macs:
        tip += f", {count(node.macs)} MACs"
    colour = classes.get(node.accelerator, "u-host")
    linked = {} if step is None else {"data_step": str(step)}
    drawing.add(
        "rect", f"node {colour}", tip, x=place.x, y=place.y, width=_BOX_X, height=_BOX_Y, rx=5,
        **linked,
    )  # fmt: skip
    middle = place.x + _BOX_X / 2
    drawing.text(middle, place.y + 15, _short(node.name), "name middle", tip)
    drawing.text(middle, place.y + 28, node.accelerator, "where middle", tip)


def _short(name: str) -> str:
    """Shorten a name to fit a box; it is mostly the end that distinguishes operators."""
    return name if len(name) <= _LETTERS else f"…{name[1 - _LETTERS :]}"
