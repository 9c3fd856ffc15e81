"""The targets that a user can build for."""

from __future__ import annotations

from byoc_dory.soc import registry

__all__ = ["targets"]


def targets() -> tuple[str, ...]:
    """Return the names of all known targets, e.g. ``("diana", "diana.digital", ...)``."""
    return registry.targets()
