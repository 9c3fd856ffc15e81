"""onnxruntime's sums, products, averages and quantization: TVM against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from byoc_dory.errors import IntegerFormError, UnsupportedError
from byoc_dory.layers import OnnxRequant, OnnxSum
from patterns.ops.onnxruntime.average import OnnxAverage
from patterns.ops.onnxruntime.binary import OnnxAdd, OnnxBinary, aligned
from patterns.ops.onnxruntime.rounding import OnnxQuantize, float_scale
from patterns.reading.read import graph_of
from tests.patterns.build import module_of, run_tvm
from tests.reference.interpreter import interpret

ALL = np.arange(-128, 128, dtype=np.int8)


def requant(*scales: float, zero: int = 0, inputs: tuple[int, ...] = (0,)) -> OnnxRequant:
    multipliers, shifts = zip(*(float_scale(scale) for scale in scales), strict=True)
    return OnnxRequant(multipliers, shifts, zero, inputs)


@pytest.mark.rotating(2)
@pytest.mark.parametrize(
    ("function", "scales"),
    [
        ("add", (0.37, 0.81)),
        ("add", (0.5, 0.5)),  # every other sum is a tie
        ("add", (1.25, 2.0**-30)),
        ("subtract", (0.25, 0.75)),
        ("multiply", (0.0078125,)),
        ("multiply", (0.0123,)),
    ],
)
def test_every_pair_of_bytes(function, scales) -> None:
    a, b = np.repeat(ALL, 256)[None], np.tile(ALL, 256)[None]
    parameters = requant(*scales, zero=-3, inputs=(5, -7))
    op: OnnxAdd | OnnxBinary = OnnxBinary(parameters, (-120, 127), function)
    if function == "add":
        op = OnnxAdd(parameters, (-120, 127))
    module = module_of([a.shape, b.shape], lambda bb, x, y: op.write(bb, [x, y], "op_0"))
    made = run_tvm(module, a, b)
    np.testing.assert_array_equal(made, interpret(module, [a, b]).outputs[0])
    exact = [np.float64(np.float32(scale)) for scale in scales]
    x, y = a.astype(np.float64) - 5, b.astype(np.float64) + 7
    real = x * y * exact[0]
    if function != "multiply":
        real = x * exact[0] + (y if function == "add" else -y) * exact[1]
    # Only where a scale has many bits, and only close to a tie, does rounding to float32 matter.
    matters = np.abs(real % 1 - 0.5) < 1e-4
    matters &= any(not (scale * 2**8).is_integer() for scale in scales)
    wanted = np.clip(np.rint(real - 3), -120, 127).astype(np.int8)
    np.testing.assert_array_equal(made[~matters], wanted[~matters])
    assert matters.mean() < 0.3
    (node,) = graph_of(module).in_order
    assert node.op == op
    if node.layer is not None:
        assert node.layer.requant == OnnxSum(**vars(parameters))
        assert node.layer.clip == (-120, 127)


@pytest.mark.parametrize("function", ["add", "subtract", "multiply"])
@pytest.mark.parametrize(
    ("scales", "reals"), [((0.0625, 0.0625, 0.125), False), ((0.05, 0.02, 0.1), True)]
)
def test_every_pair_of_bytes_in_reals(function, scales, reals: bool) -> None:
    """Exact integers where they are the same, else float32."""
    a, b = np.repeat(ALL, 256)[None], np.tile(ALL, 256)[None]
    first, second, last = (np.float32(scale) for scale in scales)
    factors = [float(first / last), float(second / last)]
    if function == "multiply":
        factors = [float(first * second / last)]
    parameters = requant(*factors, zero=-3, inputs=(5, -7))
    op: OnnxAdd | OnnxBinary = OnnxBinary(parameters, (-120, 127), function, steps=scales)
    if function == "add":
        op = OnnxAdd(parameters, (-120, 127), steps=scales)
    assert op.needs_reals == reals
    module = module_of([a.shape, b.shape], lambda bb, x, y: op.write(bb, [x, y], "op_0"))
    made = run_tvm(module, a, b)
    np.testing.assert_array_equal(made, interpret(module, [a, b]).outputs[0])
    x, y = (a.astype(np.float32) - 5) * first, (b.astype(np.float32) + 7) * second
    real = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply}[function](x, y)
    wanted = np.clip(np.rint(real / last) - 3, -120, 127).astype(np.int8)
    np.testing.assert_array_equal(made, wanted)
    (node,) = graph_of(module).in_order
    assert node.op == op


def test_constant_operand_is_broadcast() -> None:
    x = np.arange(-96, 96, dtype=np.int8).reshape(1, 3, 8, 8)
    constant = np.asarray([[[-100]], [[3]], [[90]]], np.int8)
    op = OnnxBinary(requant(0.7, 0.3, inputs=(1, 2)), b=constant)
    module = module_of([x.shape], lambda bb, v: op.write(bb, [v], "op_0"))
    np.testing.assert_array_equal(run_tvm(module, x), interpret(module, [x]).outputs[0])
    (node,) = graph_of(module).in_order
    assert node.op == op


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(IntegerFormError, match="operands of shapes"):
        module_of(
            [(1, 3), (1, 4)],
            lambda bb, x, y: OnnxBinary(requant(0.7, 0.3, inputs=(1, 2))).write(bb, [x, y], "op_0"),
        )  # fmt: skip


def test_sums_too_fine_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="output scale"):
        module_of(
            [(1, 3), (1, 3)],
            lambda bb, x, y: OnnxBinary(
 requant(2.0**22 + 0.5, 2.0**-30, inputs=(1, 2)), function="multiply"
).write(bb, [x, y], "op_0"),
        )  # fmt: skip


def test_aligned_factors_are_exact() -> None:
    factors, exponent = aligned(requant(0.37, 0.0021, inputs=(0, 0)))
    assert [factor * 2.0**-exponent for factor in factors] == [np.float32(0.37), np.float32(0.0021)]


@pytest.mark.rotating(1)
@pytest.mark.parametrize(
    ("kernel", "strides", "padding", "scale", "layout"),
    [
        ((8, 8), (1, 1), (0, 0, 0, 0), 1.7 / 64, "NCHW"),
        ((2, 2), (2, 2), (0, 0, 0, 0), 0.25, "NHWC"),
        ((3, 2), (2, 1), (1, 0, 1, 1), 0.9 / 6, "NCHW"),
    ],
)
def test_average(kernel, strides, padding, scale, layout) -> None:
    x = np.random.default_rng(3).integers(-128, 128, (1, 8, 8, 8)).astype(np.int8)
    parameters = requant(scale, zero=9, inputs=(-11,))
    op = OnnxAverage(parameters, kernel, strides, padding, (9, 127), layout)
    module = module_of([x.shape], lambda bb, v: op.write(bb, [v], "op_0"))
    np.testing.assert_array_equal(run_tvm(module, x), interpret(module, [x]).outputs[0])
    (node,) = graph_of(module).in_order
    assert node.op == op


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_quantize(dtype: str) -> None:
    rng = np.random.default_rng(4)
    x = np.concatenate(
        [
            np.arange(-300, 300) / 2,  # ties
            rng.normal(0, 80, 1000),
            [np.nan, np.inf, -np.inf, 1e30, -1e30, 0.0, -0.0],
        ]
    ).astype(np.float32)[None]
    for scale in (1.0, 0.0371):
        module = module_of(
            [x.shape],
            lambda bb, v, scale=scale: OnnxQuantize(scale, 3, dtype).write(bb, [v], "op_0"),
            "float32",
        )
        limits = np.iinfo(dtype)
        with np.errstate(invalid="ignore"):
            ratio = x / np.float32(scale)
        wanted = np.clip(
            np.rint(np.where(np.isnan(ratio), np.inf, ratio)) + 3, limits.min, limits.max
        )
        made = run_tvm(module, x)
        assert made.dtype == dtype
        np.testing.assert_array_equal(made, wanted)
        np.testing.assert_array_equal(interpret(module, [x]).outputs[0], wanted)
