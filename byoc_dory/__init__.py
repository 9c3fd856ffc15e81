"""Tiling, schedules and C for accelerators with software-managed memories; does not need TVM.

The names below load their modules on first use, so that importing an error type or a SoC
description loads neither a solver nor templates.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from byoc_dory.codegen import generate
    from byoc_dory.cost import Cost
    from byoc_dory.layers import Layer, Shift, Tensor
    from byoc_dory.options import TilingOptions
    from byoc_dory.region import Region, RegionCode

__all__ = ["Cost", "Layer", "Region", "RegionCode", "Shift", "Tensor", "TilingOptions", "generate"]

_HOMES = {
    "Cost": "byoc_dory.cost",
    "Layer": "byoc_dory.layers",
    "Region": "byoc_dory.region",
    "RegionCode": "byoc_dory.region",
    "Shift": "byoc_dory.layers",
    "Tensor": "byoc_dory.layers",
    "TilingOptions": "byoc_dory.options",
    "generate": "byoc_dory.codegen",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
