"""Loading TFLite files: every operator is read directly from the file, and checked.

`file` has the content of a file as typed records, read through `flatbuffer`, which checks all
offsets; `HANDLERS` lists the reader of each operator, which checks its tensors and options, and
returns the operators of `htvm.frontend.operators` that compute its outputs.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from byoc_dory.errors import UnsupportedError
from byoc_dory.plain import plain
from htvm.files import file_sha256, model_bytes
from htvm.frontend.integerize import integer_graph
from htvm.frontend.operators import Activation
from htvm.frontend.tflite import (
    activations,
    arithmetic,
    functions,
    pools,
    products,
    rearranging,
    shapes,
)
from htvm.frontend.tflite.dilation import with_dilation
from htvm.frontend.tflite.file import TfliteFile, TfliteTensor, read_file
from htvm.frontend.tflite.fold import folded
from htvm.frontend.tflite.reader import Handler, OperatorReader
from htvm.model import Model, TensorInfo, model_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from htvm.frontend.limits import Limits

__all__ = ["HANDLERS", "WIDE_HANDLERS", "load_tflite", "read_tflite"]

_log = logging.getLogger(__name__)

HANDLERS: Mapping[str, Handler] = {
    "ABS": functions.absolute,
    "ADD": arithmetic.add,
    "ARG_MAX": partial(pools.place, which="maximum", options=40),
    "ARG_MIN": partial(pools.place, which="minimum", options=57),
    "AVERAGE_POOL_2D": partial(pools.pool, maximum=False),
    "BATCH_MATMUL": arithmetic.batch_matmul,
    "BATCH_TO_SPACE_ND": rearranging.batch_to_space,
    "BROADCAST_TO": rearranging.broadcast_to,
    "CONCATENATION": shapes.concatenation,
    "CONV_2D": products.conv,
    "DEPTHWISE_CONV_2D": products.depthwise,
    "DEPTH_TO_SPACE": rearranging.depth_to_space,
    "DEQUANTIZE": activations.dequantize,
    "ELU": functions.elu,
    "EXP": functions.exponential,
    "EXPAND_DIMS": partial(shapes.same_elements, count=2),
    "FULLY_CONNECTED": products.fully_connected,
    "GATHER": rearranging.gather,
    "GELU": functions.gelu,
    "HARD_SWISH": activations.hard_swish,
    "L2_NORMALIZATION": activations.l2_normalization,
    "LEAKY_RELU": activations.leaky_relu,
    "LOGISTIC": partial(activations.sigmoid, function="logistic"),
    "LOG_SOFTMAX": activations.log_softmax,
    "MAXIMUM": partial(arithmetic.extreme, which="maximum"),
    "MAX_POOL_2D": partial(pools.pool, maximum=True),
    "MEAN": partial(pools.summed, stem="mean"),
    "MINIMUM": partial(arithmetic.extreme, which="minimum"),
    "MIRROR_PAD": rearranging.mirror_pad,
    "MUL": partial(arithmetic.binary, function="multiply", options=21),
    "NEG": activations.negate,
    "PACK": rearranging.pack,
    "PAD": partial(shapes.pad, count=2),
    "PADV2": partial(shapes.pad, count=3),
    "PRELU": activations.prelu,
    "QUANTIZE": activations.quantize,
    "REDUCE_MAX": partial(pools.extreme, which="maximum"),
    "REDUCE_MIN": partial(pools.extreme, which="minimum"),
    "RELU": activations.relu,
    "RELU6": activations.relu_6,
    "RESHAPE": shapes.reshape,
    "RESIZE_BILINEAR": pools.resize_bilinear,
    "RESIZE_NEAREST_NEIGHBOR": pools.resize_nearest,
    "REVERSE_V2": rearranging.reverse,
    "RSQRT": functions.inverse_root,
    "SLICE": shapes.slices,
    "SOFTMAX": activations.softmax,
    "SPACE_TO_BATCH_ND": rearranging.space_to_batch,
    "SPACE_TO_DEPTH": shapes.space_to_depth,
    "SPLIT": shapes.split,
    "SPLIT_V": shapes.split_v,
    "SQUARED_DIFFERENCE": partial(arithmetic.binary, function="squared_difference", options=0),
    "SQUEEZE": partial(shapes.same_elements, count=1),
    "STRIDED_SLICE": shapes.strided_slice,
    "SUB": partial(arithmetic.binary, function="subtract", options=28),
    "SUM": partial(pools.summed, stem="sum"),
    "TANH": partial(activations.sigmoid, function="tanh"),
    "TILE": rearranging.tile,
    "TRANSPOSE": shapes.transpose,
    "TRANSPOSE_CONV": products.transpose_conv,
    "UNPACK": rearranging.unpack,
}
"""Reader for each supported operator."""

_INT8_ONLY = (
    "ARG_MAX", "ARG_MIN", "ELU", "EXP", "GELU", "HARD_SWISH", "L2_NORMALIZATION", "LOG_SOFTMAX",
    "NEG", "RESIZE_BILINEAR", "RSQRT",
)  # fmt: skip

WIDE_HANDLERS: Mapping[str, Handler] = {
    **{name: handler for name, handler in HANDLERS.items() if name not in _INT8_ONLY},
    "ABS": functions.wide_absolute,
    "LOGISTIC": partial(functions.wide_sigmoid, function="logistic"),
    "SOFTMAX": functions.wide_softmax,
    "TANH": partial(functions.wide_sigmoid, function="tanh"),
}
"""Reader for each operator that is supported with int16 activations."""

_BORDER = ("int8", "uint8", "int16", "int32", "float32")


def load_tflite(path: Path, name: str | None = None, limits: Limits | None = None) -> Model:
    """Load a fully int8-quantized TFLite model into the integer form.

    Inputs and outputs are int8, or float32 or uint8 with a QUANTIZE or DEQUANTIZE next to them.

    Args:
        path: the file.
        name: name of the model; by default the file's, as a C identifier.
        limits: what reading it may take; by default those of `Limits`.

    Raises:
        ModelError: the file cannot be read, is not a TFLite model, or is damaged.
        UnsupportedError: it uses an unsupported operator or quantization, or takes more than the
            limits.
    """
    file = read_tflite(path, limits)
    values = _read_operators(file)
    _check_border(file)
    graph, names = integer_graph(
        [(tensor.name, values[tensor.index]) for tensor in file.inputs],
        [values[tensor.index] for tensor in file.outputs],
    )
    _log.info("%s: %d operators imported", path.name, len(file.operators))
    return Model(
        name=model_name(name or path.stem),
        graph=graph,
        inputs=tuple(_info(tensor) for tensor in file.inputs),
        outputs=tuple(_info(tensor) for tensor in file.outputs),
        source=plain(path.name),
        file_sha256=file_sha256(path),
        scheme="tflite",
        sources=_sources(file, values, names),
    )


def read_tflite(path: Path, limits: Limits | None = None) -> TfliteFile:
    """Return the content of a TFLite file; arguments and errors as for `load_tflite`."""
    data = model_bytes(path, "a TFLite model", "a flatbuffer")
    return with_dilation(folded(read_file(data, path.name, limits)))


def _read_operators(file: TfliteFile) -> dict[int, Activation]:
    """Return the activation for every computed tensor, by index."""
    for operator in file.operators:
        if operator.kind not in HANDLERS:
            raise UnsupportedError(
                f"operator {operator.kind} is not supported",
                where=operator.place,
                hint=f"supported are {', '.join(sorted(HANDLERS))}",
            )
        _check_elements(operator.inputs, operator.place)
    _check_elements(file.inputs, "the graph's inputs")
    values = {
        tensor.index: Activation(tensor.shape, tensor.name, tensor.dtype) for tensor in file.inputs
    }
    for operator in file.operators:
        try:
            # The lists of a few operators are integers of other kinds.
            tensors = (*operator.inputs, *operator.outputs)
            wide = any(tensor is not None and tensor.dtype == "int16" for tensor in tensors)
            reader = OperatorReader(operator, values, file.budget, "int16" if wide else "int8")
            if wide and operator.kind not in WIDE_HANDLERS:
                raise UnsupportedError(
                    f"int16 activations of operator {operator.kind} are not supported",
                    hint=f"supported are {', '.join(sorted(WIDE_HANDLERS))}; or use int8",
                )
            results = reader.results((WIDE_HANDLERS if wide else HANDLERS)[operator.kind](reader))
            reader.check_read()
        except UnsupportedError as error:
            if error.where:
                raise
            # Builders know what they cannot do, but not for which operator.
            raise UnsupportedError(error.what, where=operator.place, hint=error.hint) from error
        indices = (tensor.index for tensor in operator.outputs)
        values.update(zip(indices, results, strict=True))
    return values


def _check_elements(tensors: Iterable[TfliteTensor | None], place: str) -> None:
    for tensor in tensors:
        if tensor is not None and 0 in tensor.shape:
            raise UnsupportedError(
                f"{tensor.place} has no elements: its shape is {tensor.shape}",
                where=place,
                hint="leave it out when exporting",
            )


def _check_border(file: TfliteFile) -> None:
    for tensor in (*file.inputs, *file.outputs):
        if tensor.dtype not in _BORDER:
            raise UnsupportedError(
                f"{tensor.dtype} at the border of the model",
                where=tensor.place,
                hint="convert with inference_input_type and inference_output_type int8",
            )


def _info(tensor: TfliteTensor) -> TensorInfo:
    scale = tensor.scales[0] if tensor.scales else None
    zero_point = tensor.zero_points[0] if tensor.scales else None
    return TensorInfo(tensor.name, tensor.shape, tensor.dtype, scale, zero_point)


def _sources(
    file: TfliteFile, values: Mapping[int, Activation], names: Mapping[Activation, str]
) -> dict[str, str]:
    """Return layer name -> name of the tensor in the file, in execution order."""
    tensors = {
        values[tensor.index]: tensor.name
        for operator in file.operators
        for tensor in operator.outputs
    }
    return {name: tensors[value] for value, name in names.items() if value in tensors}
