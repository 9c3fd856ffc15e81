"""Options of the code generator's tests."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the generated C into tests/golden instead of comparing",
    )


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether goldens are to be written (the option exists when this folder is asked for)."""
    return bool(request.config.getoption("--update-golden", default=False))
