"""The loop of exploration: winners, the file they are written to, and builds that follow it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import htvm
from byoc_dory.cost import Cost
from byoc_dory.options import TilingOptions
from byoc_dory.soc.diana.description import DIANA, DIGITAL
from byoc_dory.tiling.objectives import objective_named, objective_text
from htvm.build_options import BuildOptions
from htvm.errors import InputError, TargetError
from htvm.pipeline import compile_model
from htvm.tiling_file import read_tiling, write_tiling
from htvm.tools.cli.app import app, exit_code
from htvm.tools.report.sweep import Exploration
from htvm.tools.report.winners import totals_of
from tests.byoc_dory.layers import NETWORKS

LAYERS = NETWORKS["resnet8"]()[4:7]
BUDGETS = (300, 8_000, 64_000)
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=9)


@pytest.fixture(scope="module")
def found() -> Exploration:
    return htvm.explore(
        LAYERS, "diana.digital", l1_budgets=BUDGETS, alphas=(1, 5),
        tiling=TilingOptions(schedule="published"),
    )  # fmt: skip


def test_totals_are_sums_of_the_rows(found: Exploration) -> None:
    for total in found.totals:
        picked = [
            row
            for layer, name in total.layers
            for row in found.rows
            if (row.layer, row.l1_budget) == (layer, total.l1_budget)
            and name == objective_text(row.objective, row.alpha, dict(row.betas))
        ]
        assert [row.layer for row in picked] == [layer.name for layer in LAYERS]
        if any(row.cycles is None for row in picked):
            assert total.cycles is None and total.l1_budget == 300
        else:
            assert total.cycles == sum(row.cycles or 0 for row in picked)


def test_nothing_beats_the_winner(found: Exploration) -> None:
    for budget in BUDGETS[1:]:
        least = sum(
            min(row.cycles or 1 << 62 for row in found.rows
                if (row.layer, row.l1_budget) == (layer.name, budget))
            for layer in LAYERS
        )  # fmt: skip
        assert found.best(budget).cycles == least
    assert found.best().cycles == min(found.best(budget).cycles or 0 for budget in BUDGETS[1:])
    with pytest.raises(InputError, match=r"no winner.*300") as raised:
        found.best(300)
    assert "8000, 64000" in str(raised.value)
    assert "winner" in str(found) and "no tile of a layer fits" in str(found)


def test_what_a_session_shows_is_short(found: Exploration) -> None:
    lines = repr(found).split("\n")
    assert len(lines) < 20 and max(map(len, lines)) <= 80
    assert f"{len(found.rows)} tilings" in lines[0] and "winner" in repr(found)


def test_of_equals_the_default_wins(found: Exploration) -> None:
    equal = tuple(replace(row, cycles=1_000) for row in found.rows)
    assert {each.objective for each in totals_of(equal)[:1]} == {"latency"}


def test_a_saved_exploration_is_the_same(found: Exploration, tmp_path: Path) -> None:
    path = found.save(tmp_path / "found.json")
    assert htvm.report.load_exploration(path) == found
    path.write_text("{}")
    with pytest.raises(InputError, match="no exploration"):
        htvm.report.load_exploration(path)


def test_the_map_has_the_cycles_of_all_weights(found: Exploration) -> None:
    """Over alpha and a weight, each cell is the sum of the layers' best tiles with them."""
    wide = htvm.explore(
        LAYERS, "diana.digital", objectives=["array"], l1_budgets=BUDGETS, alphas=(1, 5),
        betas={"long DMA": (0, 9, 40_000)}, tiling=TilingOptions(schedule="published"),
    )  # fmt: skip
    panels = [axes for axes in wide.plot_heat().axes if axes.get_title()]
    assert [axes.get_title() for axes in panels] == [f"L1 budget {b / 1000:g} kB" for b in BUDGETS]
    for axes, budget in zip(panels, BUDGETS, strict=True):
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("alpha", "long DMA")
        assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "5"]
        (image,) = axes.images
        drawn = np.ma.filled(image.get_array().astype(float), np.nan)
        assert drawn.shape == (3, 2)
        for (up, across), value in np.ndenumerate(drawn):
            weights = ((1, 5)[across], (0, 9, 40_000)[up])
            cycles = [
                row.cycles for row in wide.rows
                if (row.l1_budget, row.alpha, dict(row.betas)["long DMA"]) == (budget, *weights)
            ]  # fmt: skip
            assert len(cycles) == len(LAYERS)
            assert np.isnan(value) if budget == 300 else value == sum(c or 0 for c in cycles)
        words = [text.get_text() for text in axes.texts]
        assert words[0] == ("no tile" if budget == 300 else f"{drawn[0, 0]:,.0f}")
    with pytest.raises(InputError, match="long DMA"):
        found.plot_heat("none of these")


def test_the_front_is_what_nothing_beats(found: Exploration) -> None:
    able = [each for each in found.totals if each.cycles is not None]
    assert all(each.energy_uj is not None for each in able)  # DIANA's power is published
    cycles, energy = found.plot_pareto().axes
    for axes, value in ((cycles, "cycles"), (energy, "energy_uj")):
        points = {tuple(at) for each in axes.collections for at in each.get_offsets().tolist()}
        wanted = {(each.l1_bytes / 1000, float(getattr(each, value))) for each in able}
        assert points == wanted
        (line,) = axes.lines
        front = list(zip(*line.get_data(), strict=True))
        for x, y in front:
            assert not any(a <= x and b <= y and (a, b) != (x, y) for a, b in points)
        for at in points - set(front):
            assert any(x <= at[0] and y <= at[1] for x, y in front)
    assert "kB" in cycles.get_xlabel() and "uJ" in energy.get_ylabel()


def test_no_tiles_take_more_than_their_budget(found: Exploration) -> None:
    """The weights of DIANA's digital core are not in L1; those of a cluster's cores are."""
    cluster = htvm.explore(LAYERS[0], "snitch_ita.cluster", l1_budgets=(20_000, 90_000))
    for row in (*found.rows, *cluster.rows):
        if row.cycles is None:
            assert row.l1_bytes is None
            continue
        assert row.l1_in and row.l1_out and row.l1_weights and row.buffers and row.l1_bytes
        parts = row.l1_in + row.l1_out
        if row.accelerator == "cluster":
            parts += row.l1_weights
        assert row.l1_bytes == row.buffers * parts <= row.l1_budget


def test_energy_is_the_published_power_for_as_long_as_it_takes(found: Exploration) -> None:
    power = DIANA.power("digital")
    assert power is not None
    for row in found.rows:
        if row.cycles is None:
            assert row.energy_uj is None
        else:
            assert row.energy_uj == pytest.approx(power.milliwatts * DIANA.cycles_to_ms(row.cycles))
    unknown = tuple(replace(row, energy_uj=None) for row in found.rows)
    assert {each.energy_uj for each in totals_of(unknown)} == {None}
    assert len(replace(found, rows=unknown).plot_pareto().axes) == 1


@given(
    objective=st.none() | NAMES,
    l1=st.none() | st.integers(1, 1 << 40),
    schedule=st.sampled_from(["published", "decoupled", "overlapped"]),
    layers=st.dictionaries(NAMES, NAMES, max_size=3),
)
def test_the_file_says_what_was_written(tmp_path_factory, objective, l1, schedule, layers) -> None:
    options = TilingOptions(
        objective=objective, l1_budget=l1, schedule=schedule, layers=tuple(layers.items())
    )
    path = tmp_path_factory.mktemp("tiling") / "tiling.json"
    assert read_tiling(write_tiling(options, path)) == options


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "cannot be read"),
        (b"[]", "cannot be read"),
        (b'{"format": "htvm tiling 2"}', "htvm tiling 2"),
        (b'{"format": "htvm tiling 1", "speed": 1}', "speed"),
        (b'{"format": "htvm tiling 1", "l1": -4}', "l1_budget"),
        (b'{"format": "htvm tiling 1", "l1": "64k"}', "cannot be read"),
        (b'{"format": "htvm tiling 1", "schedule": "quick"}', "quick"),
        (b"\xff", "cannot be read"),
    ],
)
def test_another_file_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "tiling.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_tiling(path)
    with pytest.raises(InputError, match="No such file"):
        read_tiling(tmp_path / "none.json")


def test_objectives_by_name() -> None:
    known = DIGITAL.objectives
    assert objective_named("latency", known, "") is None
    array = objective_named("array", known, "")
    assert array == known["array"]
    betas = {term.name: 7 + number for number, term in enumerate(known["array"].heuristics)}
    other = objective_named(objective_text("array", 3, betas), known, "")
    assert other is not None and other.alpha == 3
    assert {term.name: term.weight for term in other.heuristics} == betas
    for text in ("quick", "array(speed=1)", "array(alpha=x)", "array(alpha)", "latency(alpha=1)"):
        with pytest.raises(TargetError):
            objective_named(text, known, "")


@pytest.mark.rotating(1)
@pytest.mark.parametrize("schedule", ["published", "overlapped"])
def test_a_layer_is_tiled_for_its_own_objective(schedule: str) -> None:
    """Two layers of one shape, tiled differently, as each alone would be."""
    model = htvm.zoo.resnet8()
    options = TilingOptions(
        l1_budget=8_000, schedule=schedule, objective="none", layers=(("conv2d_1", "array"),)
    )
    work = compile_model(model, "diana.digital", BuildOptions(tiling=options))
    plans = {
        kernel.layer_name: kernel
        for code in work.regions.values()
        for kernel in code.kernels
        if kernel.kind == "layer"
    }
    if schedule == "published":
        for name, objective in (("conv2d_1", "array"), ("conv2d_2", "none")):
            layer, plan = plans[name].layer, plans[name].plan
            assert layer is not None and plan is not None
            alone = replace(options, objective=objective, layers=())
            assert plan.solution.tile == Cost(DIANA, alone).best_tile(DIGITAL, layer).tile
    first, second = plans["conv2d_1"].plan, plans["conv2d_2"].plan
    assert first is not None and second is not None
    assert first.solution.tile != second.solution.tile


def test_estimates_are_for_a_layers_own_objective() -> None:
    layer = LAYERS[0]
    twin = replace(layer, name="twin")
    options = TilingOptions(l1_budget=8_000, objective="none", layers=(("twin", "array"),))
    both = Cost(DIANA, options)
    alone = [Cost(DIANA, options).cycles_alone(DIGITAL, each) for each in (layer, twin)]
    assert [both.cycles_alone(DIGITAL, each) for each in (layer, twin)] == alone
    assert alone[0] != alone[1]


def test_a_layer_that_the_network_does_not_have_is_named() -> None:
    options = TilingOptions(layers=(("conv2d_1", "array"), ("conv2d_99", "array")))
    with pytest.raises(TargetError, match="there is no layer 'conv2d_99'") as error:
        compile_model(htvm.zoo.resnet8(), "diana.digital", BuildOptions(tiling=options))
    assert error.value.where == "option 'tiling'" and "did you mean conv2d_" in error.value.hint


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tiling", "none.json"], "cannot be read"),
        (["--tiling", "tiling.json", "--schedule", "published"], "--schedule published"),
        (["--tiling", "tiling.json", "--l1", "4k"], "--l1 4096"),
        (["--l1", "much"], "is no size"),
        (["--objective", "quick"], "quick"),
    ],
)
@pytest.mark.parametrize("verb", ["run", "report", "fit"])
def test_options_that_contradict(
    verb: str, words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_tiling(TilingOptions(objective="latency", l1_budget=8192), "tiling.json")
    runner = CliRunner()
    with runner.isolation() as streams:
        assert exit_code(app, [verb, "zoo:resnet8", *words]) == 2
        assert said in streams[1].getvalue().decode()
