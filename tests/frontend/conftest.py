"""Shared by the tests of readers."""

from __future__ import annotations

import pytest

import htvm
from tests.frontend.flatfile import Graph
from tests.frontend.single import Loader


@pytest.fixture(scope="session")
def load(tmp_path_factory: pytest.TempPathFactory) -> Loader:
    """Write a TFLite file, and read it."""
    path = tmp_path_factory.mktemp("files") / "network.tflite"

    def load(graph: Graph) -> htvm.Model:
        path.write_bytes(graph.file())
        return htvm.load(path)

    return load
