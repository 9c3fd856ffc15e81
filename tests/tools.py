"""Helper: programs that tests call and that Python's packages do not bring."""

from __future__ import annotations

import os
import shutil

import pytest

__all__ = ["tool"]


def tool(name: str) -> str:
    """Return the path of a program, for example ``"arm-none-eabi-gcc"``.

    Without it the test is skipped; in CI, whose script installs it, the test fails.
    """
    found = shutil.which(name)
    if found is not None:
        return found
    if os.environ.get("CI"):
        pytest.fail(f"{name} is not installed: name its package in .ci/run")
    pytest.skip(f"{name} is not installed")
