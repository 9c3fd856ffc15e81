"""Loading TFLite files: checked here, imported by TVM, integerized like any other module."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import tflite
from tvm.relax.frontend.tflite import from_tflite

from byoc_dory.errors import ModelError
from htvm.frontend.integerize import integer_module
from htvm.frontend.qdq import read_qdq
from htvm.frontend.tflite_checks import check_file
from htvm.frontend.tflite_file import TfliteFile, TfliteTensor, read_file
from htvm.model import Model, TensorInfo, model_name
from patterns.read import output_names, read_graph

if TYPE_CHECKING:
    from tvm.ir import IRModule

    from patterns.read import Node

__all__ = ["load_tflite"]

_log = logging.getLogger(__name__)

# What TVM's importer raises where it meets something it did not expect.  The file has been checked
# before, so that this is about what the checks do not know.
_IMPORTER_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
)

# Offsets in a flatbuffer are signed 32-bit integers.
_MOST_BYTES = 2**31 - 1

_KINDS = {
    "CONV_2D": {"conv2d", "depthwise"},
    "DEPTHWISE_CONV_2D": {"depthwise", "conv2d"},
    "FULLY_CONNECTED": {"dense"},
    "ADD": {"add"},
    "AVERAGE_POOL_2D": {"average_pool"},
    "MAX_POOL_2D": {"max_pool"},
    "SOFTMAX": {"softmax"},
    "RESHAPE": {"reshape"},
    "PAD": {"pad"},
    "QUANTIZE": {"convert"},
}


def load_tflite(path: Path, name: str | None = None) -> Model:
    """Load a fully int8-quantized TFLite model into the integer form.

    Args:
        path: the file.
        name: of the model; default: the file's, as a C identifier.

    Raises:
        ModelError: if the file cannot be read, is not a TFLite model, or is damaged.
        UnsupportedError: if it uses an operator or quantization that is not supported.
    """
    try:
        size = path.stat().st_size
        data = path.read_bytes() if size <= _MOST_BYTES else b""
    except (OSError, ValueError) as error:  # ValueError: no path at all, with a NUL in it
        raise ModelError(
            f"the file cannot be read: {getattr(error, 'strerror', None) or error}",
            where=str(path),
            hint="check the path",
        ) from error
    if size > _MOST_BYTES:
        raise ModelError(
            f"not a TFLite model: {size:,} bytes are more than a flatbuffer can have",
            where=str(path),
            hint="give a .tflite file or a Relax IRModule",
        )
    file = read_file(data, path.name)
    check_file(file)
    network = read_qdq(_imported(data, path.name))
    module = integer_module(network.inputs, network.outputs)
    _log.info("%s: %d operators imported", path.name, len(file.operators))
    return Model(
        name=model_name(name or path.stem),
        module=module,
        inputs=tuple(_info(tensor) for tensor in file.inputs),
        outputs=tuple(_info(tensor) for tensor in file.outputs),
        source=path.name,
        scheme="tflite",
        sources=_sources(file, module),
    )


def _imported(data: bytes, source: str) -> IRModule:
    try:
        return from_tflite(tflite.Model.GetRootAsModel(data, 0))
    except _IMPORTER_ERRORS as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelError(
            f"TVM's importer refuses the model: {lines[-1]}",
            where=source,
            hint="the file may be damaged; fetch or export it again",
        ) from error


def _info(tensor: TfliteTensor) -> TensorInfo:
    scale = tensor.scales[0] if tensor.scales else None
    zero_point = tensor.zero_points[0] if tensor.scales else None
    return TensorInfo(tensor.name, tensor.shape, tensor.dtype, scale, zero_point)


def _sources(file: TfliteFile, module: IRModule) -> dict[str, str]:
    """Layer name -> name of the tensor in the file.

    Both graphs are walked from the outputs backward.  Where they differ (an operator that
    disappeared or was split), the walk goes no further.
    """
    nodes = {node.name: node for node in read_graph(module)}
    makers = {tensor.index: op for op in file.operators for tensor in op.outputs}
    found: dict[str, str] = {}
    waiting = list(zip(output_names(module), file.outputs, strict=True))
    while waiting:
        name, tensor = waiting.pop()
        node, operator = nodes.get(name), makers.get(tensor.index)
        if node is None or operator is None or name in found:
            continue
        if node.kind not in _KINDS[operator.kind]:
            continue
        found[name] = tensor.name
        sources = [item for item in operator.inputs if item is not None and item.data is None]
        inputs = [_before_pad(item, nodes, operator.kind) for item in node.inputs]
        waiting.extend(zip(inputs, sources, strict=False))
    return {name: found[name] for name in nodes if name in found}


def _before_pad(name: str, nodes: dict[str, Node], kind: str) -> str:
    """The tensor before a pad that was split off a convolution."""
    node = nodes.get(name)
    return node.inputs[0] if node and node.kind == "pad" and "CONV" in kind else name
