"""The networks that recognise digits."""

from __future__ import annotations

import sys

import numpy as np
import onnxruntime
import pytest

import htvm
from htvm import zoo
from htvm.errors import DependencyError, ModelError
from htvm.tools.cli.arguments import open_model
from htvm.tools.zoo.trained import _digits_table, digits_data, weights_file

LARGEST = 400_000


def test_the_split_is_the_trained_one() -> None:
    images, labels, held_out, wanted = digits_data()
    assert (images.shape, held_out.shape) == ((1347, 1, 8, 8), (450, 1, 8, 8))
    assert (len(labels), len(wanted)) == (1347, 450)
    assert images.dtype == np.float32 and (images.min(), images.max()) == (0, 1)


@pytest.mark.parametrize(("name", "least"), [("digits", 444), ("digits_ternary", 443)])
def test_in_float_all_but_a_few_are_recognised(name: str, least: int) -> None:
    _, _, images, labels = digits_data()
    session = onnxruntime.InferenceSession(str(weights_file(name)))
    found = [session.run(None, {"image": image[None]})[0].argmax() for image in images]
    assert (np.array(found) == labels).sum() >= least


def test_weights_are_small() -> None:
    assert sum(weights_file(name).stat().st_size for name in zoo.TRAINED) < LARGEST


@pytest.mark.rotating(1)
@pytest.mark.parametrize(
    ("name", "target", "analog"), [("digits", "diana.digital", 0), ("digits_ternary", "diana", 3)]
)
def test_recognised_on_the_accelerators(name: str, target: str, analog: int) -> None:
    model = open_model(f"zoo:{name}")
    assert model.name == name and model.inputs[0].dtype == "float32"
    module = htvm.build(model, target, "host")
    placed = list(module.compiled.planned.places.values())
    assert placed.count("analog") == analog and "cpu" not in placed
    _, _, images, labels = digits_data()
    found = [int(module.run(image[None]).outputs[0].argmax()) for image in images[:150]]
    assert sum(map(int.__eq__, found, labels[:150].tolist())) >= 146


def test_without_choices() -> None:
    for text in ("zoo:digits@1", "zoo:digits:ternary", "zoo:digit"):
        with pytest.raises(ModelError, match="digits_ternary"):
            open_model(text)
    with pytest.raises(ModelError, match="digits_ternary"):
        weights_file("resnet8")


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(DependencyError, match=r"htvm\[digits\]"):
        zoo.digits()


def test_the_table_that_is_read_is_the_one_scikit_learn_gives() -> None:
    from sklearn import datasets

    digits = datasets.load_digits()
    table = _digits_table()
    np.testing.assert_array_equal(table, np.column_stack((digits.data, digits.target)))
