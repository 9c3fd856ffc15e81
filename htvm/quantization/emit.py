"""Writing a retargeted network as a Relax module in the integer form."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import UnsupportedError
from htvm.quantization.copied import write_copied
from htvm.quantization.graph import AnalogRequant, MulShift, Net, Operator, Shift
from htvm.quantization.kept import write_kept
from patterns.ops.moves.reshape import Reshape

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import BlockBuilder, Var

__all__ = ["emit_module"]


def emit_module(net: Net) -> IRModule:
    """The module; parameters and operators keep the names of the network.

    Raises:
        UnsupportedError: if an operator is in no accelerator's scheme.
    """
    from tvm import relax

    builder = relax.BlockBuilder()
    values = {
        name: relax.Var(name, relax.TensorType((1, *_source_shape(shape, net)), "int8"))
        for name, shape in net.inputs.items()
    }
    with builder.function("main", list(values.values())):
        with builder.dataflow():
            shared: dict[Var, Var] = {}
            for op in _needed(net):
                inputs = [values[name] for name in op.inputs]
                if op.origin is not None and op.origin.kind == "island":
                    values[op.name] = op.origin.attrs["island"].write(builder, inputs, shared)
                else:
                    values[op.name] = _emit(builder, net, op, inputs)
            results = [builder.emit_output(values[name]) for name in net.outputs]
        builder.emit_func_output(results[0] if len(results) == 1 else relax.Tuple(results))
    return builder.get()


def _needed(net: Net) -> list[Operator]:
    """The operators that outputs depend on: what only kept operators read is converted in vain."""
    wanted, found = set(net.outputs), []
    for op in reversed(net.operators):
        if op.name in wanted:
            found.append(op)
            wanted.update(op.inputs)
    return found[::-1]


def _source_shape(shape: tuple[int, ...], net: Net) -> tuple[int, ...]:
    if net.channel_first and len(shape) == 3:
        return shape[2], shape[0], shape[1]
    return shape


def _emit(builder: BlockBuilder, net: Net, op: Operator, inputs: list[Var]) -> Var:
    from patterns.ops import elementwise, gemm, pool
    from patterns.ops.tflite import softmax

    layout = "NCHW" if net.channel_first else "NHWC"
    x = inputs[0]
    if isinstance(op.requant, AnalogRequant):
        return _ternary(builder, op, op.requant, x, layout)
    if op.kind in ("conv2d", "depthwise"):
        return _convolution(builder, op, x, layout)
    if op.kind == "dense":
        return gemm.dense(
            builder, x, op.weights(), op.biases(), _scaling(op), op.clip, name=op.name
        )
    if op.kind == "add":
        return elementwise.add(builder, x, inputs[1], _scaling(op), op.clip, name=op.name)
    if op.kind == "convert":
        return elementwise.convert(
            builder, x, _scaling(op), op.clip, offset=op.offset, name=op.name
        )
    if op.kind == "average_pool":
        return pool.average_pool2d(
            builder, x, kernel=op.pool, strides=op.stride, padding=op.pad, clip=op.clip,
            layout=layout, name=op.name,
        )  # fmt: skip
    if op.kind == "max_pool":
        return pool.max_pool2d(
            builder, x, kernel=op.pool, strides=op.stride, padding=op.pad, layout=layout,
            name=op.name,
        )  # fmt: skip
    if op.kind == "reshape":
        return Reshape((1, *_source_shape(op.shape, net))).write(builder, [x], op.name)
    if op.kind == "gather":
        return _gather(builder, op, inputs)
    if op.kind == "kept":
        return write_kept(builder, op, inputs, layout)
    if op.kind == "softmax" and op.origin is not None:
        return write_copied(builder, op.origin, inputs, op.name)
    if op.kind == "softmax":
        multiplier, left_shift = op.softmax_scale
        scale = float(np.ldexp(float(multiplier), left_shift - 31 - 26))  # of Q5.26
        return softmax.softmax(builder, x, scale, name=op.name)
    raise UnsupportedError(f"cannot write '{op.kind}'", where=f"operator '{op.name}'")


def _gather(builder: BlockBuilder, op: Operator, inputs: list[Var]) -> Var:
    """A move as the source has it, filling with the number zero in the result's quantization."""
    from patterns.ops.moves.base import Filling

    move = None if op.origin is None else op.origin.op
    assert move is not None, op.name
    if isinstance(move, Filling):
        move = replace(move, value=op.pad_value)
    return move.write(builder, inputs, op.name)


def _convolution(builder: BlockBuilder, op: Operator, x: Var, layout: str) -> Var:
    from patterns.ops.conv import conv2d

    if op.padded and op.pad_value:
        raise UnsupportedError(
            f"padding with {op.pad_value}",
            where=f"operator '{op.name}'",
            hint="the shift scheme pads with 0: its input must have zero point 0",
        )
    return conv2d(
        builder, x, op.weights(), op.biases(), _scaling(op), op.clip, name=op.name,
        strides=op.stride, padding=op.pad, dilation=op.dilation, groups=op.groups, layout=layout,
    )  # fmt: skip


def _ternary(
    builder: BlockBuilder, op: Operator, requant: AnalogRequant, x: Var, layout: str
) -> Var:
    from patterns.ops.analog import analog_conv2d, analog_dense

    if op.kind == "dense":
        return analog_dense(builder, x, op.weights(), requant, op.clip, name=op.name)
    return analog_conv2d(
        builder, x, op.weights(), requant, op.clip, name=op.name, strides=op.stride,
        padding=op.pad, layout=layout,
    )  # fmt: skip


def _scaling(op: Operator) -> Shift | MulShift:
    if not isinstance(op.requant, Shift | MulShift):
        raise UnsupportedError("not in the shift scheme", where=f"operator '{op.name}'")
    return op.requant
