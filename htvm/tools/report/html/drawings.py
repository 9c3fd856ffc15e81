"""Figures of elements that are styled by classes, printed as SVG: the network, and the roofline."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from htvm.tools.report.table import count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from htvm.tools.report.data import ReportData
    from htvm.tools.report.parts import NetworkNode


def number(value: float) -> str:
    """Format a coordinate with at most two decimals."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


@dataclass(frozen=True)
class Mark:
    """An element of a figure.

    Attributes:
        tag: SVG tag: ``line``, ``circle``, ``rect``, ``path`` or ``text``.
        classes: classes that style it.
        tip: text shown when the pointer rests on it.
        words: content of a ``text``.
        attributes: attributes of the element, with ``_`` in names standing for ``-``.
    """

    tag: str
    classes: str
    tip: str
    words: str
    attributes: Mapping[str, float | str]

    def markup(self) -> str:
        """Return the element as SVG, with all values escaped."""
        named = f' class="{escape(self.classes)}"' if self.classes else ""
        given = "".join(
            f' {name.replace("_", "-")}="{_attribute(value)}"'
            for name, value in self.attributes.items()
        )
        inner = f"<title>{escape(self.tip)}</title>" if self.tip else ""
        inner += escape(self.words)
        return f"<{self.tag}{named}{given}" + (f">{inner}</{self.tag}>" if inner else "/>")


class Drawing:
    """An SVG figure.

    Args:
        width, height: size of the drawing area, in its own units.
        title: a description of the figure, for those who cannot see it.
        classes: classes of the element.
        stretch: whether it fills its place without keeping its proportions.
    """

    def __init__(
        self, width: float, height: float, title: str, classes: str = "", stretch: bool = False
    ) -> None:
        self.width, self.height = width, height
        self.marks: list[Mark] = []
        self._title, self._classes, self._stretch = title, classes, stretch

    def add(self, tag: str, classes: str = "", tip: str = "", **attributes: float | str) -> None:
        """Add an element; ``tip`` shows on hovering; ``_`` in attribute names stands for ``-``."""
        self.marks.append(Mark(tag, classes, tip, "", attributes))

    def text(self, x: float, y: float, words: str, classes: str = "", tip: str = "") -> None:
        """Add words whose baseline begins (or, by class, ends or is centred) at a point."""
        self.marks.append(Mark("text", classes, tip, words, {"x": x, "y": y}))

    def __html__(self) -> str:
        """Return the element, safe to put into a page."""
        ratio = ' preserveAspectRatio="none"' if self._stretch else ""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {number(self.width)} '
            f'{number(self.height)}" class="{escape(self._classes)}" role="img"{ratio}>'
            f"<title>{escape(self._title)}</title>"
        )
        return head + "".join(mark.markup() for mark in self.marks) + "</svg>"


def _attribute(value: float | str) -> str:
    return escape(value) if isinstance(value, str) else number(value)


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
    """Draw the network, in dependency order, laid out like lines of text; None without operators.

    An operator's column is its longest distance from an input; columns follow each other from left
    to right and continue on the next line when one is full, so that deep networks stay readable.

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


_WIDTH, _HEIGHT = 640, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 26, 30, 44
_LETTER = 6.2  # width of a letter of a label


@dataclass(frozen=True)
class _Scale:
    """Logarithmic axes; ranges are powers of ten."""

    x: tuple[int, int]
    y: tuple[int, int]

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the position of a point."""
        across = (math.log10(x) - self.x[0]) / (self.x[1] - self.x[0])
        up = (math.log10(y) - self.y[0]) / (self.y[1] - self.y[0])
        return (
            _LEFT + across * (_WIDTH - _LEFT - _RIGHT),
            _HEIGHT - _BOTTOM - up * (_HEIGHT - _TOP - _BOTTOM),
        )


@dataclass(frozen=True)
class _Point:
    """One layer on an accelerator.

    Attributes:
        intensity: multiply-accumulates per byte moved to or from L2.
        rate: multiply-accumulates per cycle.
    """

    name: str
    accelerator: str
    intensity: float
    rate: float
    cycles: int


def _points(report: ReportData) -> tuple[_Point, ...]:
    """The layers that multiply on an accelerator, were simulated, and whose bytes are known."""
    points = []
    for row in report.layers:
        moved = [row.l2_read, row.l2_written, row.l2_weights]
        total = sum(size for size in moved if size is not None)
        if row.kind != "layer" or not row.cycles or not row.macs or not total:
            continue
        points.append(
            _Point(row.name, row.accelerator, row.macs / total, row.macs / row.cycles, row.cycles)
        )
    return tuple(points)


def roofline_of(
    report: ReportData, classes: Mapping[str, str], steps: Mapping[str, int]
) -> Drawing | None:
    """Draw the roofline; None if no layer on an accelerator was simulated.

    Args:
        report: the report.
        classes: colour class of each accelerator.
        steps: index of each layer's step.
    """
    points, machine = _points(report), report.machine
    if not points or machine is None:
        return None
    used = dict.fromkeys(point.accelerator for point in points)
    peaks = {name: peak for name in used if (peak := machine.peak_of(name))}
    width = machine.dma_bytes_per_cycle
    scale = _scale(points, list(peaks.values()), width)
    drawing = Drawing(_WIDTH, _HEIGHT, "roofline", "figure")
    _axes(drawing, scale)
    if width:
        _slope(drawing, scale, width, list(peaks.values()))
    for name, peak in peaks.items():
        _ceiling(drawing, scale, name, peak, width, classes)
    _dots(drawing, scale, points, classes, steps)
    return drawing


def _decades(values: list[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _scale(points: tuple[_Point, ...], peaks: list[float], width: float | None) -> _Scale:
    """Return axes whose decades contain all points and peaks, with room for the peaks' names."""
    knees = [8 * peak / width for peak in peaks] if width else []
    return _Scale(
        _decades([*(point.intensity for point in points), *knees]),
        _decades([*(point.rate for point in points), *(1.2 * peak for peak in peaks)]),
    )


def _axes(drawing: Drawing, scale: _Scale) -> None:
    for power in range(scale.x[0], scale.x[1] + 1):
        x, _ = scale.at(10.0**power, 10.0 ** scale.y[0])
        drawing.add("line", "grid", x1=x, x2=x, y1=_TOP, y2=_HEIGHT - _BOTTOM)
        drawing.text(x, _HEIGHT - _BOTTOM + 16, f"{10.0**power:g}", "tick middle")
    for power in range(scale.y[0], scale.y[1] + 1):
        _, y = scale.at(10.0 ** scale.x[0], 10.0**power)
        drawing.add("line", "grid", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y)
        drawing.text(_LEFT - 8, y + 4, f"{10.0**power:g}", "tick end")
    drawing.text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 8, "MAC per byte from L2", "tick middle")
    drawing.text(8, 14, "MAC per cycle", "tick")


def _slope(drawing: Drawing, scale: _Scale, width: float, peaks: list[float]) -> None:
    """Draw the limit set by transfers, a line of slope one, cut at the borders."""
    low = max(10.0 ** scale.x[0], 10.0 ** scale.y[0] / width)
    high = min(10.0 ** scale.x[1], 10.0 ** scale.y[1] / width)
    if low >= high:
        return
    (x1, y1), (x2, y2) = scale.at(low, low * width), scale.at(high, high * width)
    drawing.add("line", "roof s-dma", x1=x1, y1=y1, x2=x2, y2=y2)
    # Left of the line, where no layer can be, and not on an array's ceiling.
    label = f"DMA, {width:g} B/cycle"
    levels = [scale.at(1.0, peak)[1] for peak in peaks]
    places = [(x1 + part * (x2 - x1), y1 + part * (y2 - y1)) for part in (0.3, 0.45, 0.6, 0.75)]
    roomy = [at for at in places if at[0] - 9 - len(label) * _LETTER > _LEFT]
    free = [at for at in roomy if all(abs(at[1] - 4 - level) > 12 for level in levels)]
    if roomy:
        x, y = (free or roomy)[0]
        drawing.text(x - 9, y, label, "tick end")
    else:  # a short line in the upper left corner
        drawing.text((x1 + x2) / 2 + 9, (y1 + y2) / 2 + 9, label, "tick")


def _ceiling(
    drawing: Drawing, scale: _Scale, name: str, peak: float, width: float | None,
    classes: Mapping[str, str],
) -> None:  # fmt: skip
    """Draw an array's limit, from where transfers no longer limit it."""
    start = 10.0 ** scale.x[0] if not width else max(10.0 ** scale.x[0], peak / width)
    start = min(start, 10.0 ** scale.x[1])
    x1, y = scale.at(start, peak)
    x2, _ = scale.at(10.0 ** scale.x[1], peak)
    stroke = classes.get(name, "u-0").replace("u-", "s-")
    drawing.add("line", f"roof {stroke}", x1=x1, y1=y, x2=x2, y2=y)
    label = f"{name}, {peak:,.0f} MAC/cycle"
    # Above the line, or below it where the slope would cross the words.
    above = x2 - x1 > len(label) * _LETTER + 20 or width is None
    drawing.text(x2, y - 5 if above else y + 13, label, "tick end")


def _dots(
    drawing: Drawing, scale: _Scale, points: tuple[_Point, ...], classes: Mapping[str, str],
    steps: Mapping[str, int],
) -> None:  # fmt: skip
    """Draw the layers, with names where there is room."""
    places = [scale.at(point.intensity, point.rate) for point in points]
    for point, (x, y) in zip(points, places, strict=True):
        tip = (
            f"{point.name} on {point.accelerator}: {point.rate:.2f} MAC/cycle, "
            f"{point.intensity:.2f} MAC per byte from L2, {point.cycles:,} cycles"
        )
        linked = {"data_step": str(steps[point.name])} if point.name in steps else {}
        colour = classes.get(point.accelerator, "u-0")
        drawing.add("circle", colour, tip, cx=x, cy=y, r=5, **linked)
    occupied = [(x - 6, y - 6, x + 6, y + 6) for x, y in places]
    longest_first = sorted(zip(points, places, occupied, strict=True), key=lambda e: -e[0].cycles)
    for point, (x, y), own in longest_first:
        reach = len(point.name) * _LETTER
        left = x + 8 + reach > _WIDTH - _RIGHT
        begin = x - 14 - reach if left else x + 8
        box = (begin, y - 6, begin + reach + 6, y + 7)
        if box[0] > _LEFT and not any(_overlap(box, other) for other in occupied if other != own):
            occupied.append(box)
            side, anchor = (-8, "label end") if left else (8, "label")
            drawing.text(x + side, y + 4, point.name, anchor)


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
