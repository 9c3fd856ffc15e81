"""Helper: run TFLite Micro's reference kernels, where its Python package has a wheel.

The package is not needed for anything else.  Where it has no wheel, the tests that compare with it
are skipped; the integer form's definitions are then held to the numpy interpreter alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.frontend.flatfile import Graph
from tests.reference.interpreter import Array


def reference(graph: Graph, inputs: Sequence[Array]) -> list[Array]:
    """What TFLite Micro computes, or a skipped test."""
    package = pytest.importorskip(
        "tflite_micro", reason="tflite-micro has no wheel for this machine"
    )
    interpreter = package.runtime.Interpreter.from_bytes(graph.file(), arena_size=1 << 20)
    for at, data in enumerate(inputs):
        interpreter.set_input(data, at)
    interpreter.invoke()
    return [interpreter.get_output(at) for at in range(len(graph.outputs))]
