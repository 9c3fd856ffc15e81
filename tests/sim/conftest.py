"""Fixtures of the simulator's tests."""

from __future__ import annotations

import pytest

from htvm.sim.toolchain import Compiler


@pytest.fixture(scope="session")
def compiler() -> Compiler:
    """The compilers of the ziglang package, with the user's cache."""
    return Compiler.zig()
