"""The comparison of ways of tiling: what it promises on its committed layers, and its files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import fig4, tiling
from benchmarks.artefact import Artefact, write
from benchmarks.tiling_layers import BUDGETS, SHAPES, Shape
from byoc_dory.options import TilingOptions
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.tiling import shortage_of
from byoc_dory.tiling.latency import all_candidates

SMALL = tuple(shape for shape in SHAPES if not shape.name.startswith("larger"))


def check(shape: Shape, budget: int) -> int:
    """Latency loses to no way of tiling and to no candidate; how many candidates there were."""
    layer = shape.layer()
    problem = tiling.CORE.tiling_problem(DIANA, layer, TilingOptions(budget, schedule="published"))
    case = tiling.tried(shape, budget)
    if case is None:
        assert shortage_of(problem) is not None
        return 0
    cost = tiling.cycles(layer)
    for way, tile in case.tiles.items():
        assert problem.tile_fits(tile)
        assert case.cycles[way] == cost(tile) >= case.cycles["latency"], way
    every = all_candidates(problem, cost)
    assert case.cycles["latency"] <= min(candidate.cycles for candidate in every)
    return len(every)


@pytest.mark.rotating(6)
@pytest.mark.parametrize("shape", SMALL, ids=lambda shape: shape.name)
def test_small_layers(shape: Shape) -> None:
    assert sum(check(shape, budget) for budget in (4_000, 16_000)) > 1


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_all_layers_and_budgets(shape: Shape) -> None:
    assert sum(check(shape, budget) for budget in BUDGETS) > 1


def test_the_array_heuristic_is_near_the_quickest() -> None:
    """Whole rows come first, however many rows there are: a tiled x costs a command per row."""
    wide = next(shape for shape in SHAPES if shape.name == "larger 3x224 s2")
    case = tiling.tried(wide, 32_000)
    assert case is not None and case.tiled
    assert case.tiles["array"].x == 112
    assert case.over_quickest("array") < 1.1 < case.over_quickest("none")


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiling, "SHAPES", SMALL[5:6])
    made = tiling.run(tmp_path / "new" / "folder")
    names = sorted(path.name for path in (tmp_path / "new" / "folder").iterdir())
    assert names == ["tiling.json", "tiling.png", "tiling.txt"]
    data = json.loads((tmp_path / "new" / "folder" / "tiling.json").read_text())
    assert data == made.data and data["published_speed_up"] == 6.2
    published, overlapped = (data["schedules"][name] for name in ("published", "overlapped"))
    assert published["over_quickest"]["latency"]["worst"] == 1
    # The planner of the overlapped schedule gives a little latency for weights without holes.
    assert overlapped["over_quickest"]["latency"]["worst"] <= 1.05
    for blocking, beside in zip(published["cases"], overlapped["cases"], strict=True):
        assert beside["cycles"]["latency"] <= blocking["cycles"]["latency"]
    text = (tmp_path / "new" / "folder" / "tiling.txt").read_text()
    assert "published: up to 6.2x" in text and "Cases in which latency loses" in text
    monkeypatch.setattr(fig4, "SHAPES", fig4.SHAPES[:1])
    drawn = fig4.run(tmp_path)
    points = drawn.data["layers"][0]["points"]
    # The less memory, the longer the quickest tile takes; untiled it is the same for all.
    latencies = [point["cycles"]["latency"] for point in points]
    assert latencies == sorted(latencies, reverse=True)
    for point in points:
        assert point["tiled"] or len(set(point["cycles"].values())) == 1
    assert (tmp_path / "fig4.png").read_bytes().startswith(b"\x89PNG")


def test_files_are_the_same_each_time(tmp_path: Path) -> None:
    artefact = Artefact("a", "title", "text\n\n", {"x": 1})
    first = [path.read_bytes() for path in write(artefact, tmp_path)]
    assert first == [path.read_bytes() for path in write(artefact, tmp_path)]
    assert first[0] == b"title\n\ntext\n"
