"""Networks as users report them, where they are at hand, against TFLite Micro's outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import htvm

_ROOT = Path(__file__).resolve().parents[3] / "shared" / "models" / "field"
_NETWORKS = ("keras_gru_unrolled_int16", "l2norm_of_transpose")


@pytest.mark.parametrize("name", _NETWORKS)
def test_generated_code_equals_tflite_micro(name: str) -> None:
    path = _ROOT / name / "model.tflite"
    if not path.is_file():
        pytest.skip(f"the network {name} is not at hand ({path})")
    built = htvm.build(htvm.load(path), "generic.cpu", "host")
    with np.load(path.with_name("golden.npz")) as arrays:
        samples = sum(key.startswith("in") and key.endswith("_0") for key in arrays)
        assert samples, "nothing to compare"
        for sample in range(samples):
            (found,) = built.run([arrays[f"in{sample}_0"]]).outputs
            np.testing.assert_array_equal(found, arrays[f"out{sample}_0"])
