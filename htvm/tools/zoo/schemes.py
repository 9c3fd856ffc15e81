"""What a network is drawn with: schemes (see `htvm.tools.zoo.drawing`), sizes, weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from byoc_dory.errors import ModelError

if TYPE_CHECKING:
    from byoc_dory.layers import Array

Scheme: TypeAlias = Literal["8-bit", "ternary", "mixed"]
Layout: TypeAlias = Literal["NHWC", "NCHW"]

SCHEMES: tuple[Scheme, ...] = ("8-bit", "ternary", "mixed")


def check_number(role: str, number: object, least: int = 1, where: str = "htvm.zoo") -> None:
    """Refuse a size or a seed that is not a whole number, or too small.

    Raises:
        ModelError: the message names its role.
    """
    whole = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
    if not whole or number < least:  # type: ignore[operator]
        raise ModelError(
            f"{role} cannot be {number!r}", where=where, hint=f"a whole number from {least} on"
        )


def bell_shaped(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw int8 weights: sums of four uniform integers, so without floating point."""
    drawn: Array = rng.integers(-31, 32, (4, *shape), dtype="int8")
    return drawn.sum(axis=0, dtype="int8")
