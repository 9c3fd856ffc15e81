"""Published figures of the Snitch cluster with ITA (Table I and section V-A of its paper).

The paper disagrees with itself in places; what follows from that stands in `INCONSISTENCIES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["GEMM", "INCONSISTENCIES", "SHA", "TABLE_I", "Configuration", "Micro"]


@dataclass(frozen=True)
class Configuration:
    """A column of Table I: MobileBERT's encoder at 425 MHz.

    Attributes:
        gops: operations per second, 1e9.
        gop_per_joule: energy efficiency.
        milliwatts: average power.
        millijoules: energy of an inference.
        per_second: inferences per second.
    """

    gops: float
    gop_per_joule: float
    milliwatts: float
    millijoules: float
    per_second: float


TABLE_I: Mapping[str, Configuration] = {
    "snitch_ita.cluster": Configuration(0.752, 28.9, 26.0, 164, 0.16),
    "snitch_ita": Configuration(154, 2960, 52.0, 1.60, 32.5),
}
OPERATIONS = 4.74
"""GOp of an inference."""


@dataclass(frozen=True)
class Micro:
    """A microbenchmark of section V-A: GOp/s, and utilization of ITA's array in percent."""

    gops: float
    utilization: float


GEMM = Micro(718, 82.1)
SHA = Micro(620, 69.5)

INCONSISTENCIES = (
    "718 GOp/s are 82.5 % of ITA's peak of 870.4 GOp/s, and 620 GOp/s 71.2 %; 82.1 % and 69.5 % "
    "are printed. We compare with the utilizations.",
    'The contributions call 620 GOp/s the "peak"; section V-A has 718 (620 is the attention), and '
    "prints efficiencies in TOp/s.",
    "The printed dimensions with one feed-forward network a layer are 2.01 GOp; with four, as "
    "MobileBERT has them, 4.43 of the printed 4.74 GOp. The rest would be work per element, which "
    "we do not count.",
    "Attention on the cores is said to take 779 times ITA's energy, which is 0.18 GOp/s: "
    "MobileBERT's attention alone would take longer than the printed 6.3 s of the whole.",
)
