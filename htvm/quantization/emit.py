"""Writing a retargeted network as a Relax module in the integer form."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from byoc_dory.errors import UnsupportedError
from htvm.quantization.graph import LINEAR, AnalogRequant, MulShift, Net, Operator, Shift
from patterns.ops.add import Add
from patterns.ops.analog.convolution import AnalogConv2d
from patterns.ops.analog.dense import AnalogDense
from patterns.ops.convert import Convert
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.dense import Dense
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.base import Filling
from patterns.ops.moves.reshape import Reshape
from patterns.ops.tflite.average_pool import AveragePool

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import BlockBuilder, Var

    from patterns.op import Op

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
    return _made(net, op).write(builder, inputs, op.name)


def _made(net: Net, op: Operator) -> Op:
    """The operator of the integer form."""
    layout = "NCHW" if net.channel_first else "NHWC"
    if op.kind in LINEAR:
        return _linear(op, layout)
    if op.kind == "add":
        return Add(_scaling(op), op.clip)
    if op.kind == "convert":
        return Convert(_scaling(op), op.clip, op.offset)
    if op.kind == "average_pool":
        return AveragePool(op.pool, op.stride, op.pad, op.clip, layout)
    if op.kind == "max_pool":
        return MaxPool(op.pool, op.stride, op.pad, layout)
    if op.kind == "reshape":
        return Reshape((1, *_source_shape(op.shape, net)))
    origin = None if op.origin is None else op.origin.op
    if op.kind == "gather" and isinstance(origin, Filling):
        # The number zero is another integer in the result's quantization.
        return replace(origin, value=op.pad_value)
    if origin is not None:
        return origin
    raise UnsupportedError(f"cannot write '{op.kind}'", where=f"operator '{op.name}'")


def _linear(op: Operator, layout: str) -> Op:
    window = Window(op.stride, op.pad, op.dilation, op.groups, layout)
    if isinstance(op.requant, AnalogRequant):
        if op.kind == "dense":
            return AnalogDense(op.weights(), op.requant, op.clip)
        return AnalogConv2d(op.weights(), op.requant, op.clip, window)
    if op.kind == "dense":
        weight = op.weights().reshape(len(op.weights()), -1)
        return Dense(weight, op.biases(), _scaling(op), op.clip)
    if op.padded and op.pad_value:
        raise UnsupportedError(
            f"padding with {op.pad_value}",
            where=f"operator '{op.name}'",
            hint="the shift scheme pads with 0: its input must have zero point 0",
        )
    return conv2d_of(op.weights(), op.biases(), window, _scaling(op), op.clip)


def _scaling(op: Operator) -> Shift | MulShift:
    if not isinstance(op.requant, Shift | MulShift):
        raise UnsupportedError("not in the shift scheme", where=f"operator '{op.name}'")
    return op.requant
