"""The page of the documentation about the instruction set, ``docs/reference/dla-isa.md``.

    python -m byoc_dory.soc.dla.page > docs/reference/dla-isa.md

writes it again after `isa` was changed; a test compares them.
"""

from __future__ import annotations

import sys

from byoc_dory.emit.text import environment
from byoc_dory.soc.dla.isa import FLAGS, INSTRUCTIONS, REGISTERS, SET, SLOTS


def render_page() -> str:
    """Return the text of the page."""
    template = environment("byoc_dory.soc.dla").get_template("isa.md.jinja")
    return template.render(
        set=SET, instructions=INSTRUCTIONS, flags=FLAGS, registers=REGISTERS, slots=SLOTS
    )


if __name__ == "__main__":
    sys.stdout.write(render_page())
