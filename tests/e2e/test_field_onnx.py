"""Small ONNX networks as users of other tools have reported them, against their golden outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htvm
from tests.reference.interpreter import Array

FOLDER = Path(__file__).parents[3] / "shared" / "models" / "field"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="../shared/models/field is not there")

NETWORKS: dict[str, dict[str, Any]] = {
    "qdq_weight_behind_transpose": {},
    "requant_rounding_half": {"input_types": {"x": "uint8"}},
    "residual_int8_odd_zero_point": {},
    "tied_weights_and_bias": {},
}
"""Options of `htvm.load` by name."""


def load(name: str) -> htvm.Model:
    return htvm.load(FOLDER / name / "model.onnx", **NETWORKS[name])


def runs(name: str) -> list[tuple[Array, Array]]:
    """Input and output of each run."""
    with np.load(FOLDER / name / "golden.npz") as arrays:
        numbers = range(sum(key.startswith("in") for key in arrays.files))
        return [(arrays[f"in{number}_0"], arrays[f"out{number}_0"]) for number in numbers]


@pytest.mark.parametrize("name", NETWORKS)
def test_every_element_is_the_golden_one(name: str) -> None:
    module = htvm.build(load(name), "generic.cpu", platform="host")
    for given, wanted in runs(name):
        (found,) = module.run(given).outputs
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["diana", "siracusa"])
@pytest.mark.parametrize("name", NETWORKS)
def test_it_is_built_for_accelerators(name: str, target: str) -> None:
    module = htvm.build(load(name), target, platform="host")
    given, wanted = runs(name)[0]
    (found,) = module.run(given).outputs
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
