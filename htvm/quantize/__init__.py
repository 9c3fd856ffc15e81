"""Retargeting: the integer form in the scheme that the accelerators can execute."""

from __future__ import annotations

from htvm.quantize.report import LayerCost, RetargetReport
from htvm.quantize.retarget import Calibration, Retargeted, RetargetOptions, retarget

__all__ = [
    "Calibration",
    "LayerCost",
    "RetargetOptions",
    "RetargetReport",
    "Retargeted",
    "retarget",
]
