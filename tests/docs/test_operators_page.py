"""docs/operators.md says what the readers and the rules say themselves."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.operators_page import attributes_of, sections
from htvm.frontend.onnx.dialect import READERS
from htvm.frontend.tflite import HANDLERS as TFLITE

PAGE = Path(__file__).parents[2] / "docs" / "operators.md"
CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"
NUMBERS = {"five": 5, "six": 6, "seven": 7, "eight": 8}


def written() -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {}
    heading = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif line.startswith("- "):
            sections.setdefault(heading, []).append(line[2:])
    return sections


def test_every_list_is_what_the_code_says() -> None:
    assert written() == sections(), "python -m benchmarks.operators_page --write"


def test_every_operator_of_tflite_is_named() -> None:
    words = set(re.findall(r"\w+", " ".join(written()["TFLite"])))
    assert set(TFLITE) - words == set()


def test_the_numbers_in_the_changelog_are_right() -> None:
    text = CHANGELOG.read_text(encoding="utf-8")
    (operators,) = re.findall(r"TFLite int8 files .* (\d+) operators", text)
    (dialects,) = re.findall(r"ONNX files are read in (\w+) dialects", text)
    assert int(operators) == len(TFLITE)
    assert NUMBERS[dialects] == len(READERS)


def test_attributes_are_found_through_the_functions_that_a_handler_calls() -> None:
    handlers = READERS["real"].load().handlers
    assert {"group", "strides", "pads", "dilations"} <= set(attributes_of(handlers["Conv"], "Conv"))
    assert attributes_of(handlers["LeakyRelu"], "LeakyRelu") == ("alpha",)
