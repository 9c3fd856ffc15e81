"""docs/operators.md says what the readers and the rules say themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from byoc_dory.soc.registry import resolve
from htvm.frontend.onnx.dialect import READERS
from htvm.frontend.qdq import HANDLERS as RELAX
from htvm.frontend.tflite.handlers import HANDLERS as TFLITE

PAGE = Path(__file__).parents[2] / "docs" / "operators.md"
CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"
NUMBERS = {"five": 5, "six": 6, "seven": 7, "eight": 8}


def first_lines(things: Iterable[Any]) -> list[str]:
    """Their public statements, each once."""
    return list(dict.fromkeys((thing.__doc__ or "").strip().split("\n")[0] for thing in things))


def names(handlers: Mapping[str, Any]) -> list[str]:
    return [", ".join(f"`{name.removeprefix('relax.')}`" for name in sorted(handlers))]


def expected() -> dict[str, list[str]]:
    """Heading -> the lines of its list."""
    sections = {
        "TFLite": first_lines(TFLITE[name] for name in sorted(TFLITE)),
        "Relax": names(RELAX),
    }
    for dialect, entry in READERS.items():
        handlers = import_module(entry.module).HANDLERS
        sections[f"`{dialect}`: {entry.title}"] = names(handlers)
    for accelerator in resolve("diana").accelerators:
        sections[f"DIANA's {accelerator.name} core"] = first_lines(accelerator.rules)
    return sections


def written() -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {}
    heading = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif line.startswith("- "):
            sections.setdefault(heading, []).append(line[2:])
    return sections


@pytest.mark.parametrize("heading", expected())
def test_a_list_is_what_the_code_says(heading: str) -> None:
    assert written().get(heading) == expected()[heading], "copy the lines into docs/operators.md"


def test_every_operator_of_tflite_is_named() -> None:
    words = set(re.findall(r"\w+", " ".join(written()["TFLite"])))
    assert set(TFLITE) - words == set()


def test_there_is_no_list_that_no_code_stands_for() -> None:
    assert set(written()) == set(expected())


def test_the_numbers_in_the_changelog_are_right() -> None:
    text = CHANGELOG.read_text(encoding="utf-8")
    (operators,) = re.findall(r"TFLite int8 files .* (\d+) operators", text)
    (dialects,) = re.findall(r"ONNX files are read in (\w+) dialects", text)
    assert int(operators) == len(TFLITE)
    assert NUMBERS[dialects] == len(READERS)
