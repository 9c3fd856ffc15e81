"""``htvm explore``."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from htvm.tools.cli.app import main
from htvm.tools.cli.verbs.explore import write_sweep

COMMON = ["explore", "zoo:toyadmos", "-t", "diana.digital", "--l1", "300", "--l1", "64000"]


def test_table_json_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = [*COMMON, "--objective", "array", "--objective", "latency"]
    assert main([*chosen, "--out", str(tmp_path / "new")]) == 0
    shown = capsys.readouterr()
    assert "latency" in shown.out and "k,c,y,x" in shown.out
    assert max(map(len, shown.out.split("\n\n")[0].splitlines())) <= 80
    # 640 inputs do not fit 300 bytes.
    assert "infeasible" in shown.out and "raise the L1 budget to 656 B" in shown.out
    names = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert names == [
        "exploration.json", "latency.png", "memory.png", "pareto.png", "tiling.json", "tilings.csv",
    ]  # fmt: skip
    with (tmp_path / "new" / "tilings.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 10 * 2 * 2 and rows[-1]["cycles"].isdecimal()
    assert main([*chosen, "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["tilings"]
    assert len(listed) == len(rows)
    assert {row["status"] for row in listed} == {"infeasible", "optimal", "feasible"}


@pytest.mark.slow
def test_less_and_less_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    curve = ["explore", "zoo:ds_cnn", "-t", "generic.cpu", "--memory"]
    assert main([*curve, "--json", "--out", str(tmp_path / "new")]) == 0
    points = json.loads(capsys.readouterr().out)["memory"]
    arenas = [point["arena"] for point in points]
    assert (points[0]["limit"], points[-1]["limit"]) == ("none", "least")
    assert arenas == sorted(arenas, reverse=True) and arenas[-1] < arenas[0]
    assert points[0]["more"] == 0 and points[0]["chains"] == "" and points[-1]["chains"]
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "memory.csv", "memory.png",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["-t", "diana"], "diana.cpu"), (["-t", "generic.cpu", "--alpha", "1"], "--memory")],
)
def test_what_has_no_curve_is_refused(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explore", "zoo:digits", "--memory", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_weights(capsys: pytest.CaptureFixture[str]) -> None:
    weights = ["--objective", "array", "--alpha", "0", "--beta", "long DMA=0,-5"]
    assert main([*COMMON, *weights, "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["tilings"]
    assert {(row["alpha"], row["beta: long DMA"]) for row in listed} == {(0, 0), (0, -5)}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--beta", "long DMA"], ["long DMA", "--beta"]),
        (["--beta", "long DMA=many"], ["many", "--beta"]),
        (["--beta", "speed=1"], ["speed", "long DMA"]),
        (["--objective", "speed"], ["speed", "latency"]),
        (["--l1", "0"], ["--l1"]),
    ],
)
def test_what_the_user_can_mend(
    arguments: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*COMMON, *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and "Traceback" not in shown.err
    for word in words:
        assert word in shown.err


def test_a_folder_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    arguments = [*COMMON, "--objective", "array", "--out", str(tmp_path / "file" / "folder")]
    assert main(arguments) == 2
    assert "cannot write there" in capsys.readouterr().err


def test_nothing_is_written_before_all_is_drawn(tmp_path: Path) -> None:
    class Drawn:
        records: tuple[dict[str, int], ...] = ({"cycles": 1},)

        def plot_latency(self) -> Drawn:
            return self

        plot_memory = plot_pareto = plot_latency

        def savefig(self, file: object, **_: object) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_sweep(Drawn(), tmp_path / "sweep")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
