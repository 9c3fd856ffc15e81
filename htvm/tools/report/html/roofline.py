"""The roofline: the rate that each layer reaches, against the limits of the arrays and the DMA."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from htvm.tools.report.html.svg import Drawing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from htvm.tools.report.data import ReportData

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
    said = f"DMA, {width:g} B/cycle"
    levels = [scale.at(1.0, peak)[1] for peak in peaks]
    places = [(x1 + part * (x2 - x1), y1 + part * (y2 - y1)) for part in (0.3, 0.45, 0.6, 0.75)]
    roomy = [at for at in places if at[0] - 9 - len(said) * _LETTER > _LEFT]
    free = [at for at in roomy if all(abs(at[1] - 4 - level) > 12 for level in levels)]
    if roomy:
        x, y = (free or roomy)[0]
        drawing.text(x - 9, y, said, "tick end")
    else:  # a short line in the upper left corner
        drawing.text((x1 + x2) / 2 + 9, (y1 + y2) / 2 + 9, said, "tick")


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
    said = f"{name}, {peak:,.0f} MAC/cycle"
    # Above the line, or below it where the slope would cross the words.
    above = x2 - x1 > len(said) * _LETTER + 20 or width is None
    drawing.text(x2, y - 5 if above else y + 13, said, "tick end")


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
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y in places]
    longest_first = sorted(zip(points, places, taken, strict=True), key=lambda e: -e[0].cycles)
    for point, (x, y), own in longest_first:
        reach = len(point.name) * _LETTER
        left = x + 8 + reach > _WIDTH - _RIGHT
        begin = x - 14 - reach if left else x + 8
        box = (begin, y - 6, begin + reach + 6, y + 7)
        if box[0] > _LEFT and not any(_overlap(box, other) for other in taken if other != own):
            taken.append(box)
            side, anchor = (-8, "label end") if left else (8, "label")
            drawing.text(x + side, y + 4, point.name, anchor)


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
