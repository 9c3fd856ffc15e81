"""Reports as files: every form, read again, whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import os
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

import htvm
from htvm.errors import DependencyError, ExportError, InputError
from htvm.tools.report.data import LayerRow
from htvm.tools.report.save import FORMATS, report_json
from htvm.tools.report.types import Report
from tests.report.whole import WHOLE, deep

BARE = Report(replace(WHOLE.summary, cycles=None, platform="host"), WHOLE.layers)
_START = {".html": b"<!DOCTYPE", ".png": b"\x89PNG", ".csv": b"name,", ".txt": b"tiny for diana"}


@pytest.mark.rotating(3)
@pytest.mark.parametrize("report", [WHOLE, BARE, deep(2, 4, 2)], ids=["whole", "bare", "deep"])
@pytest.mark.parametrize("suffix", FORMATS)
def test_every_form_is_written_the_same_twice(suffix: str, report: Report, tmp_path: Path) -> None:
    first = report.save(tmp_path / f"one{suffix}").read_bytes()
    report.save(tmp_path / f"two{suffix.upper()}")
    assert first == (tmp_path / f"two{suffix.upper()}").read_bytes()
    if report is WHOLE:
        assert first.startswith(_START.get(suffix, b"{"))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [f"one{suffix}", f"two{suffix.upper()}"]
    )


@pytest.mark.parametrize("report", [WHOLE, BARE, deep(2, 4, 2)], ids=["whole", "bare", "deep"])
def test_json_is_read_again(report: Report, tmp_path: Path) -> None:
    assert htvm.report.load(report.save(tmp_path / "report.json")) == report


def test_json_meets_its_schema() -> None:
    import jsonschema

    schema = htvm.report.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    for report in (WHOLE, BARE):
        jsonschema.validate(json.loads(report_json(report)), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**json.loads(report_json(WHOLE)), "layers": 3}, schema)


def _changed(tmp_path: Path, **values: Any) -> Path:
    path = tmp_path / "changed.json"
    path.write_text(json.dumps({**json.loads(report_json(WHOLE)), **values}), encoding="utf-8")
    return path


def test_a_newer_report_is_refused_and_newer_fields_are_not(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="schema 2, this version reads up to 1.*newer one"):
        htvm.report.load(_changed(tmp_path, schema=2))
    assert htvm.report.load(_changed(tmp_path, carbon=3)) == WHOLE


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "comparison"}, "not a report"),
        ({"schema": "1"}, "schema is '1'"),
        ({"schema": True}, "schema is True"),
        ({"layers": [{"name": "a"}]}, r"missing required field `op`.*\$\.layers\[0\]"),
        ({"timeline": [{"unit": "dma", "start": "0", "end": 1}]}, r"\$\.timeline\[0\]\.start"),
        ({"timeline": [{"unit": "dma", "start": 5, "end": 1}]}, "works from cycle 5 to 1"),
        ({"layers": []}, "lives from step 0 to 0 of 0"),
        ({"maps": [{"memory": "L1", "limit": 9, "peak": 9, "blocks": [
            {"name": "a", "offset": 8, "bytes": 4, "first": 0, "last": 0}]}]}, "lies outside"),
    ],
)  # fmt: skip
def test_what_is_no_report_is_said(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        htvm.report.load(_changed(tmp_path, **change))


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"[1", b"[]", b"[" * 100_000, b"3"])
def test_what_is_no_json_is_said(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(data)
    with pytest.raises(InputError, match="saved as .json"):
        htvm.report.load(path)
    os.mkfifo(tmp_path / "pipe.json")
    for missing in (tmp_path / "missing.json", tmp_path / "pipe.json", tmp_path, "a\0b"):
        with pytest.raises(InputError, match="cannot read the report"):
            htvm.report.load(missing)


def test_trace_has_every_step_and_interval() -> None:
    trace = json.loads(report_trace_of(WHOLE))
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    names = {
        e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"
    }
    assert list(names.values()) == ["steps", "host", "dma", "digital"]
    steps = [event for event in spans if names[event["tid"]] == "steps"]
    assert [event["name"] for event in steps] == [row.label for row in WHOLE.layers]
    assert steps[0]["ts"] == pytest.approx(10 / 260) and steps[0]["dur"] == pytest.approx(
        1000 / 260
    )
    busy = {name: sum(e["args"]["cycles"] for e in spans if names[e["tid"]] == name)
            for name in ("host", "dma", "digital")}  # fmt: skip
    assert busy == {"host": 650, "dma": 140, "digital": 850}
    assert trace["otherData"] == {"clock_hz": 260_000_000, "cycles": 1_500}
    facts = {event["name"]: event["args"] for event in spans if event["tid"] == 0}
    first = WHOLE.layers[0]
    assert facts[first.label]["op"] == first.op
    assert any("compute" in args and "bytes from L2" in args for args in facts.values())
    labels = {row.label for row in WHOLE.layers}
    assert labels & {event["name"] for event in spans if event["tid"] > 0}
    counted = [event for event in trace["traceEvents"] if event["ph"] == "C"]
    assert max(event["args"]["bytes"] for event in counted) == max(
        sum(b.bytes for b in each.blocks if b.first <= i <= b.last)
        for each in WHOLE.maps
        for i in range(len(WHOLE.layers))
    )


def report_trace_of(report: Report) -> str:
    """The trace, as it is saved."""
    return FORMATS[".perfetto.json"](report).decode()


def test_trace_without_cycles_says_why() -> None:
    other = json.loads(report_trace_of(BARE))["otherData"]
    assert other["why"] == "this platform counts none"


def test_csv_has_every_field_of_every_step() -> None:
    rows = list(csv.DictReader(io.StringIO(FORMATS[".csv"](WHOLE).decode())))
    assert len(rows) == 2 and rows[0]["energy_uj"] == "0.096" and rows[1]["energy_uj"] == ""
    assert {field.name for field in fields(LayerRow)} - {"causes"} <= set(rows[0])


def test_text_says_energy_and_accuracy() -> None:
    text = str(WHOLE)
    assert "energy: 0.10 uJ for 66.7 % of the cycles, of the rest no power is known" in text
    assert "layers on accelerators (1): median error 2.0 %, worst conv2d_0 (-2.0 %)" in text
    assert "energy" not in str(replace(WHOLE, energy=None))


@pytest.mark.parametrize("name", ["report", "report.pdf", ".html", "report.htm", "json"])
def test_a_suffix_that_says_nothing_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="which kind of report.*\\.html, \\.txt"):
        WHOLE.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_places_that_cannot_be_written_are_left_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "file").write_text("mine")
    loop = tmp_path / "loop.html"
    loop.symlink_to(loop)
    places = [tmp_path / "no" / "a.html", tmp_path / "folder.html", tmp_path / "file" / "a.html"]
    before = sorted(tmp_path.rglob("*"))
    for place in [*places, loop, tmp_path / ("a" * 300 + ".html"), tmp_path / "a\0.html"]:
        with pytest.raises(ExportError, match="cannot write the report"):
            WHOLE.save(place)
    assert sorted(tmp_path.rglob("*")) == before and (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_that_must_not_be_written_is_said(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ExportError, match="cannot write the report"):
        WHOLE.save(tmp_path / "a.html")


def test_a_disk_that_fills_up_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "a.txt"
    place.write_text("old")

    def full(path: Path, data: bytes) -> int:
        with path.open("wb") as stream:
            stream.write(data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ExportError, match="cannot write the report: No space left"):
        WHOLE.save(place)
    assert place.read_text() == "old" and list(tmp_path.iterdir()) == [place]


def test_a_link_is_written_through(tmp_path: Path) -> None:
    target = tmp_path / "target.txt"
    target.write_text("old")
    (tmp_path / "link.txt").symlink_to(target)
    WHOLE.save(tmp_path / "link.txt")
    assert (tmp_path / "link.txt").is_symlink() and target.read_text().startswith("tiny for diana")


def test_without_matplotlib_a_figure_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(DependencyError, match=r"htvm\[explore\]"):
        WHOLE.save(tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == []
