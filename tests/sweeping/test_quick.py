"""Sweeps over the parametrised accelerator: networks compiled once, designs assembled late."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import htvm
from htvm import zoo
from htvm.errors import TargetError
from htvm.inputs import seeded_inputs
from htvm.tools.sweeping import sweep
from htvm.tools.sweeping.evaluate import evaluate
from htvm.tools.sweeping.row import Job, Row
from htvm.tools.sweeping.sweep import Chunk

GRID = {
    "pes": [15, 64],
    "parallel": ["input", "output"],
    "sram": ["4KiB", "64KiB"],
    "rows": ["published", "tiled"],
}


@pytest.fixture(scope="module")
def found() -> htvm.Designs:
    return htvm.sweep(zoo.build("ds_cnn"), "dla", GRID, jobs=1)


def test_all_designs_are_exact_or_infeasible(found: htvm.Designs) -> None:
    frame = found.frame
    assert len(frame) == 16
    assert set(frame.status) == {"ok", "infeasible"}
    assert frame[frame.status == "ok"].exact.all()
    small = frame[frame.status == "infeasible"]
    assert set(small.sram) == {4 << 10}
    assert small.reason.str.contains("the limit is 4096 B").all()
    assert (small.limit == 4 << 10).all() and (small.smallest > 4 << 10).all()
    assert small.levers.str.contains("of SRAM or more").all()


def test_cycles_are_those_of_the_whole_program(found: htvm.Designs) -> None:
    """The same design as a program on the simulated SoC: less than 1 % more or less."""
    row = next(row for row in found.rows if row.status == "ok" and row.target.count(",") >= 2)
    module = htvm.build(zoo.build("ds_cnn"), target=row.target)
    ran = module.run(seeded_inputs(module.compiled.source.inputs, 0))
    assert row.cycles is not None and ran.cycles is not None
    assert abs(row.cycles - ran.cycles) < 0.01 * ran.cycles


def test_a_wrong_stream_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the simulator computes is compared, element for element."""
    from byoc_dory.soc.dla.regions import DlaRegions

    real = DlaRegions.run

    def wrong(*given: object) -> object:
        outputs, count = real(*given)  # type: ignore[arg-type]
        outputs[0][0] ^= 1
        return outputs, count

    monkeypatch.setattr(DlaRegions, "run", wrong)
    frame = htvm.sweep(zoo.build("toyadmos"), "dla", {"pes": [8]}, jobs=1).frame
    assert list(frame.exact) == [False]


def test_rows_of_a_chunk_that_comes_in_parts_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a chunk that ended its process: its tasks are executed one by one."""
    sizes = []

    def one_by_one(job: Job, chunks: Sequence[Chunk], *_: object) -> Iterator[list[Row]]:
        for chunk in chunks:
            sizes.append(len(chunk))
            for task in chunk:
                yield evaluate(job, (task,))

    monkeypatch.setattr(sweep, "executed", one_by_one)
    grid = {"pes": [8, 15, 16, 64], "fused": [True, False]}
    frame = htvm.sweep(zoo.build("toyadmos"), "dla", grid, jobs=1).frame
    assert sizes == [2, 2, 2, 2] and len(frame) == 8 and frame.exact.all()


def test_bad_parameters_are_refused_before_anything_is_built() -> None:
    for grid, says in (
        ({"pes": [0]}, "pes"),
        ({"sram": ["-1"]}, "sram"),
        ({"speed": [1]}, "no parameter 'speed'"),
        ({"depthwise": ["gpu"]}, "one of cpu, emulated, native"),
    ):
        with pytest.raises(TargetError, match=says):
            htvm.sweep("zoo:toyadmos", "dla", grid)  # type: ignore[arg-type]


def test_contradicting_parameters_are_rows() -> None:
    grid = {"pes": [8, 9], "parallel": ["both"], "pes_in": [4]}
    frame = htvm.sweep(zoo.build("toyadmos"), "dla", grid, jobs=1).frame
    assert list(frame.status) == ["ok", "infeasible"]
    assert "pes_in=4 does not divide pes=9" in frame.reason[1]


@pytest.mark.slow
def test_processes_and_a_cluster_give_the_same_file(tmp_path: Path) -> None:
    import distributed

    models = ["zoo:resnet8", "zoo:toyadmos"]
    grid = {**GRID, "depthwise": ["cpu", "native"], "fused": [True, False]}
    paths = [tmp_path / f"{number}.parquet" for number in range(3)]
    frame = htvm.sweep(models, "dla", grid, jobs=1, results=paths[0]).frame
    assert len(frame) == 128 and frame[frame.status == "ok"].exact.all()
    assert not (frame.status == "failed").any()
    htvm.sweep(models, "dla", grid, jobs=2, results=paths[1])
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None,
            local_directory=str(tmp_path),
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        htvm.sweep(models, "dla", grid, client=client, results=paths[2])
    assert len({path.read_bytes() for path in paths}) == 1


@pytest.mark.slow
@pytest.mark.parametrize("network", ["ds_cnn", "resnet8", "toyadmos", "mobilenet_v1"])
@pytest.mark.parametrize(
    "design",
    [
        "sram=8KiB,rows=tiled,pes=15,parallel=input",
        "pes=64,sram=64KiB",
        "pes=256,sram=24KiB,depthwise=emulated,rows=tiled",
        "pes=32,sram=256KiB,fused=off,depthwise=cpu,dma_bytes=4",
    ],
)
def test_cycles_of_more_designs(network: str, design: str) -> None:
    """Device cycles are counted, the driver's are estimated: at most 2 % beside the program's."""
    model = zoo.build(network)
    module = htvm.build(model, target=f"dla:{design}")
    ran = module.run(seeded_inputs(model.inputs, 0)).cycles
    grid = dict(entry.split("=") for entry in design.split(","))
    row = htvm.sweep(model, "dla", grid, jobs=1).rows[0]
    assert row.exact and row.cycles is not None and ran is not None
    assert abs(row.cycles - ran) < 0.02 * ran


@pytest.mark.slow
def test_a_search_finds_what_the_grid_has() -> None:
    grid = {"pes": [16, 32, 64, 128], "sram": ["32KiB", "64KiB", "128KiB"]}
    whole = htvm.sweep(zoo.build("ds_cnn"), "dla", grid, jobs=1)
    searched = htvm.sweep(
        zoo.build("ds_cnn"), "dla", grid, jobs=1, method="search", samples=60,
        objectives=("cycles", "pes"),
    )  # fmt: skip

    def best(designs: htvm.Designs) -> set[tuple[int, int]]:
        frame = designs.pareto("cycles", "pes")
        return set(zip(frame.cycles, frame.pes, strict=True))

    assert best(searched) == best(whole)
