"""Fixtures of the C runtime's tests."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest

from tests.runtime_c.device import Device, library


@pytest.fixture(scope="session")
def models() -> ctypes.CDLL:
    """DIANA's device models as a library."""
    return library()


@pytest.fixture
def device(models: ctypes.CDLL) -> Iterator[Device]:
    """Fresh devices with an empty L1."""
    made = Device(models)
    yield made
    made.close()
