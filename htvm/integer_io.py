"""A network with an int8 interface instead of one in reals: `with_integer_io`.

Converters often leave the quantization of inputs and the dequantization of outputs in the network,
where a core without floating point computes them in software.  A sensor gives integers anyway, and
whoever reads the outputs can scale them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import InputError, UnsupportedError
from htvm.model import Model, TensorInfo
from htvm.public import public

if TYPE_CHECKING:
    from pathlib import Path

    from tvm.ir import IRModule

    from patterns.reading.node import Node

IO_KINDS = ("source", "int8")
"""Interfaces that a build can have: the source's own, or int8."""


def check_io(io: str) -> None:
    """Refuse an unknown interface.

    Raises:
        InputError: it is none of `IO_KINDS`.
    """
    if io not in IO_KINDS:
        raise InputError(
            f"unknown interface {io!r}", where="option 'io'", hint=f"one of {', '.join(IO_KINDS)}"
        )


@public
def with_integer_io(model: Model | IRModule | str | Path) -> Model:
    """Return the network without the conversions at its inputs and outputs.

    Inputs and outputs keep their names, are int8, and have the conversions' scale and zero point:
    where the source reads ``x``, the result reads ``q = round(x / scale) + zero_point``.  Inputs
    that are indices stay.  A model whose interface is int8 is returned unchanged.

    Args:
        model: a model from `htvm.load`, or anything `htvm.load` takes.

    Raises:
        ModelError: ``model`` is not a model.
        UnsupportedError: an input is neither int8 nor quantized at once, or an output neither int8
            nor just dequantized.
    """
    from htvm.opening import opened
    from htvm.quantization.borders import without_borders

    model = opened(model)
    try:
        inner, borders = without_borders(model, lookups=False)
    except UnsupportedError as error:
        raise UnsupportedError(
            error.what, where=error.where, hint="this network needs its own interface: io='source'"
        ) from error
    if borders is None:
        return model
    calibration = None
    if model.calibration is not None:
        converted = borders.converted(model.calibration)
        names = zip(inner.inputs, model.inputs, strict=True)
        calibration = {outer.name: converted[own.name] for own, outer in names}
    return replace(
        inner,
        inputs=tuple(
            info if node is None else _input(info, node)
            for info, node in zip(model.inputs, borders.inputs, strict=True)
        ),
        outputs=tuple(
            info if node is None else _output(info, node)
            for info, node in zip(model.outputs, borders.outputs, strict=True)
        ),
        calibration=calibration,
        labels=model.labels,
        file_sha256="",
    )


def _input(info: TensorInfo, node: Node) -> TensorInfo:
    from patterns.ops.float32.quantize import Quantize
    from patterns.ops.onnxruntime.rounding import OnnxQuantize

    if isinstance(node.op, Quantize):
        step, zero_point = float(np.float32(node.op.step)), node.op.zero_point
        even = isinstance(node.op, OnnxQuantize)
        return TensorInfo(info.name, node.output_shape, "int8", step, zero_point, even)
    return TensorInfo(info.name, node.output_shape, "int8", *_moved(info, node, -128))


def _output(info: TensorInfo, node: Node) -> TensorInfo:
    from patterns.ops.float32.quantize import Dequantize

    (shape,) = node.input_shapes
    if isinstance(node.op, Dequantize):
        step, zero_point = float(np.float32(node.op.step)), node.op.input_zero_point
        return TensorInfo(info.name, shape, "int8", step, zero_point)
    return TensorInfo(info.name, shape, "int8", *_moved(info, node, 128))


def _moved(info: TensorInfo, node: Node, offset: int) -> tuple[float | None, int | None]:
    """Return scale and zero point of a uint8 tensor's values less 128, if they are just that."""
    from patterns.ops.integer.rescale import Rescale

    known = isinstance(node.op, Rescale) and node.op.offset == offset
    if not known or info.scale is None or info.zero_point is None:
        return None, None
    return info.scale, info.zero_point - 128
