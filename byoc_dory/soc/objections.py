"""Errors from an accelerator's methods that a number of its description is to blame for."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from byoc_dory.errors import TargetError


@contextmanager
def named(accelerator: str, soc: str) -> Iterator[None]:
    """Name the accelerator in errors about its description.

    Raises:
        TargetError: one was raised inside, or numbers cannot be computed with, such as a width of 0
            that something is divided by; then the line of the method is named, too.
    """
    name = f"accelerator '{accelerator}' of SoC {soc}"
    try:
        yield
    except TargetError as error:
        if not error.where.startswith(name):
            error.where = f"{name}, {error.where}" if error.where else name
        raise
    except ArithmeticError as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        raise TargetError(
            f"its numbers cannot be computed with: {error}",
            where=f"{name}, {at.filename}, line {at.lineno}",
            hint="correct the description, or the method that this line is part of",
        ) from error
