"""Published figures of HTVM (Van Delm et al., DAC 2023); DIANA at 260 MHz.

One column of Table I, "CPU + both" end to end, is not in the text at hand; what the text says of it
in words ("8x", "120x", "best in 2 of 4") gives the values here, marked derived.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["CONV_LOSS", "CPU", "DENSE_LOSS", "DEPTHWISE_LOSS", "TABLE_I", "TABLE_II", "Entry"]


@dataclass(frozen=True)
class Entry:
    """A network on a configuration of Table I.

    Attributes:
        peak: "Peak" latency in ms.
        total: "HTVM" latency in ms, end to end; None where it is not known.
        size: binary in kB.
        derived: whether ``total`` is derived from the text, not printed.
    """

    peak: float
    total: float | None
    size: int
    derived: bool = False


TABLE_I: Mapping[str, Mapping[str, Entry]] = {
    "ds_cnn_7x5": {
        "digital": Entry(1.70, 1.75, 60),
        "analog": Entry(13.51, 13.51, 93),
        "both": Entry(1.66, 1.69, 81, derived=True),
    },
    "mobilenet_v1": {
        "digital": Entry(5.42, 5.68, 306),
        "analog": Entry(40.67, 40.67, 239),
        "both": Entry(5.39, None, 292),
    },
    "resnet8": {
        "digital": Entry(0.66, 1.19, 107),
        "analog": Entry(1.52, 1.53, 129),
        "both": Entry(0.61, 1.12, 107, derived=True),
    },
    "toyadmos": {
        "digital": Entry(0.30, 0.36, 315),
        "analog": Entry(0.80, 0.80, 171),
        "both": Entry(0.49, None, 274),
    },
}

CPU: Mapping[str, tuple[float | None, int]] = {
    "ds_cnn_7x5": (48.24, 59),
    "mobilenet_v1": (None, 289),
    "resnet8": (134.11, 122),
    "toyadmos": (4.70, 287),
}
"""Plain TVM on the CPU: ms (None: out of memory), kB."""

TABLE_II: Mapping[str, Mapping[str, float]] = {
    "STM32L4R5, TVM": {
        "ds_cnn_7x5": 66.6, "mobilenet_v1": 155.0, "resnet8": 180.0, "toyadmos": 5.4
    },
    "STM32L4R5, TVM + CMSIS-NN": {
        "ds_cnn_7x5": 46.1, "mobilenet_v1": 139.0, "resnet8": 180.0, "toyadmos": 3.97
    },
    "GAP9, GAPflow": {
        "ds_cnn_7x5": 0.68, "mobilenet_v1": 1.61, "resnet8": 0.88, "toyadmos": 0.256
    },
    "DIANA, HTVM digital": {
        "ds_cnn_7x5": 1.75, "mobilenet_v1": 5.68, "resnet8": 1.19, "toyadmos": 0.36
    },
}  # fmt: skip
"""ms, all scaled to 260 MHz by the authors."""

CONV_LOSS: Mapping[str, tuple[float, float]] = {"digital": (15.52, 1.32), "analog": (5.19, 0.51)}
"""Throughput that convolutions lose to peak: average and least, in %."""

DENSE_LOSS = 54.5
"""The same of fully connected layers on the digital core: most, in %."""

DEPTHWISE_LOSS = 20.7
"""The same of depthwise convolutions on the digital core: most, in %."""
