"""Published figures of Siracusa, and of a chip of its kind that was measured.

*Deeploy* prints end-to-end latencies of MLPerf Tiny's networks on Siracusa's cluster, without
N-EUREKA, and a small language model's tokens with it.  Its clock is not printed; at 360 MHz the
engine's published peak agrees with the public model of the engine.  GAP9 has nine such cores and a
convolution engine of the same family; its figures are MLPerf Tiny's, measured (v1.0, closed).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["CLUSTER_MS", "ENGINE_TOPJ", "GAP9", "TOKENS", "Measured", "Tokens"]

CLUSTER_MS: Mapping[str, float | None] = {
    "resnet8": 3.7,
    "ds_cnn": 1.4,
    "mobilenet_v1": 5.6,
    "toyadmos": None,
}
"""Milliseconds on the cluster alone, the same for Deeploy and DORY; ToyAdmos is left empty."""


@dataclass(frozen=True)
class Measured:
    """GAP9 at 370 MHz: milliseconds and microjoules an inference."""

    ms: float
    uj: float


GAP9: Mapping[str, Measured] = {
    "resnet8": Measured(0.616, 40.4),
    "ds_cnn": Measured(0.475, 26.7),
    "mobilenet_v1": Measured(1.125, 58.4),
    "toyadmos": Measured(0.176, 7.3),
}


@dataclass(frozen=True)
class Tokens:
    """A decoding step of the small language model: tokens a second, microjoules a token."""

    per_second: float
    uj: float


TOKENS = Tokens(340, 490)

ENGINE_TOPJ = 8.84
"""N-EUREKA's efficiency at its best, in tera-operations a joule (arXiv 2312.14750)."""
