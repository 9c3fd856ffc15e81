"""The committed tables are those of today's programs; `benchmarks.tables` makes the others anew."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from benchmarks.made_of import RowSource, computed, program, record, recorded
from benchmarks.tables import TABLES, Part, Table, Verdict, checked, parts_of, verdict
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


@pytest.fixture
def numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Figures of a table of two rows, which was never made."""
    cycles = {"one": 1, "two": 2}
    rows = [computed(name, partial(cycles.__getitem__, name)) for name in cycles]
    monkeypatch.setattr("benchmarks.made_of.DIGESTS", tmp_path / "digests.json")
    monkeypatch.setattr(Table, "rows", lambda table: iter(rows))
    monkeypatch.setattr("benchmarks.tables.TABLES", [Table("numbers", 1, "benchmarks.numbers")])
    record("other", [])
    return cycles


def test_a_stale_row_is_named(numbers: dict[str, int]) -> None:
    two = Part("numbers", "two")
    assert verdict(two) == Verdict(stale=True, said="two: was never made")
    record("numbers", Table("numbers", 1, "benchmarks.numbers").rows())
    assert verdict(two) == Verdict()
    numbers["two"] = 3
    found = verdict(two)
    assert found.stale
    assert found.said.startswith("two: made of ")


def test_a_table_is_done_with_its_first_stale_row(numbers: dict[str, int]) -> None:
    slow, quick = (Table(name, minutes, "") for name, minutes in (("slow", 9), ("quick", 1)))
    assert {part.table for part in parts_of([slow, quick])[:2]} == {"quick"}
    seen: list[Part] = []

    def check(part: Part) -> Verdict:
        seen.append(part)
        return Verdict(stale=part.table == "slow", said=part.row)

    with ThreadPoolExecutor(1) as pool:
        found = dict(checked([slow, quick], check, pool, Progress()))
    assert [table.name for table in found] == ["quick", "slow"]
    assert [verdict.said for verdict in found[quick]] == [part.row for part in seen[:2]]
    assert found[slow][0].stale


def test_a_check_that_fails_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.json"
    table = Table("page", 1, "", check=f"json.tool {page}")
    monkeypatch.setattr("benchmarks.tables.TABLES", [table])
    page.write_text("{}")
    assert verdict(Part("page")) == Verdict()
    page.write_text("{")
    found = verdict(Part("page"))
    assert found.stale
    assert "line 1 column 2" in found.said


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
