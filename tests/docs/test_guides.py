"""What the guides show of the command line is what it prints.

A block of ``console`` begins with a command behind ``$``; the rest is its output.
``python tests/docs/test_guides.py`` writes the outputs anew.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from htvm.tools.cli.app import app, exit_code

ROOT = Path(__file__).parents[2]
GUIDES = ("fit.md", "explain.md", "report.md", "boards.md")
# Commands that a developer waits for; the others are for those who do not wait.
QUICK = (
    "htvm fit zoo:resnet8",
    "htvm fit zoo:toyadmos --target diana.digital --l1 300",
    "htvm explain zoo:ds_cnn",
    "htvm print zoo:resnet8 --target diana.analog --after partition",
)
_BLOCK = re.compile(r"```console\n\$ (.*)\n((?:.*\n)*?)```")


def blocks(guide: str) -> list[tuple[str, str]]:
    """Commands of a guide, and the output it shows."""
    text = (ROOT / "docs" / "guides" / guide).read_text(encoding="utf-8")
    return [(match[1], match[2]) for match in _BLOCK.finditer(text)]


def shown(command: str) -> str:
    """What a command prints in an empty folder, without blanks at the ends of lines."""
    name, *arguments = shlex.split(command)
    assert name == "htvm"
    runner = CliRunner()
    with runner.isolated_filesystem(), runner.isolation() as streams:
        exit_code(app, arguments)
        out = streams[0].getvalue().decode()
    return "\n".join(line.rstrip() for line in out.rstrip().splitlines()) + "\n"


@pytest.mark.rotating(1)
@pytest.mark.parametrize(
    ("guide", "command", "output"),
    [
        pytest.param(
            guide,
            command,
            output,
            id=command,
            marks=() if command in QUICK else pytest.mark.slow,
        )  # fmt: skip
        for guide in GUIDES
        for command, output in blocks(guide)
    ],
)
def test_an_output_is_what_the_command_prints(guide: str, command: str, output: str) -> None:
    assert shown(command) == output, "run: python tests/docs/test_guides.py"


def main() -> None:
    """Write the outputs into the guides."""
    for guide in GUIDES:
        path = ROOT / "docs" / "guides" / guide
        text = path.read_text(encoding="utf-8")
        path.write_text(
            _BLOCK.sub(lambda match: f"```console\n$ {match[1]}\n{shown(match[1])}```", text),
            encoding="utf-8",
        )


if __name__ == "__main__":
    main()
