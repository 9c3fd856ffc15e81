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
    from htvm import relax
    from htvm.frontend.limits import Limits
    from htvm.integer_io import with_integer_io
    from htvm.model import Model, TensorInfo
    from htvm.module import Module
    from htvm.opening import load
    from htvm.pipeline import build
    from htvm.quantization import quantize
    from htvm.result import Causes, LayerResult, RunResult
    from htvm.target import soc, targets
    from htvm.tools import report, zoo
    from htvm.tools.comparison import compare
    from htvm.tools.confinement import ConfinedResult, Confinement, confined
    from htvm.tools.exploration import explore
    from htvm.tools.fitting import fit
    from htvm.tools.generation import Generation, generate
    from htvm.tools.language import LanguageModel
    from htvm.tools.printing.stages import print
    from htvm.tools.project import Project, open
    from htvm.tools.sweeping.designs import Designs
    from htvm.tools.sweeping.row import Costs
    from htvm.tools.sweeping.sweep import sweep

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
    "relax",
    "report",
    "soc",
    "sweep",
    "targets",
    "with_integer_io",
    "zoo",
]

_HOMES = {
    "Causes": "htvm.result",
    "ConfinedResult": "htvm.tools.confinement",
    "Confinement": "htvm.tools.confinement",
    "Generation": "htvm.tools.generation",
    "LanguageModel": "htvm.tools.language",
    "LayerResult": "htvm.result",
    "Limits": "htvm.frontend.limits",
    "Model": "htvm.model",
    "Module": "htvm.module",
    "Project": "htvm.tools.project",
    "RunResult": "htvm.result",
    "TensorInfo": "htvm.model",
    "build": "htvm.pipeline",
    "compare": "htvm.tools.comparison",
    "confined": "htvm.tools.confinement",
    "explore": "htvm.tools.exploration",
    "fit": "htvm.tools.fitting",
    "generate": "htvm.tools.generation",
    "load": "htvm.opening",
    "open": "htvm.tools.project",
    "print": "htvm.tools.printing.stages",
    "quantize": "htvm.quantization",
    "Costs": "htvm.tools.sweeping.row",
    "Designs": "htvm.tools.sweeping.designs",
    "soc": "htvm.target",
    "sweep": "htvm.tools.sweeping.sweep",
    "targets": "htvm.target",
    "with_integer_io": "htvm.integer_io",
}


def __getattr__(name: str) -> Any:
    if name in ("relax", "report", "torch", "zoo"):
        return importlib.import_module(f"htvm.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'htvm' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
