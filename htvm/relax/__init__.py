"""HTVM in a Relax pipeline of one's own: its stages as passes of TVM, and any module as C."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from htvm.relax.c_library import CFunction, CLibrary, to_c
    from htvm.relax.converters import torch_converters
    from htvm.relax.library import link
    from htvm.relax.passes import LowerToC, Partition, Retarget, registered_patterns

__all__ = [
    "CFunction",
    "CLibrary",
    "LowerToC",
    "Partition",
    "Retarget",
    "link",
    "registered_patterns",
    "to_c",
    "torch_converters",
]

_HOMES = {
    "CFunction": "htvm.relax.c_library",
    "CLibrary": "htvm.relax.c_library",
    "LowerToC": "htvm.relax.passes",
    "Partition": "htvm.relax.passes",
    "Retarget": "htvm.relax.passes",
    "link": "htvm.relax.library",
    "registered_patterns": "htvm.relax.passes",
    "to_c": "htvm.relax.c_library",
    "torch_converters": "htvm.relax.converters",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'htvm.relax' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
