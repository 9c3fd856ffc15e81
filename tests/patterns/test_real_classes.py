"""Operators on reals and at their borders are read back as they were written, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byoc_dory.errors import HtvmError
from byoc_dory.layers import OnnxRequant
from patterns.op import Op
from patterns.ops.float32.combine import RealCombine, RealMatmul, RealReduce
from patterns.ops.float32.elementary import RealExp, RealMap, RealRound, RealSqrt
from patterns.ops.float32.maps import RealAverage, RealConv2d
from patterns.ops.float32.quantize import Dequantize, Quantize
from patterns.ops.onnxruntime.average import OnnxAverage, OnnxSoftmax
from patterns.ops.onnxruntime.rounding import OnnxQuantize, OnnxReal
from patterns.reading.read import graph_of
from tests.patterns.build import module_of

MAPS, ROWS = (1, 2, 4, 6), (3, 5)
SCALE = OnnxRequant((12345678,), (30,), -7, (3,))


def ramp(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 3


@pytest.mark.parametrize(
    ("op", "shapes", "dtype"),
    [
        (Quantize(0.1, 3, "uint8"), [ROWS], "float32"),
        (OnnxQuantize(0.1, -3), [ROWS], "float32"),
        (Dequantize(0.1, 4), [ROWS], "int8"),
        (OnnxReal(ramp(1, 5)), [ROWS], "int32"),
        (OnnxSoftmax(0.1, 1 / 256, -128, (-128, 100)), [ROWS], "int8"),
        (OnnxAverage(SCALE, (2, 3), (1, 2), (1, 0, 0, 1), (-7, 127)), [MAPS], "int8"),
        (RealAverage((2, 3), (2, 1)), [MAPS], "float32"),
        (RealConv2d(ramp(4, 1, 3, 3), ramp(4), padding=(1, 1, 1, 1), groups=2), [MAPS], "float32"),
        (RealCombine("subtract"), [ROWS, (5,)], "float32"),
        (RealCombine("divide", a=ramp(3, 1)), [ROWS], "float32"),
        (RealMatmul(b=ramp(5, 2)), [ROWS], "float32"),
        (RealMatmul(), [ROWS, (7, 5, 2)], "float32"),
        (RealReduce("maximum", (-1,)), [ROWS], "float32"),
        (RealMap("erf"), [ROWS], "float32"),
        (RealExp(), [ROWS], "float32"),
        (RealRound(), [ROWS], "float32"),
        (RealSqrt(), [ROWS], "float32"),
    ],
    ids=repr,
)
def test_read_as_written(op: Op, shapes: list[tuple[int, ...]], dtype: str) -> None:
    module = module_of(shapes, lambda bb, *inputs: op.write(bb, inputs, "op_0"), dtype)
    (node,) = graph_of(module).in_order
    assert node.op == op
    assert type(node.op) is type(op)
    assert len(node.inputs) == len(shapes)


@pytest.mark.parametrize(
    ("op", "shapes", "dtype", "what"),
    [
        (RealSqrt(), [ROWS], "int8", "an operand of type int8"),
        (RealCombine("add"), [ROWS, (4,)], "float32", "operands of shapes"),
        (RealMatmul(), [ROWS, ROWS], "float32", "a product of shapes"),
        (RealAverage((5, 1)), [MAPS], "float32", "windows of"),
        (RealConv2d(ramp(4, 2, 3, 3), ramp(4), groups=2), [MAPS], "float32", "in 2 groups"),
        (OnnxAverage(SCALE, (5, 1), (1, 1)), [MAPS], "int8", "windows of"),
        (OnnxSoftmax(0.1, 2.0**-16), [ROWS], "int8", "a softmax of rows of 5"),
    ],
    ids=repr,
)
def test_refused(op: Op, shapes: list[tuple[int, ...]], dtype: str, what: str) -> None:
    with pytest.raises(HtvmError, match=what) as refused:
        module_of(shapes, lambda bb, *inputs: op.write(bb, inputs, "op_0"), dtype)
    assert refused.value.where == "operator 'op_0'"
