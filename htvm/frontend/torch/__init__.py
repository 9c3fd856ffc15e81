"""Quantized programs of torch: ``.pt2`` files and ``ExportedProgram`` objects, read without torch.

`archive` reads the file, `serialized` its graph, `writer` writes each call as nodes that the
readers of affine quantization know, through the tables of handlers beside it.  The arithmetic is
torch's in integers (`patterns.ops.torch`), or TFLite's if that is asked for.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from byoc_dory.errors import InputError, UnsupportedError, first_line
from byoc_dory.plain import plain
from htvm.files import file_sha256, model_bytes
from htvm.frontend.onnx import model_of, tflite_qdq
from htvm.frontend.onnx.affine.reader import Reader
from htvm.frontend.operators import Activation, Applied
from htvm.frontend.torch import (
    arithmetic,
    elementwise,
    layers,
    moves,
    quantizing,
    recurrent,
    transformers,
)
from htvm.frontend.torch.archive import read_archive
from htvm.frontend.torch.array import IN_PASSES, read_in_passes, with_arrays, write_in_passes
from htvm.frontend.torch.writer import Handler, Writer
from patterns.ops.integer.rescale import Rescale
from patterns.ops.moves.reshape import Reshape

if TYPE_CHECKING:
    from htvm.frontend.limits import Limits
    from htvm.frontend.onnx.dialect import Network
    from htvm.frontend.onnx.graph import OnnxGraph
    from htvm.frontend.torch.program import TorchProgram
    from htvm.model import Model

__all__ = ["HANDLERS", "SEMANTICS", "load_program", "load_pt2", "model_of_program"]

_log = logging.getLogger(__name__)

HANDLERS: Mapping[str, Handler] = {
    **elementwise.HANDLERS,
    **layers.HANDLERS,
    **moves.HANDLERS,
    **quantizing.HANDLERS,
    **recurrent.HANDLERS,
    **transformers.WRITTEN,
    IN_PASSES: write_in_passes,
}
"""Handlers by operator of torch."""

Semantics: TypeAlias = Literal["torch", "tflite"]
SEMANTICS = ("torch", "tflite")
"""Whose arithmetic a program is given: torch's own in integers, or that of TFLite's kernels."""

_QUANTIZE = (
    "htvm.quantize(program, target, data) makes an int8 model of a network in reals, and a "
    "quantizer of torchao (prepare_pt2e, convert_pt2e) an int8 program"
)


def load_pt2(
    path: Path,
    name: str | None = None,
    limits: Limits | None = None,
    semantics: Semantics | None = None,
) -> Model:
    """Load a ``.pt2`` file into the integer form; nothing of it is executed.

    Args:
        path: the file.
        name: name of the model; by default the file's, as a C identifier.
        limits: what reading it may take; by default those of `Limits`.
        semantics: one of `SEMANTICS`, ``"torch"`` by default.

    Raises:
        ModelError: the file cannot be read, is no program of torch, or contradicts itself.
        UnsupportedError: it uses an unsupported operator or quantization, has open sizes, or takes
            more than the limits.
        InputError: the semantics are unknown.
    """
    data = model_bytes(path, "a program of torch", "an archive")
    program = read_archive(data, path.name, limits)
    loaded = model_of_program(program, name or path.stem, semantics)
    return replace(loaded, source=plain(path.name), file_sha256=file_sha256(path))


def load_program(
    program: Any,
    name: str | None = None,
    limits: Limits | None = None,
    semantics: Semantics | None = None,
) -> Model:
    """Load an ``ExportedProgram`` into the integer form, through the file that torch makes of it.

    Args:
        program: the program.
        name: name of the model; ``"model"`` by default.
        limits, semantics: as of `load_pt2`.

    Raises:
        UnsupportedError: torch cannot save it, or as of `load_pt2`.
        InputError: the semantics are unknown.
    """
    from torch.export import save

    source, buffer = "the program", io.BytesIO()
    try:
        save(program, buffer)
    except Exception as error:
        raise UnsupportedError(
            f"torch cannot save the program: {first_line(error)}",
            where=source,
            hint="export it with torch.export.export(module, example_inputs)",
        ) from error
    read = read_archive(buffer.getvalue(), source, limits)
    return replace(model_of_program(read, name or "model", semantics), source="ExportedProgram")


def model_of_program(program: TorchProgram, name: str, semantics: Semantics | None = None) -> Model:
    """Return a program in the integer form; arguments and errors as of `load_pt2`."""
    if semantics not in (None, *SEMANTICS):
        raise InputError(
            f"semantics {semantics!r} are unknown",
            where="option 'semantics'",
            hint=f"one of {', '.join(SEMANTICS)}",
        )
    _check_quantized(program)
    if semantics != "tflite":
        program = with_arrays(program)
    writer = Writer(program, HANDLERS)
    graph = writer.written()
    network = _network(graph, semantics or "torch", writer.strides)
    labels = _labels(network.sources, writer.modules)
    made = model_of(graph, network, name, labels)
    _log.info("%s: %d calls of torch read", program.source, len(program.nodes))
    return replace(made, quantized_for=plain(program.quantized_for))


def _network(
    graph: OnnxGraph, semantics: Semantics, strides: Mapping[str, tuple[int, ...]]
) -> Network:
    if semantics == "tflite":
        return tflite_qdq.read(graph)
    own = arithmetic.handlers(strides)
    handlers = {**own, **transformers.READ, "InPasses": read_in_passes}
    return Reader(graph, handlers, "between quantized tensors", "torch").read()


def _check_quantized(program: TorchProgram) -> None:
    """Check that tensors that are computed are quantized.

    Raises:
        UnsupportedError: the program computes in reals, or its weights alone are quantized.
    """
    kinds = {node.operator.partition(".")[2] for node in program.nodes}
    if any(kind.startswith(("quantize_per", "quantize_affine", "choose_q")) for kind in kinds):
        return
    weights = any(kind.startswith("dequantize") for kind in kinds)
    raise UnsupportedError(
        "its weights alone are quantized (weight-only quantization)"
        if weights
        else "a program that computes in reals, where int8 is needed",
        where=program.source,
        hint=_QUANTIZE,
    )


def _labels(sources: Mapping[Activation, str], modules: Mapping[str, str]) -> dict[Activation, str]:
    """Return the path of the module whose layer computes a tensor, for the tensors of layers."""
    labels: dict[Activation, str] = {}
    for activation, source in sources.items():
        found = activation
        while isinstance(found.origin, Applied) and isinstance(found.origin.op, Reshape | Rescale):
            found = found.origin.inputs[0]
        if source in modules and isinstance(found.origin, Applied):
            labels.setdefault(found, modules[source])
    return labels
