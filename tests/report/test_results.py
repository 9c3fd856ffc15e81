"""Every public result is at home in a notebook: text, a table, a data frame, figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas
import pytest

import htvm
from byoc_dory.options import TilingOptions
from htvm.errors import InputError
from htvm.firmware.lines import SourceLine
from htvm.result import RunResult
from htvm.shown import Shown
from htvm.tools.generation import Generation
from htvm.tools.plots.colours import painted, unit_class
from htvm.tools.report.difference import ReportDifference, difference_of
from htvm.tools.report.fit import Fit
from htvm.tools.report.html.timeline import timeline_of
from htvm.tools.report.sweep import Exploration
from htvm.tools.report.types import Report
from htvm.tools.sweeping.designs import Designs
from htvm.tools.verification.types import Difference, Origin, StepCheck, Stray, TileAt, Verification
from tests.byoc_dory.layers import NETWORKS
from tests.report.test_narrow import FIT
from tests.report.test_shown import BARE, _Cells
from tests.report.test_tables import COMPARISON, COSTS
from tests.report.whole import WHOLE, deep

RUN = RunResult(
    [np.zeros((1, 10), np.int8), np.zeros((1, 1_000, 20), np.float32)] * 2,
    WHOLE.summary.cycles,
    0.006,
    tuple(
        htvm.LayerResult(
            row.name, row.accelerator, row.kind, row.cycles, 0, row.macs, row.causes, row.start
        )
        for row in WHOLE.layers
    ),
    causes=WHOLE.summary.causes,
    timeline=WHOLE.timeline,
    maps=WHOLE.maps,
)
_PLACE = SourceLine("/home/somebody/models/build/tiny_layers.c", 120, "  store(acc >> shift);")
FOUND = Verification(
    "tiny",
    "diana",
    (
        StepCheck(0, "input", "cpu, prologue", ""),
        StepCheck(1, "conv2d_0", "digital", "conv2d_0", 16_384),
        StepCheck(2, "dense_0", "analog", "dense_0", 200, 150, 12),
    ),
    Difference(
        2, "dense_0", "analog", "dense_0", False, ("K", "oy", "ox"), (3, 0, 0), -5, 7, 150, 200,
        "L2", 0x1C0_0000, TileAt(1, 4, (1, 0, 0), (0, 0, 0), (8, 1, 1)), 3,
        (Origin("computed by trigger 5 of the analog core, which nobody waited for", 90, _PLACE),),
    ),
    stray=Stray(2, "dense_0", "analog", "L2", 0x1C0_0000, 320, "0 B past the end of " + "d" * 40),
)  # fmt: skip


@cache
def explored() -> Exploration:
    return htvm.explore(
        NETWORKS["resnet8"]()[4:6], "diana.digital", l1_budgets=(8_000, 64_000), alphas=(1, 5),
        tiling=TilingOptions(schedule="published"),
    )  # fmt: skip


@cache
def swept() -> Designs:
    axes = {"pes": [8, 16], "parallel": ["input", "output"]}
    return htvm.sweep(htvm.zoo.named("toyadmos"), "dla", axes, jobs=1)


def changed() -> ReportDifference:
    layers = tuple(
        replace(row, cycles=2 * (row.cycles or 0), tile="16,8,8,32", name=row.name)
        for row in WHOLE.layers
    )
    return difference_of(WHOLE, replace(WHOLE, layers=layers))


WRITTEN = Generation(
    tuple(range(900, 940)), (1, 2, 3), tuple(range(1_000, 1_042)), 1e8, 4.2, 42_021
)

RESULTS: dict[str, Callable[[], Any]] = {
    "run": lambda: RUN,
    "report": lambda: WHOLE,
    "report of a build": lambda: BARE,
    "report of a deep network": lambda: deep(3, 6, 2),
    "explain": lambda: COSTS,
    "verify": lambda: FOUND,
    "fit": lambda: FIT,
    "compare": lambda: COMPARISON,
    "explore": explored,
    "sweep": swept,
    "generate": lambda: WRITTEN,
    "diff": changed,
}
# What needs an argument, and what there is nothing to draw of.
_ARGUMENTS: dict[tuple[str, str], tuple[Any, ...]] = {
    ("explore", "plot_heat"): ("long DMA",),
    ("sweep", "plot_heat"): ("pes", "parallel"),
    ("sweep", "plot_pareto"): ("pes",),
}


def _plots(result: object) -> list[str]:
    return [name for name in dir(type(result)) if name.startswith("plot_")]


@pytest.mark.rotating(1)
@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_shown(name: str) -> None:
    result = RESULTS[name]()
    assert isinstance(result, Shown)
    page = _Cells(result._repr_html_())
    assert page.open == [] and len(page.rows) > 1
    frame = result.frame
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) == len(result.records) > 0 and len(frame.columns) > 1
    assert _plots(result)


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_short_text_in_80_columns(name: str) -> None:
    lines = repr(RESULTS[name]()).split("\n")
    whole = [line for line in lines if _PLACE.file not in line]  # a path is not broken
    assert max(map(len, whole)) <= 80
    assert len(lines) <= 60 and lines[0]


@pytest.mark.parametrize("name", RESULTS)
def test_every_figure_is_drawn(name: str) -> None:
    result = RESULTS[name]()
    drawn = 0
    for plot in _plots(result):
        try:
            figure = getattr(result, plot)(*_ARGUMENTS.get((name, plot), ()))
        except InputError:
            assert name.startswith("report of")  # which have no run, or no accuracy
            continue
        assert any(axes.patches or axes.collections or axes.lines or axes.images
                   for axes in figure.axes), plot  # fmt: skip
        figure.canvas.draw()
        drawn += 1
    assert drawn


def test_a_figure_is_shown_without_pyplot() -> None:
    for figure in (RUN.plot_layers(), swept().plot_heat("pes", "parallel"), COSTS.plot_units()):
        assert figure._repr_png_().startswith(b"\x89PNG")


def test_no_result_is_forgotten() -> None:
    def below(kind: type) -> set[type]:
        found = set(kind.__subclasses__())
        return found.union(*map(below, found))

    tried = {type(make()) for make in RESULTS.values()}
    assert {kind for kind in below(Shown) if kind.__module__.startswith("htvm")} == tried
    for function, kind in (
        (htvm.Module.explain, "Explanation"),
        (htvm.Module.run, "RunResult"), (htvm.Module.report, "Report"),
        (htvm.Module.verify, "Verification"), (htvm.fit, "Fit"), (htvm.compare, "Comparison"),
        (htvm.explore, "Exploration"), (htvm.sweep, "Designs"), (htvm.generate, "Generation"),
    ):  # fmt: skip
        assert function.__annotations__["return"] == kind
        assert kind in {each.__name__ for each in tried}


def _bars(figure: Any) -> dict[str, tuple[float, Any]]:
    """Name -> length and colour of the bars of a figure."""
    (axes,) = figure.axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    return {
        name: (bar.get_width(), bar.get_facecolor())
        for name, bar in zip(names, axes.patches, strict=True)
    }


def _rgba(name: str) -> Any:
    from matplotlib.colors import to_rgba

    return to_rgba(painted(name))


def test_an_explanation_is_drawn_by_unit_and_layer() -> None:
    units = _bars(COSTS.plot_units())
    spent: dict[str, int] = {}
    for step in COSTS.steps:
        unit = step.runs_on if step.kind in ("layer", "cpu") else "cpu"
        spent[unit] = spent.get(unit, 0) + (step.cycles or 0)
    assert {name: width for name, (width, _) in units.items()} == spent
    assert all(colour == _rgba(unit_class(name)) for name, (_, colour) in units.items())
    layers = _bars(COSTS.plot_layers(2))
    dearest = sorted((row for row in COSTS.rows if row.cycles), key=lambda row: -(row.cycles or 0))
    assert list(layers) == [row.layer for row in dearest[:2]]


def test_a_run_is_drawn_by_cause_and_over_time() -> None:
    (axes,) = RUN.plot_layers().axes
    drawn = {(bar.get_y(), bar.get_facecolor()): bar.get_width() for bar in axes.patches}
    first = RUN.layers[0].causes
    assert first is not None and drawn[(-0.4, _rgba("c-array"))] == first.array
    assert [label.get_text() for label in axes.get_yticklabels()] == [r.name for r in RUN.layers]
    (axes,) = RUN.plot_timeline().axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["steps", "host", "dma", "digital"]
    colours = [tuple(each.get_facecolor()[0]) for each in axes.collections]
    assert colours[1:] == [_rgba("u-host"), _rgba("u-dma"), _rgba(unit_class("digital"))]


def test_a_run_without_cycles_has_instructions_or_nothing_to_draw() -> None:
    rows = tuple(
        replace(row, cycles=None, causes=None, instructions=100 + i)
        for i, row in enumerate(RUN.layers)
    )
    counted = replace(RUN, cycles=None, layers=rows, instructions=1_000)
    assert [width for width, _ in _bars(counted.plot_layers()).values()] == [101, 100]
    (axes,) = counted.plot_timeline().axes
    assert axes.get_xlabel() == "instructions" and axes.get_xlim() == (0, 1_000)
    extents = [path.get_extents() for path in axes.collections[0].get_paths()]
    assert [(each.x0, each.x1) for each in extents] == [(0, 100), (100, 201)]
    assert counted.plot_memory().axes[0].get_xlabel() == "instructions"
    nothing = replace(counted, instructions=None, layers=())
    for plot in (nothing.plot_timeline, nothing.plot_layers):
        with pytest.raises(InputError, match="to plot: the run has no cycles"):
            plot()


def test_a_report_without_cycles_has_its_timeline_over_instructions() -> None:
    rows = tuple(replace(row, cycles=None, instructions=100) for row in WHOLE.layers)
    summary = replace(WHOLE.summary, cycles=None, instructions=100 * len(rows) + 50)
    found = timeline_of(replace(WHOLE, summary=summary, layers=rows, timeline=()), {})
    assert (found.unit, found.length) == ("instructions", 100 * len(rows) + 50)
    assert [round(box.width * found.length / 100) for box in found.steps] == [100] * len(rows)
    assert found.steps[0].tip.endswith(", 100 instructions")


def test_conversions_are_told_from_their_layers() -> None:
    rows = tuple(
        replace(row, kind=kind) for row, kind in zip(RUN.layers, ("layer", "epilogue"), strict=True)
    )
    (axes,) = replace(RUN, layers=rows).plot_layers().axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["conv2d_0", "softmax_0 <b>\"&' (epilogue)"]


def test_the_memories_of_a_run_are_drawn_as_those_of_its_report() -> None:
    def boxes(axes: Any) -> list[tuple[Any, Any]]:
        return [
            (path.vertices.round(6).tolist(), each.get_facecolor()[0].tolist())
            for each in axes.collections
            for path in each.get_paths()
        ]

    ours, theirs = RUN.plot_memory().axes, WHOLE.plot_memory().axes
    assert [axes.get_title(loc="left") for axes in ours] == [
        "L1: 24,576 of 256,000 B", "L2 arena: 12,288 B",
    ]  # fmt: skip
    assert [axes.get_xlabel() for axes in ours] == ["cycles", "cycles"]
    assert [boxes(axes) for axes in ours] == [boxes(axes) for axes in theirs]
    assert boxes(ours[1])[0][0][:2] == [[10.0, 0.0], [10.0, 12.288]]
    steps = replace(RUN, cycles=None).plot_memory().axes[1]
    assert steps.get_xlabel() == "steps" and steps.get_xlim() == (0, 2)
    with pytest.raises(InputError, match="there is no memory to plot"):
        replace(RUN, maps=()).plot_memory()


def test_a_verification_is_drawn_by_layer() -> None:
    bars = _bars(FOUND.plot_layers())
    assert bars == {
        "conv2d_0": (0.0, _rgba(unit_class("digital"))),
        "dense_0": (75.0, _rgba(unit_class("analog"))),
    }
    (axes,) = FOUND.plot_layers().axes
    words = [text.get_text() for text in axes.texts]
    assert words == ["equal, 16,384 elements", "150 of 200 elements, by up to 12"]


def test_an_answer_of_fit_is_drawn_in_percent_of_each_memory() -> None:
    (level,) = FIT.levels
    needed, planned = _bars(FIT.plot_memory()).values()
    assert needed[0] == pytest.approx(100 * level.demand / level.limit)
    assert planned[0] == pytest.approx(100 * (level.planned or 0) / level.limit)
    full = replace(FIT, levels=(replace(level, demand=1_000_000, planned=None),))
    assert isinstance(full, Fit) and list(_bars(full.plot_memory())) == ["L2, needed"]
    for found in (FIT, full):
        (axes,) = found.plot_memory().axes
        longest = max(width for width, _ in _bars(found.plot_memory()).values())
        assert axes.get_xlim()[1] >= max(150, longest)


def test_what_retargeting_cost_is_drawn_by_layer() -> None:
    bars = _bars(WHOLE.plot_accuracy())
    assert {name: width for name, (width, _) in bars.items()} == {"conv2d_0": 31.5, "output": 27.25}
    with pytest.raises(InputError, match="no accuracy"):
        replace(WHOLE, sqnr=()).plot_accuracy()


def test_a_generation_has_a_row_and_a_bar_for_each_step() -> None:
    rows = WRITTEN.steps
    assert [row.reads for row in rows] == [*WRITTEN.prompt, *WRITTEN.tokens[:-1]]
    assert [row.writes for row in rows] == [None, None, *WRITTEN.tokens]
    assert [row.cycles for row in rows] == list(WRITTEN.cycles or ())
    assert rows[0].ms == pytest.approx(0.01)
    (axes,) = WRITTEN.plot_cycles().axes
    assert [bar.get_height() for bar in axes.patches] == list(WRITTEN.cycles or ())
    with pytest.raises(InputError, match="no cycles to plot"):
        replace(WRITTEN, cycles=None).plot_cycles()


def test_a_difference_is_drawn_before_and_after() -> None:
    found = changed()
    (axes,) = found.plot_steps().axes
    pairs = [(step.before, step.after) for step in found.steps]
    assert [bar.get_width() for bar in axes.patches] == [each for pair in pairs for each in pair]
    assert isinstance(WHOLE, Report) and len(pairs) == len(WHOLE.layers)
