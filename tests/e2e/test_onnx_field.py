"""Networks that users of other tools reported, in ONNX: equal to the outputs recorded with them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import htvm
from tests.models_onnx import Array, onnx_path

NETWORKS = ("embedding_mean_dense", "gemm_trans_a_per_channel")


def samples(name: str) -> Iterator[tuple[list[Array], list[Array]]]:
    """Inputs and recorded outputs."""
    with np.load(onnx_path(f"field/{name}").parent / "golden.npz") as arrays:
        count = sum(key.startswith("in") and key.endswith("_0") for key in arrays)
        assert count, "nothing to compare"
        for sample in range(count):
            yield tuple(
                [arrays[key] for key in sorted(arrays) if key.startswith(f"{kind}{sample}_")]
                for kind in ("in", "out")
            )


@pytest.mark.parametrize("name", NETWORKS)
def test_the_simulated_core_computes_what_is_recorded(name: str) -> None:
    module = htvm.build(htvm.load(onnx_path(f"field/{name}")), target="generic.cpu")
    for inputs, outputs in samples(name):
        for made, wanted in zip(module.run(inputs).outputs, outputs, strict=True):
            np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize("target", ["diana", "siracusa"])
@pytest.mark.parametrize("name", NETWORKS)
def test_accelerators_compute_what_their_integer_form_says(name: str, target: str) -> None:
    module = htvm.build(htvm.load(onnx_path(f"field/{name}")), target=target)
    for inputs, _ in samples(name):
        wanted = module.reference(inputs)
        for made, array in zip(module.run(inputs).outputs, wanted, strict=True):
            np.testing.assert_array_equal(made, array)
