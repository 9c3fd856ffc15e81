"""The error types that a user of :mod:`htvm` meets (defined in :mod:`byoc_dory.errors`)."""

from __future__ import annotations

from byoc_dory.errors import (
    CapacityError,
    DependencyError,
    ExportError,
    HtvmError,
    InputError,
    IntegerFormError,
    L2OverflowError,
    ModelError,
    PolicyError,
    SimulationError,
    TargetError,
    TilingError,
    ToolchainError,
    UnsupportedError,
)

__all__ = [
    "CapacityError",
    "DependencyError",
    "ExportError",
    "HtvmError",
    "InputError",
    "IntegerFormError",
    "L2OverflowError",
    "ModelError",
    "PolicyError",
    "SimulationError",
    "TargetError",
    "TilingError",
    "ToolchainError",
    "UnsupportedError",
]
