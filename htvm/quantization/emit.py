"""Writing a retargeted network as a Relax module in the integer form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from htvm.quantization.graph import Net
from htvm.quantization.operators import Operator

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import Var

__all__ = ["emit_module"]


def emit_module(net: Net) -> IRModule:
    """Return the module; parameters and operators keep the names of the network.

    Raises:
        UnsupportedError: an operator is in no accelerator's scheme.
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
                values[op.name] = op.write(builder, inputs, shared)
            results = [builder.emit_output(values[name]) for name in net.outputs]
        builder.emit_func_output(results[0] if len(results) == 1 else relax.Tuple(results))
    return builder.get()


def _needed(net: Net) -> list[Operator]:
    """The operators that outputs depend on; conversions for other kept operators are useless."""
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
