"""Networks that torchao quantizes are read, and equal torch: needs the extra ``torch``."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")
pytest.importorskip("torchao", reason="torchao is not installed: make test-torch")

from benchmarks.torch_exports.export import exported
from benchmarks.torch_exports.fidelity import measured
from benchmarks.torch_exports.networks import NETWORKS

PER_MILLION = 20


@pytest.mark.parametrize("quantizer", ["xnnpack_tensor", "xnnpack_channel", "x86"])
@pytest.mark.parametrize(
    "network", [name if at < 4 else pytest.param(name, marks=pytest.mark.slow)
                for at, name in enumerate(NETWORKS)]
)  # fmt: skip
def test_a_quantized_network_equals_torch(network: str, quantizer: str) -> None:
    found = measured(exported(network, quantizer), inputs=4)
    assert found.elements > 0 and found.largest <= 1
    assert found.different <= max(PER_MILLION * found.elements / 1e6, 1), found


@pytest.mark.parametrize("quantizer", ["int16_symmetric", "int16_affine"])
@pytest.mark.parametrize(
    "network", [name if name == "depthwise" else pytest.param(name, marks=pytest.mark.slow)
                for name in NETWORKS]
)  # fmt: skip
def test_activations_of_16_bits_are_as_near_as_torch_to_itself(
    network: str, quantizer: str
) -> None:
    found = measured(exported(network, quantizer), inputs=4)
    assert found.elements > 0 and found.largest <= 1
    assert found.different <= 2 * found.doubles_different + 10, found
