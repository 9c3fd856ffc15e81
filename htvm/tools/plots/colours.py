"""The colours of figures and pages: one meaning each, on light and on dark paper.

A colour has a name for its meaning (``LIGHT``, ``DARK``).  A class, as in the page's style sheet,
is what has this colour: ``u-`` for units, ``c-`` for causes of cycles, ``b-`` for what bytes hold.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeAlias

Painted: TypeAlias = "str | tuple[str, float]"
"""A colour for matplotlib, with its opacity where it lets the paper through."""

_COLOURS: Mapping[str, tuple[str, str]] = {
    # Paper, and what is written on it; ``on`` is written on colours.
    "paper": ("#fdfdfc", "#12151c"),
    "card": ("#ffffff", "#191d26"),
    "hover": ("#f2f5fa", "#212734"),
    "ink": ("#1d2330", "#e4e8f0"),
    "dim": ("#626b7c", "#98a2b5"),
    "line": ("#dfe3ea", "#2c3341"),
    "on": ("#ffffff", "#10131a"),
    # Units.
    "host": ("#717b8d", "#7c8698"),
    "dma": ("#e08a1e", "#f0a648"),
    "u0": ("#7a8b2c", "#a9bb57"),
    "u1": ("#2a93b8", "#5cbcdc"),
    "u2": ("#1c9a7c", "#46c3a3"),
    "u3": ("#b0413e", "#e8807a"),
    "u4": ("#c2497f", "#e377a6"),
    # What an accelerator does.
    "array": ("#2f6fde", "#5b93f5"),
    "weights": ("#8a5cd1", "#ab85e8"),
    "trigger": ("#8fb4f2", "#3d5d94"),
    # What bytes of a memory hold.
    "code": ("#4e4038", "#e6d9cd"),
    "constants": ("#86694f", "#bd9d80"),
    "arena": ("#b58f62", "#94744f"),
    "io": ("#d9bf94", "#5f4f38"),
    "stack": ("#a99c92", "#7d736b"),
    "stays": ("#9b6a93", "#b888b0"),
}
"""Meaning -> its colour on light and on dark paper."""

LIGHT: Mapping[str, str] = {name: light for name, (light, _) in _COLOURS.items()}
"""Colours on light paper, and of all figures of matplotlib: meaning -> colour."""

DARK: Mapping[str, str] = {name: dark for name, (_, dark) in _COLOURS.items()}
"""Colours on dark paper, of the same meanings."""

UNITS = 5
"""Number of colours for accelerators and cores."""

CLASSES: Mapping[str, tuple[str, float]] = {
    "u-host": ("host", 1.0),
    "u-dma": ("dma", 1.0),
    **{f"u-{number}": (f"u{number}", 1.0) for number in range(UNITS)},
    "c-array": ("array", 1.0),
    "c-weights": ("weights", 1.0),
    "c-trigger": ("trigger", 1.0),
    "c-dma_alone": ("dma", 1.0),
    "c-host_alone": ("host", 1.0),
    "b-code": ("code", 1.0),
    "b-constants": ("constants", 1.0),
    "b-arena": ("arena", 1.0),
    "b-io": ("io", 1.0),
    "b-stack": ("stack", 1.0),
    "b-free": ("line", 1.0),
    # Boxes of a memory map have words on them, so they are lighter.
    "m-tile": ("arena", 0.45),
    "m-stays": ("stays", 0.45),
}
"""Class -> the meaning whose colour it has, and its opacity."""


def painted(name: str) -> Painted:
    """Return the colour of a class, or of a meaning, for figures on light paper."""
    colour, share = CLASSES.get(name, (name, 1.0))
    return LIGHT[colour] if share == 1.0 else (LIGHT[colour], share)


def unit_class(name: str) -> str:
    """Return the class of a unit: the host's, the DMA's, or that of an accelerator's name.

    A name has the same class everywhere, whatever else a figure shows; names that differ only by a
    number at their end ("core0", "core1-7") are of one kind.
    """
    if name in ("cpu", "host"):
        return "u-host"
    return "u-dma" if name == "dma" else f"u-{zlib.crc32(_kind(name).encode()) % UNITS}"


def unit_classes(names: Iterable[str]) -> dict[str, str]:
    """Map the units of one SoC to their classes; where two kinds share one, the next free one.

    Args:
        names: of units, the accelerators of the SoC first.
    """
    classes: dict[str, str] = {}
    kinds: dict[str, str] = {}
    for name in dict.fromkeys(names):
        wanted, kind = unit_class(name), _kind(name)
        if wanted not in ("u-host", "u-dma") and kind not in kinds:
            first = int(wanted.removeprefix("u-"))
            order = [f"u-{(first + step) % UNITS}" for step in range(UNITS)]
            kinds[kind] = next((each for each in order if each not in kinds.values()), wanted)
        classes[name] = kinds.get(kind, wanted)
    return classes


def _kind(name: str) -> str:
    return name.rstrip("0123456789-") or name
