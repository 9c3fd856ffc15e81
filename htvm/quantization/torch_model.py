"""Networks of torch: modules and programs in reals, quantized in the numbers of a target."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from byoc_dory.errors import InputError, ModelError
from htvm.arrays import read_arrays
from htvm.model import TensorInfo
from htvm.progress import Progress
from htvm.quantization.samples import stacked_samples
from htvm.torch_files import is_module, is_program

if TYPE_CHECKING:
    from byoc_dory.soc.base import Target
    from htvm.frontend.limits import Limits
    from htvm.model import Model
    from htvm.quantization.samples import Data

_KEPT = 512  # largest number of samples that a model keeps
_WHERE = "htvm.quantize"
_log = logging.getLogger(__name__)


def is_in_reals(model: Any) -> bool:
    """Whether an object is a module or program of torch that is not quantized."""
    if is_program(model):
        return not _quantizes(model.graph)
    return is_module(model) and not (hasattr(model, "graph") and _quantizes(model.graph))


def _quantizes(graph: Any) -> bool:
    return any("quantize" in str(node.target) for node in graph.nodes)


def quantized_torch(
    source: Any,
    target: str | Target,
    data: Data,
    *,
    name: str | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> Model:
    """Quantize a module or program of torch with the target's quantizer (`htvm.torch`).

    Args:
        source: a ``torch.nn.Module``, or an ``ExportedProgram`` for one input, in reals.
        target: one of `htvm.targets()`.
        data: real inputs, as for `htvm.quantize`; the samples of a module without the batch axis.
        name: name of the model; ``"model"`` by default.
        limits: what reading it may take.
        progress: receives the stages.

    Raises:
        ModelError: it is quantized already, or torch cannot export it.
        UnsupportedError: it uses an operator that is not supported.
        InputError: ``data`` do not fit its inputs, or there are none.
        TargetError: the target is unknown.
        DependencyError: torch or torchao is not installed, or of another version.
    """
    from htvm.frontend.torch import load_program
    from htvm.torch.training import quantized_program

    progress = progress or Progress()
    if not is_in_reals(source):
        raise ModelError(
            "the model is quantized already", where=_WHERE, hint="give it to htvm.build"
        )
    if data is None:
        raise InputError(
            "a network in reals without data to quantize it with",
            where="option 'data'",
            hint="give real inputs, as many and as varied as in use",
        )
    with progress.stage("reading the float model"):
        infos, data = _of_program(source, data) if is_program(source) else _of_module(source, data)
        samples = stacked_samples(data, infos)
        module = source.module(check_guards=False) if is_program(source) else source
        count = len(samples[infos[0].name])
    with progress.stage(f"calibrating with {count} samples"):
        program = quantized_program(module, [samples[info.name] for info in infos], target)
    with progress.stage("importing"):
        model = load_program(program, name, limits)
    kept = np.unique(np.linspace(0, count - 1, min(count, _KEPT)).astype(np.int64))
    calibration = {
        made.name: samples[info.name][kept] for made, info in zip(model.inputs, infos, strict=True)
    }
    found: Model = replace(model, source=type(source).__name__, calibration=calibration)
    return found


def _of_program(program: Any, data: Data) -> tuple[list[TensorInfo], Data]:
    """Return the inputs of a program."""
    given = set(program.graph_signature.user_inputs)
    nodes = [node for node in program.graph.nodes if node.name in given]
    infos = []
    for node in nodes:
        sizes = node.meta["val"].shape
        if not all(isinstance(size, int) for size in sizes):
            raise ModelError(
                f"an open size in input '{node.name}': {list(sizes)}",
                where=_WHERE,
                hint="export it for one input, without dynamic_shapes",
            )
        infos.append(TensorInfo(node.name, tuple(sizes), "float32"))
    return infos, data


def _of_module(module: Any, data: Data) -> tuple[list[TensorInfo], Data]:
    """Return the inputs of a module, whose sizes are those of the data, and the data."""
    if isinstance(data, str | PathLike):
        data = read_arrays(Path(data), "give an .npz file with one array [N, ...] for each input")
        if len(data) == 1:
            data = next(iter(data.values()))
    if not isinstance(data, Mapping | np.ndarray) and isinstance(data, Iterable):
        data = list(data)
    parameters = [
        name
        for name, parameter in inspect.signature(module.forward).parameters.items()
        if parameter.default is parameter.empty and parameter.kind <= parameter.KEYWORD_ONLY
    ]
    first: Any = data[0] if isinstance(data, list) and data else data
    shapes: dict[str, tuple[int, ...]] = {}
    if isinstance(first, Mapping):
        names = [name for name in parameters if name in first]
        shapes = {name: _shape(first[name]) for name in names}
    elif len(parameters) == 1:
        names = parameters
        shapes = {names[0]: _shape(first)}
    else:
        names = parameters
    if isinstance(data, Mapping | np.ndarray):
        shapes = {name: shape[1:] for name, shape in shapes.items()}
    return [TensorInfo(name, (1, *shapes.get(name, ())), "float32") for name in names], data


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(getattr(value, "shape", np.shape(value)))
