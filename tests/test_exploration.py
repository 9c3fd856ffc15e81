"""`htvm.explore`: rows, tables, data frames, figures; layers alone need no compiler."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import htvm
from byoc_dory.options import TilingOptions
from htvm import zoo
from htvm.errors import DependencyError, ModelError, TargetError, UnsupportedError
from htvm.progress import CallbackProgress, Progress, StageEvent
from htvm.tools.report.sweep import Exploration
from tests.byoc_dory.layers import NETWORKS

LAYERS = NETWORKS["resnet8"]()
TARGET = "diana.digital"
BUDGETS = (300, 8_000, 64_000)


@pytest.fixture(scope="module")
def found() -> Exploration:
    tiling = TilingOptions(schedule="published")
    return htvm.explore(LAYERS[4:6], TARGET, l1_budgets=BUDGETS, tiling=tiling)


def test_frame(found) -> None:
    frame = found.frame
    assert len(frame) == len(found.rows) == 2 * 3 * (len(zoo_objectives()) + 1)
    for column in (
        "layer", "objective", "alpha", "beta: long DMA", "l1_budget", "k", "c", "y", "x", "tiles",
        "cycles", "utilisation", "l1_in", "l1_out", "l1_weights", "gap", "status", "seconds",
    ):  # fmt: skip
        assert column in frame.columns
    lost = frame[frame.status == "infeasible"]
    assert set(lost.l1_budget) == {300} and lost.cycles.isna().all()
    assert (lost.smallest_demand > lost.limit).all() and lost.levers.str.contains("budget").all()
    held = frame[frame.status != "infeasible"]
    assert (held.gap >= 0).all() and held.cycles.dtype == "Int64"
    assert (held.l1_in + held.l1_out <= held.l1_budget).all()
    assert (held[held.objective == "latency"].gap == 0).all()


def zoo_objectives() -> list[str]:
    from byoc_dory.soc.diana.description import DIGITAL

    return list(DIGITAL.objectives)


def test_table_says_why_a_budget_is_hopeless(found) -> None:
    text = found.table()
    assert str(found) == text
    assert "infeasible" in text and "limit is 300 B" in text and "raise the L1 budget" in text
    assert "over quickest" in text.splitlines()[0]


def test_labels_name_only_the_weights_that_differ() -> None:
    rows = htvm.explore(
        LAYERS[5], TARGET, objectives=["array", "none"], betas={"long DMA": (0, 9)},
        l1_budgets=[8_000],
    )  # fmt: skip
    assert rows.labels == ("array (long DMA=0)", "array (long DMA=9)", "none")


@pytest.mark.parametrize("plot", ["plot_latency", "plot_memory"])
def test_figures(found, plot: str, tmp_path: Path) -> None:
    figure = getattr(found, plot)()
    # One panel a layer, one line an objective, no point where no tile fits.
    assert len(figure.axes) == 2
    for axes in figure.axes:
        assert len(axes.lines) == len(zoo_objectives()) + 1
        assert all(list(line.get_xdata()) == [8_000, 64_000] for line in axes.lines)
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    single = replace(found, rows=tuple(row for row in found.rows if row.l1_budget == 8_000))
    assert len(getattr(single, plot)().axes[0].patches) == len(zoo_objectives()) + 1
    getattr(replace(found, rows=()), plot)()


def test_a_model_is_explored_where_it_would_run() -> None:
    stages: list[StageEvent] = []
    result = htvm.explore(
        zoo.build("resnet8"), TARGET, objectives=["latency"], l1_budgets=[16_000],
        progress=CallbackProgress(stages.append),
    )  # fmt: skip
    assert len(result.rows) == 13
    assert {row.accelerator for row in result.rows} == {"digital"}
    shapes = [row for row in result.rows if row.shape == "C=16 32x32 -> K=16 32x32, kernel 3x3, "
              "stride 1x1"]  # fmt: skip
    # Equal layers are tiled once, and each is reported.
    assert len(shapes) == 2 and shapes[0].layer != shapes[1].layer
    assert shapes[0].cycles == shapes[1].cycles
    assert sum(event.name.startswith("exploring") for event in stages) == 2 * 13


def test_interrupt_keeps_what_was_found() -> None:
    class Impatient(Progress):
        def stage(self, name: str, part: tuple[int, int] | None = None):
            if "(3 of" in name:
                raise KeyboardInterrupt
            return super().stage(name, part)

    result = htvm.explore(
        LAYERS, TARGET, objectives=["none"], l1_budgets=[64_000], progress=Impatient()
    )
    assert result.interrupted and len(result.rows) == 2
    assert "interrupted" in result.table()


@pytest.mark.parametrize(
    ("option", "given"),
    [("objectives", 3), ("objectives", "latency"), ("alphas", 3), ("l1_budgets", 4_000),
     ("betas", [1]), ("betas", {"long DMA": 3}), ("tiling", 3)],
)  # fmt: skip
def test_options_of_the_wrong_kind(option: str, given: object) -> None:
    with pytest.raises(TargetError, match=f"option '{option}"):
        htvm.explore(LAYERS[4], TARGET, **{option: given})  # type: ignore[arg-type]


def test_layers_that_are_none() -> None:
    with pytest.raises(ModelError, match="a int is not a layer"):
        htvm.explore([3], TARGET)  # type: ignore[list-item]


def test_what_is_asked_wrongly() -> None:
    with pytest.raises(TargetError, match="no accelerator"):
        htvm.explore(LAYERS[0], "diana.cpu")
    with pytest.raises(TargetError, match="'speed'"):
        htvm.explore(LAYERS[0], TARGET, objectives=["speed"])
    # A stride no core has.
    odd = replace(LAYERS[6], stride=(3, 3), output=replace(LAYERS[6].output, shape=(32, 11, 11)))
    with pytest.raises(UnsupportedError, match="stride is 3x3"):
        htvm.explore(odd, TARGET)


@pytest.mark.parametrize(("package", "use"), [("pandas", "frame"), ("matplotlib", "plot_latency")])
def test_a_missing_package_is_named(found, package, use, monkeypatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(DependencyError, match=rf"{package}.*htvm\[explore\]"):
        made = getattr(found, use)
        made()


def test_a_layer_alone_needs_neither_compiler_nor_optional_packages() -> None:
    code = (
        "import sys, htvm\n"
        "from tests.byoc_dory.layers import NETWORKS\n"
        f"print(htvm.explore(NETWORKS['toyadmos']()[0], '{TARGET}', l1_budgets=[900]).table())\n"
        "assert not {'tvm', 'pandas', 'matplotlib'} & set(sys.modules)\n"
    )
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0 and "latency" in done.stdout, done.stderr


def test_solver_and_schedule_are_passed_on() -> None:
    tiling = TilingOptions(solver="exhaustive", schedule="published")
    rows = htvm.explore(LAYERS[11], TARGET, l1_budgets=[1_500], tiling=tiling).rows
    assert {row.solver for row in rows} == {"exhaustive"}
    assert all(row.status == "optimal" for row in rows)
