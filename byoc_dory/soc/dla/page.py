"""The page of the documentation about the instruction set, ``docs/reference/dla-isa.md``.

    python -m byoc_dory.soc.dla.page > docs/reference/dla-isa.md

writes it again after `isa` was changed; a test compares them.
"""

from __future__ import annotations

import sys

from byoc_dory.emit.text import rendered
from byoc_dory.soc.dla.isa import FLAGS, INSTRUCTIONS, REGISTERS, SET, SLOTS


def render_page() -> str:
    """Return the text of the page."""
    return rendered(
        "byoc_dory.soc.dla", "isa.md.jinja", set=SET, instructions=INSTRUCTIONS, flags=FLAGS,
        registers=REGISTERS, slots=SLOTS,
    )  # fmt: skip


if __name__ == "__main__":
    sys.stdout.write(render_page())
