"""HTVM: quantized networks as self-contained, bit-exact C for SoCs with accelerators.

::

    import htvm
    model = htvm.load("resnet8_int8.tflite")
    module = htvm.build(model, target="diana")
    result = module.run(x)
    module.report()

Heavy modules are imported where they are used, so that ``import htvm`` is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from htvm import errors
from htvm.errors import (
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
from htvm.version import __version__

if TYPE_CHECKING:
    from htvm import report, zoo
    from htvm.comparison import compare
    from htvm.confinement import ConfinedResult, Confinement, confined
    from htvm.exploration import explore
    from htvm.fitting import fit
    from htvm.frontend.limits import Limits
    from htvm.generation import Generation, generate
    from htvm.integer_io import with_integer_io
    from htvm.language import LanguageModel
    from htvm.model import Model, TensorInfo
    from htvm.module import Module
    from htvm.opening import load
    from htvm.pipeline import build
    from htvm.printing.stages import print
    from htvm.project import Project, open
    from htvm.quantization import quantize
    from htvm.result import Causes, LayerResult, RunResult
    from htvm.sweeping.costs import Costs
    from htvm.sweeping.designs import Designs
    from htvm.sweeping.sweep import sweep
    from htvm.target import soc, targets

__all__ = [
    "CapacityError",
    "Causes",
    "ConfinedResult",
    "Confinement",
    "Costs",
    "DefectError",
    "DependencyError",
    "Designs",
    "ExportError",
    "Generation",
    "HtvmError",
    "InputError",
    "IntegerFormError",
    "InternalError",
    "L2OverflowError",
    "LanguageModel",
    "LayerResult",
    "LimitError",
    "Limits",
    "Model",
    "ModelError",
    "Module",
    "PolicyError",
    "Project",
    "RunResult",
    "SimulationError",
    "TargetError",
    "TensorInfo",
    "TilingError",
    "ToolchainError",
    "UnsupportedError",
    "__version__",
    "build",
    "compare",
    "confined",
    "errors",
    "explore",
    "fit",
    "generate",
    "load",
    "open",
    "print",
    "quantize",
    "report",
    "soc",
    "sweep",
    "targets",
    "with_integer_io",
    "zoo",
]

_HOMES = {
    "Causes": "htvm.result",
    "ConfinedResult": "htvm.confinement",
    "Confinement": "htvm.confinement",
    "Generation": "htvm.generation",
    "LanguageModel": "htvm.language",
    "LayerResult": "htvm.result",
    "Limits": "htvm.frontend.limits",
    "Model": "htvm.model",
    "Module": "htvm.module",
    "Project": "htvm.project",
    "RunResult": "htvm.result",
    "TensorInfo": "htvm.model",
    "build": "htvm.pipeline",
    "compare": "htvm.comparison",
    "confined": "htvm.confinement",
    "explore": "htvm.exploration",
    "fit": "htvm.fitting",
    "generate": "htvm.generation",
    "load": "htvm.opening",
    "open": "htvm.project",
    "print": "htvm.printing.stages",
    "quantize": "htvm.quantization",
    "Costs": "htvm.sweeping.costs",
    "Designs": "htvm.sweeping.designs",
    "soc": "htvm.target",
    "sweep": "htvm.sweeping.sweep",
    "targets": "htvm.target",
    "with_integer_io": "htvm.integer_io",
}


def __getattr__(name: str) -> Any:
    if name in ("report", "zoo"):
        return importlib.import_module(f"htvm.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'htvm' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
