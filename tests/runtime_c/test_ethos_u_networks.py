"""The Ethos-U's model runs what Vela's compiler makes of TFLite files: equal to TFLite Micro."""

from __future__ import annotations

import ctypes

import pytest

from tests.models import MODELS, golden
from tests.runtime_c.ethos_u import ACCELERATORS, DONE, library
from tests.runtime_c.vela import Program, compiled

CASES = [
    pytest.param(
        accelerator, name, marks=[] if accelerator == "ethos-u55-128" else pytest.mark.slow
    )
    for accelerator in ACCELERATORS
    for name in MODELS
]


@pytest.fixture(scope="module")
def lib() -> ctypes.CDLL:
    return library()


@pytest.mark.parametrize(("accelerator", "name"), CASES)
def test_the_tiny_benchmark(lib: ctypes.CDLL, accelerator: str, name: str) -> None:
    """Every element of every golden, with all checks and without."""
    known = golden(name)
    program = Program(lib, compiled(known.path.read_bytes(), accelerator))
    for data, output in zip(known.inputs, known.outputs, strict=True):
        for checked in (True, False):
            result, (found,) = program.run([data], checked=checked, accelerator=accelerator)
            assert (result.status, result.complaint) == (DONE, "")
            assert (found.view(output.dtype) == output.ravel()).all()


@pytest.mark.slow
@pytest.mark.parametrize(("optimize", "arena"), [("Size", 1 << 31), ("Performance", 20_000)])
@pytest.mark.parametrize("name", MODELS)
def test_little_memory(lib: ctypes.CDLL, name: str, optimize: str, arena: int) -> None:
    """Cascades of layers with buffers that wrap around."""
    known = golden(name)
    model = compiled(known.path.read_bytes(), "ethos-u55-128", optimize=optimize, arena=arena)
    program = Program(lib, model)
    for data, output in zip(known.inputs, known.outputs, strict=True):
        result, (found,) = program.run([data])
        assert (result.status, result.complaint) == (DONE, "")
        assert (found.view(output.dtype) == output.ravel()).all()
