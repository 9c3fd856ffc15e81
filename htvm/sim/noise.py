"""Noise of in-memory arrays: a setting of their device models that no program can reach."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from byoc_dory.errors import InputError, TargetError

if TYPE_CHECKING:
    from byoc_dory.soc.base import Target

_LARGEST = 1_000.0
"""Largest deviation in steps of a converter: far more than its range."""


def noise_settings(target: Target, deviation: float, seed: int) -> dict[int, int]:
    """Return device register -> value for a run with noise; empty without noise.

    Args:
        target: the target of the run; all of its in-memory arrays get the noise.
        deviation: standard deviation in steps of the converters; 0 for no noise.
        seed: 32-bit seed.

    Raises:
        InputError: the deviation or the seed is out of range.
        TargetError: the target has no in-memory array.
    """
    if not isinstance(deviation, int | float) or not math.isfinite(deviation):
        raise InputError(f"a noise of {deviation!r}", hint="give a standard deviation in steps")
    if not 0 <= deviation <= _LARGEST:
        raise InputError(f"a noise of {deviation:g} steps", hint=f"give 0 to {_LARGEST:g}")
    if not isinstance(seed, int) or not 0 <= seed < 1 << 32:
        raise InputError(f"a seed of {seed!r}", hint="give a whole number of 32 bits")
    if deviation == 0:
        return {}
    settings: dict[int, int] = {}
    for accelerator in target.accelerators:
        settings |= accelerator.noise_settings(deviation, seed)
    if not settings:
        raise TargetError(
            "there is no in-memory array that could be noisy",
            where=f"target '{target.name}'",
            hint="run without noise, or build for a target with an analog core",
        )
    return settings
