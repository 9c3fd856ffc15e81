"""Trained networks and their data, where users import them: see `htvm.tools.zoo.trained`."""

from __future__ import annotations

from htvm.tools.zoo.trained import HOLD_OUT, TRAINED, digits_data, weights_file

__all__ = ["HOLD_OUT", "TRAINED", "digits_data", "weights_file"]
