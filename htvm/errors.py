"""The error types that a user of :mod:`htvm` meets (defined in :mod:`byoc_dory.errors`)."""

from __future__ import annotations

from byoc_dory.errors import (
    CapacityError,
    DefectError,
    DependencyError,
    ExportError,
    HtvmError,
    InputError,
    IntegerFormError,
    InternalError,
    L2OverflowError,
    LimitError,
    ModelError,
    PolicyError,
    SimulationError,
    TargetError,
    TilingError,
    ToolchainError,
    UnsupportedError,
)
from htvm.public import public

# Messages and help name a class by the place users import it from.
for _error in list(vars().values()):
    if isinstance(_error, type) and issubclass(_error, HtvmError):
        public(_error)

__all__ = [
    "CapacityError",
    "DefectError",
    "DependencyError",
    "ExportError",
    "HtvmError",
    "InputError",
    "IntegerFormError",
    "InternalError",
    "L2OverflowError",
    "LimitError",
    "ModelError",
    "PolicyError",
    "SimulationError",
    "TargetError",
    "TilingError",
    "ToolchainError",
    "UnsupportedError",
]
