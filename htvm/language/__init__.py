"""Language models, where users import them: see `htvm.tools.language`."""

from __future__ import annotations

from htvm.tools.language import (
    MASKED,
    Draws,
    LanguageModel,
    StepInterface,
    pick,
    rotations,
    sampling,
    sharpness_of,
)

__all__ = [
    "MASKED",
    "Draws",
    "LanguageModel",
    "StepInterface",
    "pick",
    "rotations",
    "sampling",
    "sharpness_of",
]
