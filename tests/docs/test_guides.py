"""What the guides show of the command line is what it prints, command by command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.outputs import rewritten

ROOT = Path(__file__).parents[2]
GUIDES = tuple(f"docs/guides/{name}.md" for name in ("fit", "explain", "report", "boards"))
# Commands that a developer waits for; the others are for those who do not wait.
QUICK = (
    "htvm fit zoo:resnet8",
    "htvm fit zoo:toyadmos --target diana.digital --l1 300",
    "htvm explain zoo:ds_cnn",
    "htvm print zoo:resnet8 --target diana.analog --after partition",
)


def blocks(guide: str) -> dict[str, str]:
    """Commands of a guide, and the blocks that show them with their output."""
    text = (ROOT / guide).read_text(encoding="utf-8")
    found = re.finditer(r"```console\n\$ (.*)\n(?:.*\n)*?```\n", text)
    return {match[1]: match[0] for match in found}


@pytest.mark.rotating(1)
@pytest.mark.parametrize(
    ("guide", "block"),
    [
        pytest.param(
            guide,
            block,
            id=command,
            marks=() if command in QUICK else pytest.mark.slow,
        )  # fmt: skip
        for guide in GUIDES
        for command, block in blocks(guide).items()
    ],
)
def test_an_output_is_what_the_command_prints(guide: str, block: str, tmp_path: Path) -> None:
    assert rewritten(block, tmp_path) == block, f"python -m tests.docs.outputs {guide}"
