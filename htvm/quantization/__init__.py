"""Quantization: float networks to int8 with calibration data."""

from __future__ import annotations

from htvm.quantization.float_model import calibrated, quantize

__all__ = ["calibrated", "quantize"]
