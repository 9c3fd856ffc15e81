"""Small networks as users of other tools reported them, where they are at hand: every element."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htvm
from tests.reference.interpreter import Array

FOLDER = Path(__file__).parents[3] / "shared" / "models" / "field"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"{FOLDER} is not there")

NETWORKS = (
    "clip06_output_wide_scale",
    "embedding_mean_dense",
    "gemm_trans_a_per_channel",
    "int4_conv",
    "keras_gru_unrolled",
    "keras_gru_unrolled_int16",
    "keras_lstm_unrolled",
    "l2norm_of_transpose",
    "qdq_weight_behind_transpose",
    "qlinearadd_rounding",
    "requant_rounding_half",
    "residual_int8_odd_zero_point",
    "squeeze_excite_three_channels",
    "streaming_tcn_cache",
    "tconv_k2_s3_relu",
    "tied_weights_and_bias",
    "weights_behind_transpose",
)
OPTIONS: dict[str, dict[str, Any]] = {"requant_rounding_half": {"input_types": {"x": "uint8"}}}
"""Options of `htvm.load` by name."""
BOUNDS = {"clip06_output_wide_scale": (0, 6), "tconv_k2_s3_relu": (-20, 127)}
"""What the network clips its output to, by name."""
SOCS = ("diana", "dla", "siracusa", "siracusa.cluster", "snitch_ita", "snitch_ita.cluster")
EVERYDAY = {
    ("clip06_output_wide_scale", "diana"),
    ("embedding_mean_dense", "siracusa"),
    ("squeeze_excite_three_channels", "siracusa.cluster"),
    ("streaming_tcn_cache", "snitch_ita.cluster"),
    ("tconv_k2_s3_relu", "siracusa"),
}


def load(name: str) -> htvm.Model:
    (path,) = (FOLDER / name).glob("model.*")
    return htvm.load(path, **OPTIONS.get(name, {}))


def runs(name: str) -> list[tuple[list[Array], list[Array]]]:
    """Inputs and outputs of each run."""
    with np.load(FOLDER / name / "golden.npz") as arrays:
        count = sum(key.startswith("in") and key.endswith("_0") for key in arrays)
        assert count, "nothing to compare"
        return [
            ([arrays[key] for key in sorted(arrays) if key.startswith(f"in{number}_")],
             [arrays[key] for key in sorted(arrays) if key.startswith(f"out{number}_")])
            for number in range(count)
        ]  # fmt: skip


def test_every_network_at_hand_is_listed() -> None:
    assert {entry.name for entry in FOLDER.iterdir() if entry.is_dir()} <= set(NETWORKS)


@pytest.mark.rotating(6)
@pytest.mark.parametrize("name", NETWORKS)
def test_every_element_is_the_golden_one(name: str) -> None:
    module = htvm.build(load(name), "generic.cpu", platform="host")
    for given, wanted in runs(name):
        for found, golden in zip(module.run(given).outputs, wanted, strict=True):
            np.testing.assert_array_equal(found, golden)


@pytest.mark.rotating(2)
@pytest.mark.parametrize(
    ("name", "target"),
    [
        pytest.param(name, soc, marks=() if (name, soc) in EVERYDAY else pytest.mark.slow)
        for name in NETWORKS
        for soc in SOCS
    ],
)
def test_accelerators_compute_their_integer_form_within_the_bounds(name: str, target: str) -> None:
    module = htvm.build(load(name), target)
    for given, golden in runs(name):
        outputs = module.run(given).outputs
        for found, wanted, source in zip(outputs, module.reference(given), golden, strict=True):
            np.testing.assert_array_equal(found, wanted)
            assert (found.dtype, found.shape) == (source.dtype, source.shape)
            low, high = BOUNDS.get(name, (-np.inf, np.inf))
            assert low <= found.min() and found.max() <= high
