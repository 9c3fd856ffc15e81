"""What is counted of the house: lines, and what a build executes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.counting import Counts, counted
from benchmarks.house import CORE, SHAPE, Lines, accelerators_of, convolution, lines_of

_TEXT = '''"""A module."""

# A comment.
VALUE = 3  # another
"""What it is."""


def text() -> str:
    """Return a text."""
    return """
        of three lines
    """
'''


def test_lines_without_blanks_comments_and_docstrings() -> None:
    assert lines_of(_TEXT) == Lines(1, 12, 5)
    assert lines_of("") == Lines(1, 0, 0)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("house") / "convolution.tflite"
    path.write_bytes(convolution())
    return path


@pytest.fixture(scope="module")
def counts(network: Path) -> Counts:
    return counted(network, "diana", SHAPE)


def test_a_build_is_counted(counts: Counts) -> None:
    assert set(counts.executed) < set(counts.imported)
    assert counts.calls["htvm.pipeline:compile_model"] == 1
    assert counts.called("tile_program") > 0 < counts.called("check", "byoc_dory.tileloop.checks")
    assert "diana" in accelerators_of(counts)


def test_classes_that_hold_the_convolution_are_found(counts: Counts) -> None:
    assert {
        "byoc_dory.layers.maps.Convolution",
        "patterns.ops.convolution.Conv2d",
    } <= set(counts.shapes)
    assert "byoc_dory.tileloop.program.TileProgram" in counts.carriers
    assert not set(counts.shapes) & set(counts.carriers)


def test_counts_are_the_same_again(network: Path, counts: Counts) -> None:
    again = counted(network, "diana")
    assert (again.imported, again.executed, again.calls) == (
        counts.imported,
        counts.executed,
        counts.calls,
    )


@pytest.mark.rotating(1)
@pytest.mark.parametrize("target", [CORE, "nucleo-l4r5zi"])
def test_a_build_without_accelerators_imports_none(network: Path, target: str) -> None:
    found = counted(network, target)
    assert accelerators_of(found) == ()
    walked = {name for name in found.executed if name.startswith("patterns.byoc")}
    assert not walked and "patterns.dispatch.dispatching" in found.executed


def test_a_build_imports_no_other_accelerators(network: Path) -> None:
    assert accelerators_of(counted(network, "siracusa")) == ("cluster", "siracusa")
