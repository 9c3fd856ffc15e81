"""Networks as converters leave them, against TFLite Micro's outputs."""

from __future__ import annotations

import numpy as np
import pytest

import htvm
from tests.frontend.field import field_model
from tests.reference.interpreter import interpret

NAMES = ("int4_conv", "keras_gru_unrolled", "keras_lstm_unrolled", "weights_behind_transpose")
TARGETS = ("siracusa", "snitch_ita", "diana")


@pytest.mark.parametrize("name", NAMES)
def test_the_cpu_equals_tflite_micro(name: str) -> None:
    model = field_model(name)
    built = htvm.build(model.path, "generic.cpu")
    for inputs, wanted in model.cases:
        for made, expected in zip(built.run(inputs).outputs, wanted, strict=True):
            np.testing.assert_array_equal(made, expected)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NAMES)
def test_accelerators_equal_the_integer_form(name: str, target: str) -> None:
    model = field_model(name)
    built = htvm.build(model.path, target)
    for inputs, _ in model.cases:
        (made,), (wanted,) = (
            built.run(inputs).outputs,
            interpret(built.model.module, inputs).outputs,
        )
        np.testing.assert_array_equal(made, wanted)
