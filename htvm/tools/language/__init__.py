"""Language models: what turns a decoding step into a network that reads and writes token ids."""

from __future__ import annotations

from htvm.tools.language.interface import StepInterface, rotations
from htvm.tools.language.model import MASKED, LanguageModel
from htvm.tools.language.sampling import Draws, pick, sharpness_of

__all__ = [
    "MASKED",
    "Draws",
    "LanguageModel",
    "StepInterface",
    "pick",
    "rotations",
    "sharpness_of",
]
