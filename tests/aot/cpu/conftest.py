from __future__ import annotations

import pytest

from htvm.sim.toolchain import Compiler


@pytest.fixture(scope="session")
def compiler() -> Compiler:
    return Compiler.zig()
