"""Fixtures of the C runtime's tests."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest

from tests.runtime_c import cluster as cluster_devices
from tests.runtime_c.cluster import Cluster
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


@pytest.fixture(scope="session")
def cluster_models() -> ctypes.CDLL:
    """The device models of the cluster with ITA as a library."""
    return cluster_devices.library()


@pytest.fixture
def cluster(cluster_models: ctypes.CDLL) -> Iterator[Cluster]:
    """The cluster's devices, idle, with empty memories."""
    made = Cluster(cluster_models)
    yield made
    made.close()
