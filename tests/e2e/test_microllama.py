"""The small language model: every file equals its golden outputs, on several cores."""

from __future__ import annotations

import numpy as np
import pytest

import htvm
from htvm.errors import ModelError, UnsupportedError
from htvm.tools.language.rewrite import in_place
from tests.models_onnx import LLAMAS, golden, onnx_path
from tests.reference.interpreter import interpret

SMALL = LLAMAS[0], LLAMAS[3]


def slow_unless_small(name: str) -> object:
    return pytest.param(name, marks=() if name in SMALL else pytest.mark.slow)


@pytest.mark.parametrize("name", [slow_unless_small(name) for name in LLAMAS])
def test_the_integer_form_computes_the_golden_output(name: str) -> None:
    model = htvm.load(onnx_path(name))
    inputs, outputs = golden(name, model)
    for array, wanted in zip(interpret(model.module, inputs).outputs, outputs, strict=True):
        np.testing.assert_array_equal(array, wanted)


@pytest.mark.slow
@pytest.mark.parametrize("name", LLAMAS)
@pytest.mark.parametrize("target", ["siracusa", "siracusa.cluster"])
def test_the_simulated_cores_compute_the_golden_output(name: str, target: str) -> None:
    model = htvm.load(onnx_path(name))
    inputs, outputs = golden(name, model)
    result = htvm.build(model, target=target).run(inputs)
    for array, wanted in zip(result.outputs, outputs, strict=True):
        np.testing.assert_array_equal(array, wanted)


@pytest.mark.slow
@pytest.mark.parametrize("name", LLAMAS[:3])
@pytest.mark.parametrize("target", ["siracusa", "siracusa.cluster"])
def test_caches_that_stay_in_place_make_the_same_step(name: str, target: str) -> None:
    """The last positions of the golden caches are what the step returns."""
    model = htvm.load(onnx_path(name))
    inputs, outputs = golden(name, model)
    hidden, *own = htvm.build(in_place(model), target=target).run(inputs).outputs
    np.testing.assert_array_equal(hidden, outputs[0])
    for array, wanted in zip(own, outputs[1:], strict=True):
        np.testing.assert_array_equal(array, wanted[:, :, -1:])


def test_an_empty_cache_is_no_input() -> None:
    model = htvm.load(onnx_path(LLAMAS[3]))
    assert [info.name for info in model.inputs] == ["input", "x.9", "MatMul_2"]
    assert model.outputs[1].shape == (1, 16, 1, 4)


def test_sizes_can_be_given(tmp_path: object) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    path = folder / "network.onnx"
    path.write_bytes(onnx_path(LLAMAS[3]).read_bytes())
    with pytest.raises(UnsupportedError, match=r"dimension 2 is declared as 0.*input_shapes"):
        htvm.load(path)
    caches = [f"Concat_{3 + i}" for i in range(2)]
    with pytest.raises(ModelError, match=r"declares \[1, 16, \?, 4\], given is \[1, 16, 0\]"):
        htvm.load(path, input_shapes=dict.fromkeys(caches, (1, 16, 0)))
    with pytest.raises(ModelError, match="no input is called 'Concat'"):
        htvm.load(path, input_shapes={"Concat": (1, 16, 0, 4)})
    with pytest.raises(ModelError, match=r"\(1, 16, -1, 4\) is no shape"):
        htvm.load(path, input_shapes={"Concat_3": (1, 16, -1, 4)})
