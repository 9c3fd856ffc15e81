"""Stream: whether its package can be imported; it makes estimates only."""

from __future__ import annotations

from typing import Any

from common import main


def probe(case: dict[str, str]) -> dict[str, Any]:
    import stream.api

    missing = not hasattr(stream.api, "optimize_allocation_co")
    reason = "another interface than its documentation" if missing else "estimates; not measured"
    return {"reads": not missing, "reason": reason}


main(probe)
