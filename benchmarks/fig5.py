"""HTVM (DAC 2023), Fig. 5: what single layers lose to the peak of their core.

Peak is the time from the start of a trigger to its end, as in the paper; the full time has
transfers, drivers and loops as well.  Both come from the run of a network of one layer.  "As
published" runs `schedule="published"` and adds what a layer costs beside its driver calls in the
published runs by the fit (400 cycles); "ours" is `schedule="overlapped"`: one layer alone, so
nothing stays in L1 and every tensor is moved; depthwise layers are computed as convolutions over 16
channels there, so that they exceed the peak of the published way.  The paper's geometries are in
its picture alone; those here are ours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.artefact import Artefact, main, write
from benchmarks.made_of import RowSource, program
from benchmarks.measure import measure_model
from benchmarks.published import CONV_LOSS, DENSE_LOSS, DEPTHWISE_LOSS
from benchmarks.published_host import PUBLISHED_HOST
from htvm.model import Model
from htvm.progress import Progress
from htvm.tools.report.table import Column, Table, text
from htvm.tools.zoo.drawing import Sketch
from htvm.tools.zoo.networks import model
from htvm.tools.zoo.schemes import Scheme

__all__ = ["made_of", "run"]


@dataclass(frozen=True)
class Point:
    """One geometry: maps of ``size * size``, as many input as output channels."""

    channels: int
    size: int


@dataclass(frozen=True)
class Series:
    """Layers of one kind on one core, and what the paper says of them in words."""

    name: str
    op: str
    core: str
    scheme: Scheme
    points: tuple[Point, ...]
    published: str


SERIES = (
    Series(
        "analog conv, channels", "conv2d", "analog", "ternary",
        tuple(Point(channels, 16) for channels in (16, 32, 64, 128)),
        f"average {CONV_LOSS['analog'][0]} %, least {CONV_LOSS['analog'][1]} %",
    ),
    Series(
        "analog conv, spatial", "conv2d", "analog", "ternary",
        tuple(Point(64, size) for size in (8, 16, 32)),
        f"average {CONV_LOSS['analog'][0]} %, least {CONV_LOSS['analog'][1]} %",
    ),
    Series(
        "digital conv, spatial", "conv2d", "digital", "8-bit",
        tuple(Point(32, size) for size in (8, 16, 32, 48)),
        f"average {CONV_LOSS['digital'][0]} %, least {CONV_LOSS['digital'][1]} %",
    ),
    Series(
        "digital dense, channels", "dense", "digital", "8-bit",
        tuple(Point(channels, 1) for channels in (16, 64, 128, 256)),
        f"at most {DENSE_LOSS} %",
    ),
    Series(
        "digital depthwise, spatial", "depthwise", "digital", "8-bit",
        tuple(Point(32, size) for size in (8, 16, 32)),
        f"at most {DEPTHWISE_LOSS} %",
    ),
)  # fmt: skip

COLUMNS = (
    Column("layers"),
    Column("channels", number=True),
    Column("size", number=True),
    Column("MAC", number=True),
    Column("peak MAC/cycle", number=True),
    Column("as published", number=True),
    Column("loss %", number=True),
    Column("ours", number=True),
    Column("loss %", number=True),
    Column("published loss"),
)


@dataclass(frozen=True)
class Found:
    """Cycles of a layer: triggers alone, as published with everything, ours with everything."""

    macs: int
    peak: int
    published: float
    ours_peak: int
    ours: int

    @property
    def loss(self) -> float:
        """Share of the throughput lost as published, in %."""
        return 100 * (1 - self.peak / self.published)

    @property
    def ours_loss(self) -> float:
        """Share of the throughput we lose, in %."""
        return 100 * (1 - self.ours_peak / self.ours)


def made_of() -> Iterator[RowSource]:
    """The program of each layer, under both schedules."""
    for series in SERIES:
        for point in series.points:
            name = f"{series.name}, {point.channels} of {point.size}x{point.size}"
            one = partial(_model, series, point)
            for schedule in ("published", "overlapped"):
                yield program(name, one, f"diana.{series.core}", schedule=schedule)


def run(folder: Path, progress: Progress | None = None) -> Artefact:
    """Measure single layers on both cores."""
    progress = progress or Progress()
    found: dict[tuple[Series, Point], Found] = {}
    for series in SERIES:
        with progress.stage(series.name):
            for point in series.points:
                found[series, point] = _found(series, point)
    rows = tuple(_row(series, point, entry) for (series, point), entry in found.items())
    artefact = Artefact(
        "fig5",
        "Fig. 5: what single layers lose to peak",
        "\n\n".join([str(__doc__).strip(), text(Table(COLUMNS, rows))]),
        [
            {
                "series": series.name,
                "channels": point.channels,
                "size": point.size,
                "macs": entry.macs,
                "peak_cycles": entry.peak,
                "published_cycles": entry.published,
                "ours_cycles": entry.ours,
                "loss_percent": entry.loss,
                "ours_loss_percent": entry.ours_loss,
            }
            for (series, point), entry in found.items()
        ],
        {"fig5": _figure(found)},
    )
    write(artefact, folder)
    return artefact


def _network(series: Series, point: Point) -> Any:
    shape = (point.channels,) if series.op == "dense" else (point.channels, point.size, point.size)
    net = Sketch("layer", shape, 0, series.scheme)
    makers: dict[str, Callable[[], Any]] = {
        "conv2d": lambda: net.conv2d(net.input, point.channels, (3, 3), place="inner"),
        "depthwise": lambda: net.depthwise(net.input),
        "dense": lambda: net.dense(net.input, point.channels),
    }
    makers[series.op]()
    return net


def _model(series: Series, point: Point) -> Model:
    return model(_network(series, point), "NCHW")


def _found(series: Series, point: Point) -> Found:
    net = _network(series, point)
    target = f"diana.{series.core}"
    there = measure_model(_model(series, point), target, "published")
    ours = measure_model(_model(series, point), target, "overlapped")
    assert there is not None and ours is not None
    return Found(
        net.macs,
        there.triggers,
        there.on_cores + there.layers * PUBLISHED_HOST.layer,
        ours.triggers,
        ours.on_cores,
    )


def _row(series: Series, point: Point, entry: Found) -> tuple[str, ...]:
    return (
        series.name,
        str(point.channels),
        str(point.size),
        f"{entry.macs:,}",
        f"{entry.macs / entry.peak:.2f}",
        f"{entry.macs / entry.published:.2f}",
        f"{entry.loss:.2f}",
        f"{entry.macs / entry.ours:.2f}",
        f"{entry.ours_loss:.2f}",
        series.published,
    )


def _figure(found: dict[tuple[Series, Point], Found]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.5), layout="constrained")
    for axes, core in zip(figure.subplots(1, 2), ("analog", "digital"), strict=True):
        for series in (entry for entry in SERIES if entry.core == core):
            points = [found[series, point] for point in series.points]
            macs = [entry.macs for entry in points]
            drawn = axes.plot(
                macs, [entry.macs / entry.peak for entry in points], "--", marker=".",
                label=f"{series.name}: peak",
            )  # fmt: skip
            colour = drawn[0].get_color()
            axes.plot(
                macs, [entry.macs / entry.published for entry in points], ":", marker="s",
                color=colour, label="as published",
            )  # fmt: skip
            axes.plot(
                macs, [entry.macs / entry.ours for entry in points], "-", marker="o",
                color=colour, label="ours",
            )  # fmt: skip
        axes.set(xscale="log", yscale="log", xlabel="MAC", ylabel="MAC / cycle", title=core)
        axes.legend(fontsize="x-small")
        axes.grid(True, which="both", alpha=0.3)
    return figure


if __name__ == "__main__":
    sys.exit(main(run))
