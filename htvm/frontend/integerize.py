"""From the operators of a quantized network to a module in the integer form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import HtvmError, ModelError, UnsupportedError
from byoc_dory.layers import Array, OnnxRequant, TfliteRequant
from htvm.frontend.operators import (
    Activation,
    Applied,
    Conv,
    Dense,
    Operator,
    Primitive,
)
from patterns.names import NameCounter, tensor_name
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.dense import Dense as DenseOp
from patterns.ops.moves.pad import Pad
from patterns.ops.onnxruntime.rounding import float_scale
from patterns.ops.requantize import fixed_point

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import BlockBuilder, Var

__all__ = ["integer_module", "named_module"]

_INT32_MAX = 2**31 - 1


def integer_module(
    inputs: Sequence[tuple[str, Activation]], outputs: Sequence[Activation]
) -> IRModule:
    """Write the operators that the outputs need, in the order of the source.

    Args:
        inputs: name and tensor of each parameter of ``main``.
        outputs: what ``main`` returns; a tuple if there are several.

    Raises:
        UnsupportedError: if a constant, an accumulator or a number of elements does not fit int32,
            or a builder refuses its operator.
        ModelError: if a tensor is empty.
    """
    return named_module(inputs, outputs)[0]


def named_module(
    inputs: Sequence[tuple[str, Activation]], outputs: Sequence[Activation]
) -> tuple[IRModule, dict[Activation, str]]:
    """As `integer_module`, and the name each tensor got."""
    from tvm import relax

    operators = _in_order(outputs)
    _check_sizes(operators)
    builder = relax.BlockBuilder()
    writer = _Writer(builder, NameCounter(tuple(name for name, _ in inputs)))
    for name, activation in inputs:
        variable = relax.Var(name, relax.TensorType(activation.shape, activation.dtype))
        writer.variables[activation] = variable
    parameters = [writer.variables[activation] for _, activation in inputs]
    refused: HtvmError | None = None
    names = {activation: name for name, activation in inputs}
    with builder.function("main", parameters):
        with builder.dataflow():
            results = list(parameters)
            try:
                for operator, activation in operators:
                    variable = writer.write(operator)
                    writer.variables[activation] = variable
                    names[activation] = tensor_name(builder.lookup_binding(variable))
                results = [writer.variables[item] for item in outputs]
            except HtvmError as error:
                # Raised below: TVM prints a warning about a builder left in the middle.
                refused = error
            results = [builder.emit_output(result) for result in results]
        builder.emit_func_output(results[0] if len(results) == 1 else relax.Tuple(results))
    if refused is not None:
        raise refused
    return builder.get(), names


def _in_order(outputs: Sequence[Activation]) -> list[tuple[Operator, Activation]]:
    """Each operator the outputs need, with its result, by position."""
    found: dict[Activation, Operator] = {}
    waiting = list(outputs)
    while waiting:
        activation = waiting.pop()
        if activation in found or isinstance(activation.origin, str):
            continue
        found[activation] = activation.origin
        waiting.extend(activation.origin.inputs)
    return [(found[item], item) for item in sorted(found, key=lambda item: found[item].position)]


def _check_sizes(operators: Sequence[tuple[Operator, Activation]]) -> None:
    """Refuse what no 32-bit index reaches, before anything of that size is made.

    Raises:
        UnsupportedError: a tensor of too many elements.
        ModelError: one of none.
    """
    for operator, result in operators:
        for tensor in (*operator.inputs, result):
            elements = math.prod(tensor.shape)
            if elements > _INT32_MAX:
                raise UnsupportedError(
                    f"a tensor of shape {list(tensor.shape)}, which has {elements} elements",
                    where=operator.where,
                    hint=f"at most {_INT32_MAX}; check the shapes in the file",
                )
            if elements < 1:
                raise ModelError(
                    f"a tensor of shape {list(tensor.shape)}, which is empty",
                    where=operator.where,
                    hint="check the shapes in the file",
                )


class _Writer:
    """Writes operators, and names them."""

    def __init__(self, builder: BlockBuilder, names: NameCounter) -> None:
        self.variables: dict[Activation, Var] = {}
        self._builder = builder
        self._names = names

    def write(self, operator: Operator) -> Var:
        """Write one operator whose inputs have been written."""
        sources = [self.variables[activation] for activation in operator.inputs]
        match operator:
            case Conv():
                return self._conv(operator, sources[0])
            case Dense():
                made = DenseOp(
                    operator.weight, _folded_bias(operator), _requant(operator), operator.clip
                )
                return made.write(self._builder, sources, self._names.fresh(made.stem))
            case Applied():
                name = self._names.fresh(operator.stem or operator.op.stem)
                return operator.op.write(self._builder, sources, name)
            case Primitive():
                return operator.write(self._builder, sources, self._names.fresh(operator.kind))
        raise UnsupportedError(f"no builder for {type(operator).__name__}", where=operator.where)

    def _conv(self, operator: Conv, source: Var) -> Var:
        padding = operator.padding
        if any(padding) and operator.input_zero_point:
            # The core pads with the integer 0; the number 0.0 is another integer here.
            pad = Pad(operator.input_zero_point, padding, operator.layout)
            source = pad.write(self._builder, [source], self._names.fresh(pad.stem))
            padding = (0, 0, 0, 0)
        window = Window(
            operator.strides, padding, operator.dilation, operator.groups, operator.layout
        )
        bias = _folded_bias(operator)
        made = conv2d_of(operator.weight, bias, window, _requant(operator), operator.clip)
        return made.write(self._builder, [source], self._names.fresh(made.stem))


def _requant(operator: Conv | Dense) -> TfliteRequant | OnnxRequant:
    if operator.rounding == "onnx":
        floats = [float_scale(ratio) for ratio in operator.ratios]
        return OnnxRequant(
            multiplier=tuple(multiplier for multiplier, _ in floats),
            shift=tuple(shift for _, shift in floats),
            output_zero_point=operator.output_zero_point,
        )
    parts = [fixed_point(ratio) for ratio in operator.ratios]
    return TfliteRequant(
        multiplier=tuple(multiplier for multiplier, _ in parts),
        shift=tuple(shift for _, shift in parts),
        output_zero_point=operator.output_zero_point,
    )


def _folded_bias(operator: Conv | Dense) -> Array:
    """The bias minus zero point times the sum of the weights, per output channel.

    Raises:
        UnsupportedError: if it, or some accumulator, does not fit int32.
    """
    rows = operator.weight.astype("int64").reshape(operator.weight.shape[0], -1)
    bias = operator.bias.astype("int64") - operator.input_zero_point * rows.sum(axis=1)
    # Weights times activations in [-128, 127], each at its worst.
    highest = bias + np.maximum(rows * 127, rows * -128).sum(axis=1)
    lowest = bias + np.minimum(rows * 127, rows * -128).sum(axis=1)
    worst = int(max(np.abs(bias).max(), highest.max(), -lowest.min()))
    if worst > _INT32_MAX:
        raise UnsupportedError(
            f"an accumulator can reach {worst}, beyond int32",
            where=operator.where,
            hint="quantize with larger weight scales, or split the layer's input channels",
        )
    return bias.astype("int32")
