"""Quantization: float networks to int8, and int8 networks to the accelerators' arithmetic.

`quantize` calibrates a float network; `retarget` rewrites the integer form in the accelerators'
number schemes.
"""

from __future__ import annotations

from byoc_dory.soc.schemes import MulShiftScheme
from htvm.quantization.float_model import calibrated, quantize
from htvm.quantization.report import LayerCost, RetargetReport
from htvm.quantization.retarget import Retargeted, RetargetOptions, retarget

__all__ = [
    "LayerCost",
    "MulShiftScheme",
    "RetargetOptions",
    "RetargetReport",
    "Retargeted",
    "calibrated",
    "quantize",
    "retarget",
]
