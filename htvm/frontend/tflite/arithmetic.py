"""Functions of two tensors, broadcast, either of which may be constant; products of matrices.

Those of int16 have no zero points, and fewer fraction bits to spare.
"""

from __future__ import annotations

from collections.abc import Sequence

from byoc_dory.layers import Array
from htvm.frontend.operators import Activation, Applied
from htvm.frontend.scales import binary_of, summed
from htvm.frontend.tflite.file import TfliteTensor
from htvm.frontend.tflite.reader import OperatorReader, constant_array
from patterns.op import INT8
from patterns.ops.integer.reduction import Extreme, Which
from patterns.ops.requantize import fixed_point
from patterns.ops.tflite.binary import Function
from patterns.ops.tflite.matmul import TfliteMatmul, WideMatmul
from patterns.ops.tflite.wide import narrowed


def add(op: OperatorReader) -> Sequence[Applied]:
    """ADD; of two tensors of one shape it is a layer."""
    first, second = _operands(op)
    if isinstance(first, Activation) and isinstance(second, Activation):
        if op.dtype == "int8" and first.shape == second.shape:
            steps = (op.step(op.tensor(0)), op.step(op.tensor(1)), op.step(op.result()))
            clip = op.clip(op.options(11), 0)
            return [op.apply(summed(*steps, clip), first, second)]
    return binary(op, "add", 11)


def extreme(op: OperatorReader, which: Which) -> Sequence[Applied]:
    """MAXIMUM and MINIMUM of tensors of one scale."""
    first, second = _operands(op)
    result = op.result()
    if not all(op.same_quantization(op.tensor(at), result) for at in (0, 1)):
        raise op.unsupported(f"a {which} of tensors that differ in scale or zero point")
    if not isinstance(first, Activation):
        first, second = second, first
    assert isinstance(first, Activation)
    constant = None if isinstance(second, Activation) else second
    inputs = (first, second) if isinstance(second, Activation) else (first,)
    return [op.apply(Extreme(which, constant), *inputs)]


def batch_matmul(op: OperatorReader) -> Sequence[Applied]:
    """BATCH_MATMUL of two tensors of matrices, either of which may be transposed or constant."""
    op.count((2,))
    parts, options = _parts(op), op.options(101)
    transposed = bool(options.integer(0, "B")), bool(options.integer(1, "B"))
    steps = [op.step(each) for each in (op.tensor(0), op.tensor(1), op.result())]
    factor = fixed_point(steps[0].scale * steps[1].scale / steps[2].scale)
    zeros = (steps[0].zero_point, steps[1].zero_point, steps[2].zero_point)
    a, b = (None if isinstance(item, Activation) else item for item in parts)
    made: TfliteMatmul
    if op.dtype == "int8":
        made = TfliteMatmul(*factor, zeros, INT8, transposed, a, b)
    else:
        made = WideMatmul(*narrowed(*factor), zeros, op.limits, transposed, a, b)
    inputs = tuple(item for item in parts if isinstance(item, Activation))
    return [op.apply(made, *inputs)]


def _parts(op: OperatorReader) -> list[Activation | Array]:
    """Return both operands, at least one of which is computed."""

    def value(tensor: TfliteTensor) -> Activation | Array:
        return op.value(tensor) if tensor.data is None else constant_array(tensor)

    found = [value(op.quantized(op.tensor(at))) for at in (0, 1)]
    if all(not isinstance(item, Activation) for item in found):
        raise op.unsupported("both operands are constant", "fold constants when exporting")
    return found


def _operands(op: OperatorReader) -> tuple[Activation | Array, Activation | Array]:
    op.count((2,))
    first, second = _parts(op)
    return first, second


def binary(op: OperatorReader, function: Function, options: int) -> Sequence[Applied]:
    """SUB, MUL and SQUARED_DIFFERENCE."""
    first, second = _operands(op)
    clip = op.clip(op.options(options), 0) if options else op.limits
    steps = (op.step(op.tensor(0)), op.step(op.tensor(1)), op.step(op.result()))
    a, b = (None if isinstance(item, Activation) else item for item in (first, second))
    inputs = tuple(item for item in (first, second) if isinstance(item, Activation))
    made = binary_of(function, steps, clip, a, b, wide=op.dtype == "int16")
    return [op.apply(made, *inputs)]
