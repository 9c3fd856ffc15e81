"""`htvm.sweep`: designs, rows, results files, processes; measured with cheap stand-ins for builds,
and in the slow tests with real ones."""

from __future__ import annotations

import errno
import functools
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htvm
from byoc_dory.errors import TilingError
from byoc_dory.soc.base import Target
from byoc_dory.soc.registry import resolve
from htvm.build_options import BuildOptions
from htvm.errors import DependencyError, ExportError, HtvmError, ModelError, TargetError
from htvm.opening import opened as open_model
from htvm.tools.cli import main
from htvm.tools.cli.verbs.sweep import split_words
from htvm.tools.sweeping import evaluate as evaluating
from htvm.tools.sweeping.designs import front
from htvm.tools.sweeping.row import COLUMNS, Job, Row, Task
from htvm.tools.sweeping.space import space_of
from htvm.tools.sweeping.store import Store
from htvm.tools.sweeping.sweep import executed

NETWORK = "zoo:toyadmos"
GRID = {"cores": [1, 2, 4, 8], "l1": ["32KiB", "64KiB"]}


class Standin:
    """Says numbers that depend on the design, and counts its calls; it builds nothing."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.on_call: Callable[[Target], None] = lambda target: None

    def row(self, task: Task, target: Target, row: Row) -> Row:
        self.calls.append(target.name)
        self.on_call(target)
        cores = int(target.soc.settings["cores"])
        size = int(target.soc.settings["l1"])
        if cores == 8 and size < 64 << 10:
            raise TilingError("too small", where="layer 'a'", hint="more L1",
                              limit=size, demand=9 * size, smallest=2 * size)  # fmt: skip
        return replace(row, exact=True, cycles=8000 // cores + size // 1024, ms=1.0 / cores,
                       network_macs=1000, moved_bytes=size)  # fmt: skip


@functools.cache
def opened(name: str, _limits: object = None) -> htvm.Model:
    return htvm.load(name)


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Standin:
    found = Standin()
    monkeypatch.setattr("htvm.tools.sweeping.sweep.opened", opened)
    monkeypatch.setattr(evaluating, "_evaluator", lambda digest, hidden: found)
    return found


def swept(results: Path | None = None, **options: Any) -> htvm.Designs:
    return htvm.sweep(NETWORK, "siracusa", GRID, results=results, jobs=1, **options)


# ------------------------------------------------------------------------------ designs


def test_grids_have_all_combinations_in_order() -> None:
    space = space_of(resolve("siracusa"), {"l1": ["32KiB", 65536, "64k"], "cores": (2, 1)})
    assert space.size == 4
    assert space.designs("grid", None, 0) == [
        {"cores": 2, "l1": 32768}, {"cores": 2, "l1": 65536},
        {"cores": 1, "l1": 32768}, {"cores": 1, "l1": 65536},
    ]  # fmt: skip


def test_no_parameter_has_the_name_of_a_figure() -> None:
    names = [name for name in htvm.targets() if "." not in name]
    parameters = {entry.name for name in names for entry in resolve(name).soc.parameters}
    assert "macs" in parameters and not parameters & set(COLUMNS)
    row = Row(0, "net", "ethos_u55:macs=64", (("macs", 64),), network_macs=1000)
    assert (row.record["macs"], row.record["network_macs"]) == (64, 1000)


def test_samples_are_seeded_and_fill_the_space() -> None:
    grid = {"cores": range(1, 9), "l1": [k << 10 for k in range(32, 96)]}
    space = space_of(resolve("siracusa"), grid)
    for method in ("random", "latin"):
        drawn = space.designs(method, 64, 1)
        assert drawn == space.designs(method, 64, 1) != space.designs(method, 64, 2)
        assert len({tuple(d.items()) for d in drawn}) == len(drawn)
    latin = space.designs("latin", 64, 1)
    assert sorted(d["l1"] for d in latin) == grid["l1"]  # type: ignore[type-var]
    assert all([d["cores"] for d in latin].count(n) == 8 for n in range(1, 9))
    assert len(space.designs("random", 10_000, 0)) == space.size


@pytest.mark.parametrize(
    ("grid", "options", "says"),
    [
        ({}, {}, "there is nothing to sweep"),
        ({"kores": [1]}, {}, "no parameter 'kores'; target 'siracusa'; did you mean cores?"),
        ({"cores": [0]}, {}, "cannot be 0"),
        ({"cores": [-4]}, {}, "cannot be -4"),
        ({"cores": []}, {}, "no values of cores"),
        ({"l1": ["64 parsecs"]}, {}, "cannot be '64 parsecs'"),
        ({"cores": [1]}, {"method": "guess"}, "there is no method 'guess'"),
        ({"cores": [1]}, {"method": "random"}, "None is not a number of samples"),
        ({"cores": [1]}, {"method": "latin", "samples": 0}, "0 is not a number of samples"),
        ({"cores": [1]}, {"method": "random", "samples": True}, "True is not a number of samples"),
        ({"cores": [1]}, {"method": "random", "samples": 2.5}, "2.5 is not a number of samples"),
        ({"cores": [1]}, {"samples": 4}, "a grid has no number of samples"),
        ({"cores": [1]}, {"jobs": 0}, "0 is not a number of processes"),
        ({"cores": [1]}, {"jobs": 2, "results": "a.txt"}, "cannot be written as .txt"),
        ({"l1": [k << 10 for k in range(16, 4096)], "l2": [k << 10 for k in range(64, 4096)]}, {},
         "designs; grid; draw samples"),
    ],
)  # fmt: skip
def test_bad_grids_and_options(
    standin: Standin, grid: dict[str, object], options: Any, says: str
) -> None:
    with pytest.raises(HtvmError) as caught:
        htvm.sweep(NETWORK, "siracusa", grid, **options)
    assert says in str(caught.value)
    assert not standin.calls


def test_bad_networks_and_coefficients(standin: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match="no network to run"):
        htvm.sweep([], "siracusa", GRID)
    with pytest.raises(ModelError):
        htvm.sweep("zoo:nothing", "siracusa", GRID)
    monkeypatch.setattr("htvm.tools.sweeping.sweep.opened", open_model)
    with pytest.raises(TargetError, match="cannot be handed to other processes"):
        htvm.sweep(opened(NETWORK), "siracusa", GRID, jobs=2)
    with pytest.raises(TargetError, match="mac_pj cannot be -1"):
        htvm.Costs(mac_pj=-1)
    with pytest.raises(TargetError, match="no parameter 'pes' with a number"):
        swept(costs=htvm.Costs(area={"pes": 1.0}))
    with pytest.raises(TargetError, match="a str is not a client"):
        htvm.sweep(NETWORK, "siracusa", GRID, client="localhost")
    assert not standin.calls


# ------------------------------------------------------------------------------ any number


def test_any_number_of_a_description_can_be_swept(standin: Standin) -> None:
    grid = {"dma.queue_depth": [2, 10], "L1.size": ["64KiB", 131072], "cores": [4]}
    found = htvm.sweep(NETWORK, "siracusa:l2=1MiB", grid, jobs=1)
    assert found.axes == ("cores", "L1.size", "dma.queue_depth")
    assert [row.target for row in found.rows] == [
        "siracusa:cores=4,l2=1MiB,L1.size=64KiB,dma.queue_depth=2",
        "siracusa:cores=4,l2=1MiB,L1.size=64KiB",
        "siracusa:cores=4,l2=1MiB,L1.size=128KiB,dma.queue_depth=2",
        "siracusa:cores=4,l2=1MiB,L1.size=128KiB",
    ]
    assert list(found.frame["L1.size"]) == [65536, 65536, 131072, 131072]
    assert standin.calls == [row.target for row in found.rows]


def test_numbers_can_have_an_area(standin: Standin) -> None:
    costs = htvm.Costs(area={"dma.queue_depth": 3.0})
    found = htvm.sweep(NETWORK, "siracusa", {"dma.queue_depth": [2, 10]}, jobs=1, costs=costs)
    assert list(found.frame.area) == [6.0, 30.0]


@pytest.mark.parametrize(
    ("target", "grid", "says"),
    [
        ("diana", {"dma.queue_deph": [1]}, "did you mean dma.queue_depth? its parameters are rows"),
        ("diana", {"digital.lane": [1]}, "numbers of its description: clock_hz, L1.reserved"),
        ("diana", {"digital": [1]}, "there is no parameter 'digital'"),
        ("diana", {3: [1]}, "there is no parameter 3"),
        ("diana", {"digital.row_cycles": [1, -1]}, "digital.row_cycles (in the description: 1) "
         "cannot be -1"),
        ("diana", {"digital.row_cycles": ["many"]}, "cannot be 'many'"),
        ("diana", {"dma.queue_depth": [0]}, "dma.queue_depth (in the description: 4) cannot be 0"),
        ("diana", {"digital.lanes": [16, 32]}, "DIANA cannot have digital.lanes=32: 32 lanes with "
         "bias_bytes=64; target 'diana'"),
        ("diana", {"dma.call_cycles": [0]}, "DIANA cannot have dma.call_cycles=0: a call with one "
         "command takes 0 cycles, of which the driver has 37"),
        ("siracusa", {"L1.size": ["1GiB"]}, "Siracusa cannot have L1.size=1GiB: L1 would reach"),
        ("diana", {"L1.size": ["64KiB"]}, "L1.size is l1 here"),
        ("siracusa", {"cluster.cores": [16]}, "Siracusa cannot have cluster.cores=16"),
        ("diana:dma.queue_depth=2", {"dma.queue_depth": [1]}, "dma.queue_depth is given twice"),
        ("siracusa:cores=2", {"cores": [1]}, "cores is given twice: 2, and in the grid"),
        ({"cores": [1]}, "siracusa", "a dict is not a target"),
    ],
)  # fmt: skip
def test_bad_numbers_are_refused_before_anything_is_opened(
    standin: Standin, monkeypatch: pytest.MonkeyPatch, target: Any, grid: Any, says: str
) -> None:
    monkeypatch.setattr("htvm.tools.sweeping.sweep.opened", lambda *_: pytest.fail("opened"))
    with pytest.raises(TargetError) as caught:
        htvm.sweep(NETWORK, target, grid)
    assert says in str(caught.value)
    assert not standin.calls


def test_numbers_that_go_together_are_possible_together(standin: Standin) -> None:
    grid = {"digital.lanes": [32], "digital.bias_bytes": [128], "digital.dense_bias_bytes": [512],
            "digital.dense_max_k": [16, 32]}  # fmt: skip
    with pytest.raises(TargetError, match="32 lanes with dense_max_k=16"):
        htvm.sweep(NETWORK, "diana", grid, jobs=1)
    space = space_of(resolve("diana"), {**grid, "digital.dense_max_k": 32})
    assert space.size == 1


# ------------------------------------------------------------------------------ rows


def test_infeasible_and_failed_designs_are_rows(standin: Standin) -> None:
    def fail(target: Target) -> None:
        if target.soc.settings["cores"] == 2:
            raise ZeroDivisionError("a defect")

    standin.on_call = fail
    found = swept()
    frame = found.frame.set_index(["cores", "l1"])
    assert len(frame) == 8
    assert list(frame.loc[2].status) == ["failed"] * 2
    assert frame.loc[2, 32768].reason == "ZeroDivisionError: a defect"
    small = frame.loc[8, 32768]
    assert (small.status, small.reason, small["where"], small.levers) == (
        "infeasible", "too small", "layer 'a'", "more L1",
    )  # fmt: skip
    assert (small.limit, small.demand, small.smallest) == (32768, 9 * 32768, 2 * 32768)
    assert frame.loc[8, 65536].status == "ok"
    assert "1 infeasible; the first, toyadmos on siracusa:l1=32KiB: too small" in str(found)
    assert "2 failed" in str(found)


def test_values_that_contradict_each_other_are_rows(standin: Standin) -> None:
    grid = {"cores": [1, 16], "l1": ["16KiB"]}
    frame = htvm.sweep(NETWORK, "snitch_ita", grid, jobs=1).frame
    assert list(frame.status) == ["ok", "infeasible"]
    assert "16 cores leave" in frame.reason[1]


def test_energy_and_area_by_the_users_coefficients(standin: Standin) -> None:
    assert swept().frame[["energy_uj", "area"]].isna().all(axis=None)
    costs = htvm.Costs(mac_pj=2.0, byte_pj=0.5, area={"cores": 10.0, "l1": 0.01}, base_area=3.0)
    row = swept(costs=costs).frame.iloc[2]
    assert (row.cores, row.l1) == (2, 32768)
    assert row.energy_uj == (2.0 * 1000 + 0.5 * 32768) / 1e6
    assert row.area == 3.0 + 20.0 + 327.68


def test_pareto_front_equals_its_definition() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        values = rng.integers(0, 6, (40, 3)).astype(float)
        wanted = [
            not any((b <= a).all() and (b < a).any() for b in values) for a in values
        ]  # fmt: skip
        assert list(front(values)) == wanted


def test_front_and_figures(standin: Standin, tmp_path: Path) -> None:
    found = swept(costs=htvm.Costs(area={"cores": 1.0}))
    best = found.pareto("area", "cycles")
    assert list(best.cores) == [1, 2, 4, 8] and set(best.l1[:3]) == {32768}
    with pytest.raises(TargetError, match="no numbers called 'beauty'"):
        found.pareto("beauty")
    with pytest.raises(TargetError, match="'pes' was not swept"):
        found.plot_heat("pes", "l1")
    paths = found.save(tmp_path / "out")
    assert [path.name for path in paths] == ["rows.csv", "pareto.png", "parallel.png", "heat.png"]
    again = found.save(tmp_path / "again")
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(paths, again, strict=True))


# ------------------------------------------------------------------------------ results files


@pytest.mark.rotating(1)
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_results_are_resumed_identically(standin: Standin, tmp_path: Path, suffix: str) -> None:
    whole = tmp_path / f"whole.{suffix}"
    frame = swept(whole).frame
    assert not (tmp_path / f"whole.{suffix}.part").exists()
    for stop in range(1, 8):
        countdown = itertools.count(1)

        def interrupt(target: Target, count: Any = countdown, at: int = stop) -> None:
            if next(count) == at:
                raise KeyboardInterrupt

        path = tmp_path / f"{stop}.{suffix}"
        standin.on_call = interrupt
        part = swept(path)
        assert part.interrupted and len(part.rows) == stop - 1 and not path.exists()
        # A crash may also cut off the last line.
        with path.with_name(path.name + ".part").open("ab") as file:
            file.write(b'{"design": 7, "mo')
        standin.calls.clear()
        standin.on_call = lambda target: None
        resumed = swept(path)
        assert len(standin.calls) == 8 - (stop - 1)
        assert resumed.frame.equals(frame)
        assert path.read_bytes() == whole.read_bytes()


def test_a_finished_sweep_may_be_repeated(standin: Standin, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    swept(path)
    before = path.read_bytes()
    swept(path)
    assert path.read_bytes() == before


@pytest.mark.rotating(1)
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_results_of_another_sweep_are_left_alone(
    standin: Standin, tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"a.{suffix}"
    swept(path, seed=1)
    before, calls = path.read_bytes(), len(standin.calls)
    with pytest.raises(ExportError, match="results of another sweep"):
        swept(path, seed=2)
    for text in (b"", b"a,b\n1,2\n", bytes(range(256))):
        other = tmp_path / f"other.{suffix}"
        other.write_bytes(text)
        with pytest.raises(ExportError, match="nothing was changed"):
            swept(other)
        assert other.read_bytes() == text
    assert path.read_bytes() == before and len(standin.calls) == calls


def test_an_unfinished_sweep_of_others_is_left_alone(standin: Standin, tmp_path: Path) -> None:
    part = tmp_path / "a.csv.part"
    texts = (b"hello\n", b"[1]\n", b'{"htvm_sweep": 1, "digest": "other"}\n', b"no line", b"\xff\n")
    for text in texts:
        part.write_bytes(text)
        with pytest.raises(ExportError, match="not finished") as caught:
            swept(tmp_path / "a.csv")
        assert "nothing was changed" in str(caught.value)
        assert part.read_bytes() == text
    assert not standin.calls


def test_a_full_disk_loses_nothing(
    standin: Standin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv"
    real, written = Store._append, []

    def full(store: Store, record: Any) -> None:
        if len(written) == 4:
            store._part.write(b'{"design"')  # as much as there was room for
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(record)
        real(store, record)

    monkeypatch.setattr(Store, "_append", full)
    with pytest.raises(ExportError) as caught:
        swept(path)
    assert "No space left on device; what was written stays" in str(caught.value)
    assert "start the same sweep again" in str(caught.value)
    monkeypatch.setattr(Store, "_append", real)
    standin.calls.clear()
    resumed = swept(path)
    assert len(standin.calls) == 8 - 3
    assert resumed.frame.equals(swept().frame)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write it")
def test_a_folder_that_cannot_be_written(standin: Standin, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ExportError, match="cannot write the results"):
        swept(tmp_path / "a.csv")


def test_a_results_path_that_is_a_folder(standin: Standin, tmp_path: Path) -> None:
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(ExportError, match="cannot be read"):
        swept(tmp_path / "a.csv")


def test_parquet_needs_pyarrow(
    standin: Standin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DependencyError, match=r"pyarrow.*htvm\[sweep\]"):
        swept(tmp_path / "a.parquet")
    assert not standin.calls


# ------------------------------------------------------------------------------ searches


def test_searches_are_seeded_and_resumed(standin: Standin, tmp_path: Path) -> None:
    search = {"method": "search", "samples": 30, "objectives": ("cycles", "cores")}
    found = swept(**search)
    assert len(found.rows) == 30
    assert set(found.pareto("cycles", "cores").cores) == {1, 2, 4, 8}
    countdown = itertools.count(1)

    def interrupt(target: Target) -> None:
        if next(countdown) == 14:
            raise KeyboardInterrupt

    standin.on_call = interrupt
    assert swept(tmp_path / "a.csv", **search).interrupted
    assert swept(tmp_path / "a.csv", **search).frame.equals(found.frame)
    with pytest.raises(TargetError, match="'beauty' cannot be minimised"):
        swept(method="search", samples=3, objectives=("beauty",))


# ------------------------------------------------------------------------------ the command


def test_words_of_the_command() -> None:
    words = ["a.tflite", "--cores", "1..4,8", "zoo:resnet8", "--l1=32k,64KiB", "--dma", "4..16"]
    models, grid = split_words(words, "siracusa")
    assert models == ["a.tflite", "zoo:resnet8"]
    assert grid == {
        "cores": ["1", "2", "3", "4", "8"], "l1": ["32k", "64KiB"], "dma": ["4", "8", "16"],
    }  # fmt: skip
    for bad, says in (
        (["a", "--cores"], "--cores has no values"),
        (["a", "--cores", "1", "--cores=2"], "given twice"),
        (["--cores", "1"], "there is no model"),
        (["a", "--cores", "9..4"], "stands for no values"),
    ):
        with pytest.raises(TargetError, match=says):
            split_words(bad, "siracusa")


def test_the_command(standin: Standin, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "a.csv"
    command = ["sweep", NETWORK, "-t", "siracusa", "--cores", "1,8", "--l1", "32k,64k", "-j", "1"]
    assert main([*command, "-r", str(results), "--area", "cores=2"]) == 0
    printed = capsys.readouterr().out
    assert "4 rows: 3 ran, 3 with exact outputs" in printed and "1 infeasible" in printed
    assert results.is_file()
    assert main([*command, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["status"] for row in rows] == ["ok", "ok", "infeasible", "ok"]
    assert main(["sweep", NETWORK, "-t", "siracusa", "--pes", "1"]) == 2
    assert "there is no parameter 'pes'" in capsys.readouterr().err
    assert main([*command, "--area", "cores"]) == 2


# ------------------------------------------------------------------------------ real builds


@pytest.mark.slow
def test_processes_give_the_same_frame(tmp_path: Path) -> None:
    grid = {"cores": [1, 8], "l1": ["32KiB", "64KiB"]}
    alone = htvm.sweep(NETWORK, "siracusa", grid, jobs=1).frame
    assert alone.exact.all() and (alone.status == "ok").all()
    both = htvm.sweep(NETWORK, "siracusa", grid, jobs=2).frame
    assert both.equals(alone)
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None,
            local_directory=str(tmp_path),
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        assert htvm.sweep(NETWORK, "siracusa", grid, client=client).frame.equals(alone)


@pytest.mark.slow
def test_a_killed_sweep_goes_on(tmp_path: Path) -> None:
    """A process killed at some moment; the same command then finishes with the same file."""
    command = [sys.executable, "-m", "htvm", "sweep", NETWORK, "-t", "siracusa",
               "--cores", "1,4", "--l1", "32k,64k", "-j", "1"]  # fmt: skip
    subprocess.run([*command, "-r", str(tmp_path / "whole.csv")], check=True, capture_output=True)
    path = tmp_path / "killed.csv"
    part = tmp_path / "killed.csv.part"
    with subprocess.Popen([*command, "-r", str(path)], stdout=subprocess.DEVNULL) as process:
        while not part.is_file() or part.read_bytes().count(b"\n") < 3:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    assert not path.exists()
    subprocess.run([*command, "-r", str(path)], check=True, capture_output=True)
    assert path.read_bytes() == (tmp_path / "whole.csv").read_bytes()


def suicidal(job: Job, tasks: tuple[Task, ...]) -> list[Row]:
    """Ends the process for one design."""
    rows = []
    for task in tasks:
        if dict(task.values)["cores"] == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        rows.append(Row(task.design, job.names[task.model], "", task.values))
    return rows


def killing(client: Any, jobs: int) -> None:
    options = BuildOptions()
    job = Job("", "siracusa", (NETWORK,), ("n",), options, htvm.Costs(), 0)
    chunks = [
        tuple(Task(n, 0, (("cores", n),)) for n in pair)
        for pair in ((1, 2), (3, 4), (5, 6), (7, 8))
    ]
    found = [row for rows in executed(job, chunks, jobs, client, suicidal) for row in rows]
    statuses = {row.design: row.status for row in found}
    assert len(found) == 8
    assert [d for d, status in statuses.items() if status == "failed"] == [3]
    failed = next(row for row in found if row.design == 3)
    assert failed.reason == "the process that executed it died"


@pytest.mark.slow
def test_a_design_that_kills_its_process_is_a_failed_row() -> None:
    killing(None, 2)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])  # of one, other chunks wait behind the deadly one
def test_a_design_that_kills_workers_of_a_cluster_is_a_failed_row(
    tmp_path: Path, workers: int
) -> None:
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None,
            local_directory=str(tmp_path),
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        killing(client, 2)


def dying_once(job: Job, tasks: tuple[Task, ...]) -> list[Row]:
    """Ends the process the first time; the file named by the job's digest remembers."""
    flag = Path(job.digest)
    if tasks[0].design == 3 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return [Row(task.design, job.names[task.model], "", task.values) for task in tasks]


@pytest.mark.slow
def test_designs_of_a_worker_that_dies_are_repeated(tmp_path: Path) -> None:
    import distributed

    chunks = [(Task(n, 0, (("cores", n),)),) for n in range(1, 9)]
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None,
            local_directory=str(tmp_path),
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        for number, place in enumerate((None, client)):
            flag = tmp_path / f"flag{number}"
            job = Job(str(flag), "siracusa", (NETWORK,), ("n",), BuildOptions(), htvm.Costs(), 0)
            found = [row for rows in executed(job, chunks, 2, place, dying_once) for row in rows]
            assert flag.exists()
            assert sorted(row.design for row in found) == list(range(1, 9))
            assert {row.status for row in found} == {"ok"}
