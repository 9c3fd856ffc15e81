"""The committed tables are those of today's programs; `benchmarks.tables` makes the others anew."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from benchmarks.made_of import RowSource, computed, program, record, recorded
from benchmarks.tables import TABLES, Table, stale
from htvm import zoo
from htvm.errors import DependencyError
from htvm.progress import Progress
from tests.rotation import today

# A row of each on every commit, because they are made quickly.
EVERYDAY = ("table_ii", "fig4", "fig5", "siracusa", "estimators")
ROWS = {table.name: list(table.rows()) for table in TABLES}
REMEDY = {table.name: table.remedy for table in TABLES}


def check(table: str, row: RowSource) -> None:
    """Make a row anew, and compare."""
    if not row.is_makeable:
        pytest.skip(f"{row.needs} is not there")
    try:
        found = row.digest()
    except (ImportError, DependencyError) as error:
        pytest.skip(str(error))
    assert found == recorded()[table][row.name], f"{table} is stale: {REMEDY[table]}"


@pytest.mark.parametrize("table", [name for name, rows in ROWS.items() if rows])
def test_every_row_says_what_it_is_made_of(table: str) -> None:
    assert set(recorded().get(table, ())) == {row.name for row in ROWS[table]}, REMEDY[table]
    assert all(recorded()[table].values())


@pytest.mark.parametrize("table", EVERYDAY)
def test_a_row_is_made_of_todays_program(table: str) -> None:
    check(table, ROWS[table][today() % len(ROWS[table])])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "row"),
    [
        pytest.param(table, row, id=f"{table}: {row.name}")
        for table, rows in ROWS.items()
        for row in rows
    ],
)
def test_rows_are_made_of_todays_programs(table: str, row: RowSource) -> None:
    check(table, row)


def test_a_changed_cost_makes_a_row_stale() -> None:
    model = partial(zoo.build, "toyadmos")
    digests = [
        program("toyadmos", model, target, schedule="overlapped").digest()
        for target in ("diana.digital", "diana.digital:digital.dense_trigger_cycles=486")
    ]
    known = recorded()["table_ii"]["toyadmos (8-bit) on diana.digital, schedule=overlapped"]
    assert digests[0] == known != digests[1]


def test_stale_rows_are_named(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    cycles = {"one": 1, "two": 2}
    rows = [computed(name, partial(cycles.__getitem__, name)) for name in cycles]
    monkeypatch.setattr("benchmarks.made_of.DIGESTS", tmp_path / "digests.json")
    monkeypatch.setattr(Table, "rows", lambda table: iter(rows))
    table = Table("numbers", 1, "benchmarks.numbers")
    record("other", [])
    assert list(stale(table, Progress())) == ["one: was never made", "two: was never made"]
    record("numbers", rows)
    assert list(stale(table, Progress())) == []
    cycles["two"] = 3
    (said,) = stale(table, Progress())
    assert said.startswith("two: made of ")


def test_rows_that_cannot_be_made_keep_their_digests(tmp_path) -> None:
    path, file = tmp_path / "digests.json", tmp_path / "network.onnx"
    row = RowSource("of a file", lambda: "1 cycle", file)
    file.touch()
    record("table", [row], path)
    file.unlink()
    record("table", [row], path)
    assert recorded(path) == {"table": {"of a file": "1 cycle"}}


@pytest.mark.slow  # a compiler's runtime library is compiled twice
@pytest.mark.parametrize("target", ["cortex_m0plus", "siracusa.cpu"])
def test_a_digest_does_not_depend_on_folders(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = set()
    for name in ("a", "another"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
        found.add(program("digits", partial(zoo.build, "digits"), target).digest())
    assert len(found) == 1
