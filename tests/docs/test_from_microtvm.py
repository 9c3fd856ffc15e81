"""The calls on the pages for users of microTVM and tvmc are those that exist."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import click
import pytest

import htvm
from byoc_dory.soc.registry import board_target, resolve
from htvm.firmware.packages import KINDS, MLF
from htvm.tools.cli.app import app

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
COMMANDS = [
    command
    for page in ("boards.md", "from-tvmc.md")
    for command in re.findall(r"`(htvm [^`]*)`", (GUIDES / page).read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_have_the_options_they_are_shown_with(command: str) -> None:
    _, verb, *words = command.split()
    found = app.get_command(click.Context(app), verb)
    assert found is not None
    known = {option for parameter in found.params for option in parameter.opts}
    options = dict(zip(words, words[1:], strict=False))
    assert {word for word in words if word.startswith("--")} <= known
    if "--board" in options:
        board_target(options["--board"])
    if "--target" in options:
        resolve(options["--target"])
    if "--as" in options:
        assert options["--as"] in (*KINDS, MLF)


def test_calls_in_python() -> None:
    text = (GUIDES / "from-microtvm.md").read_text(encoding="utf-8")
    for call, named in (("htvm.load", "path"), ("htvm.build", "target")):
        assert f"`{call}(" in text
        function = getattr(htvm, call.removeprefix("htvm."))
        assert any(named in name for name in (*inspect.signature(function).parameters, "path"))
    kinds = re.findall(r'kind="([\w-]+)"', text)
    assert kinds and set(kinds) <= {*KINDS, MLF}
    assert "kind" in inspect.signature(htvm.Module.export).parameters
    for target in re.findall(r'"(cortex_[\w:=-]+)"', text):
        resolve(target)
