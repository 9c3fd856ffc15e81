"""Sums, differences and products of two tensors, broadcast, either of which may be constant."""

from __future__ import annotations

from collections.abc import Sequence

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Array
from htvm.frontend.operators import Activation, Applied
from htvm.frontend.scales import summed
from htvm.frontend.tflite.reader import OperatorReader, constant_array
from patterns.ops.tflite.binary import Function, TfliteBinary, broadcast
from patterns.ops.tflite.factors import AddFactors, MultiplyFactors

__all__ = ["add", "multiply", "subtract"]


def add(op: OperatorReader) -> Sequence[Applied]:
    """ADD; of two tensors of one shape it is a layer."""
    first, second = _operands(op)
    if isinstance(first, Activation) and isinstance(second, Activation):
        if first.shape == second.shape:
            steps = (op.step(op.tensor(0)), op.step(op.tensor(1)), op.step(op.result()))
            clip = op.clip(op.options(11), 0)
            return [Applied(op.position(), op.where, (first, second), summed(*steps, clip))]
    return _binary(op, "add", 11, first, second)


def subtract(op: OperatorReader) -> Sequence[Applied]:
    """SUB."""
    return _binary(op, "subtract", 28, *_operands(op))


def multiply(op: OperatorReader) -> Sequence[Applied]:
    """MUL."""
    return _binary(op, "multiply", 21, *_operands(op))


def _operands(op: OperatorReader) -> tuple[Activation | Array, Activation | Array]:
    op.count((2,))
    found: list[Activation | Array] = []
    for at in (0, 1):
        tensor = op.int8(op.tensor(at))
        found.append(op.value(tensor) if tensor.data is None else constant_array(tensor))
    if all(not isinstance(item, Activation) for item in found):
        raise op.unsupported("both operands are constant", "fold constants when exporting")
    shapes = [op.tensor(at).shape for at in (0, 1)]
    try:
        op.result_shape(broadcast(*shapes))
    except IntegerFormError as error:
        raise op.corrupt(error.what) from error
    return found[0], found[1]


def _binary(
    op: OperatorReader,
    function: Function,
    options: int,
    first: Activation | Array,
    second: Activation | Array,
) -> Sequence[Applied]:
    clip = op.clip(op.options(options), 0)
    steps = (op.step(op.tensor(0)), op.step(op.tensor(1)), op.step(op.result()))
    scales = (steps[0].scale, steps[1].scale, steps[2].scale)
    zeros = (steps[0].zero_point, steps[1].zero_point, steps[2].zero_point)
    parameters: AddFactors | MultiplyFactors
    if function == "multiply":
        parameters = MultiplyFactors.from_scales(scales, zeros)
    else:
        parameters = AddFactors.from_scales(scales, zeros)
    a, b = (None if isinstance(item, Activation) else item for item in (first, second))
    inputs = tuple(item for item in (first, second) if isinstance(item, Activation))
    made = TfliteBinary(function, parameters, clip, a, b)
    return [Applied(op.position(), op.where, inputs, made)]
