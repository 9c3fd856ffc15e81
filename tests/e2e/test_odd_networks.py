"""Networks that once went wrong, each written down by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tvm import relax
from tvm.ir import IRModule

import htvm
from byoc_dory.layers import Shift, TfliteRequant
from patterns.ops.add import Add
from patterns.ops.convert import Convert
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.dense import Dense
from patterns.ops.tflite.binary import AddFactors, TfliteAdd
from patterns.ops.tflite.softmax import TfliteSoftmax
from tests.reference.interpreter import interpret

RNG = np.random.default_rng(31)
Writer = Callable[..., Any]


def module_of(shapes: dict[str, tuple[int, ...]], write: Writer) -> IRModule:
    """``write(builder, *inputs)`` returns the outputs."""
    bb = relax.BlockBuilder()
    inputs = [relax.Var(name, relax.TensorType(shape, "int8")) for name, shape in shapes.items()]
    with bb.function("main", inputs):
        with bb.dataflow():
            outputs = [bb.emit_output(value) for value in write(bb, *inputs)]
        bb.emit_func_output(outputs[0] if len(outputs) == 1 else relax.Tuple(outputs))
    return bb.get()


def equals_the_integer_form(module: IRModule, target: str) -> htvm.Module:
    built = htvm.build(htvm.load(module, name="odd"), target, "host")
    inputs = [
        RNG.integers(-128, 128, info.shape).astype(np.int8) for info in built.compiled.source.inputs
    ]
    wanted = interpret(built.model.module, inputs).outputs
    for output, expected in zip(built.run(inputs).outputs, wanted, strict=True):
        np.testing.assert_array_equal(output, expected)
    return built


def some_conv(bb: relax.BlockBuilder, x: relax.Var, name: str, layout: str) -> relax.Var:
    weight = RNG.integers(-9, 9, (8, 8, 3, 3)).astype(np.int8)
    bias = RNG.integers(-99, 99, 8).astype(np.int32)
    pad = (1, 1, 1, 1)
    return conv2d_of(weight, bias, Window(padding=pad, layout=layout), Shift(6)).write(
        bb, [x], name
    )


def test_a_result_of_a_region_may_be_read_by_the_cpu_as_well() -> None:
    def write(bb: relax.BlockBuilder, x: relax.Var) -> list[relax.Var]:
        weight = RNG.integers(-99, 99, (12, 10)).astype(np.int8)
        first = Dense(weight, np.zeros(12, np.int32), Shift(7)).write(bb, [x], "dense_0")
        return [Convert(Shift(1), offset=5).write(bb, [first], "convert_0"), first, first]

    built = equals_the_integer_form(module_of({"x": (1, 10)}, write), "diana.digital")
    assert built.placement["dense_0"] == "digital"
    names = [info.name for info in built.model.outputs]
    assert names == ["convert_0", "dense_0", "dense_0_2"]


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_sums_are_laid_out_like_the_convolutions_around_them(layout: str) -> None:
    """Of two inputs, of an input and a result, of a result with itself."""
    shape = (1, 5, 7, 8) if layout == "NHWC" else (1, 8, 5, 7)

    def write(bb: relax.BlockBuilder, x: relax.Var, y: relax.Var) -> list[relax.Var]:
        first = Add(Shift(1)).write(bb, [x, y], "add_0")
        second = Add(Shift(1)).write(bb, [y, some_conv(bb, first, "conv2d_0", layout)], "add_1")
        third = Add(Shift(1), (0, 127)).write(bb, [second, second], "add_2")
        return [some_conv(bb, third, "conv2d_1", layout), second]

    built = equals_the_integer_form(module_of({"x": shape, "y": shape}, write), "diana.digital")
    assert set(built.placement.values()) == {"digital"}


@pytest.mark.parametrize("target", ["diana.cpu", "diana.digital"])
def test_names_need_not_be_identifiers(target: str) -> None:
    shape = (1, 4, 4, 8)

    def write(bb: relax.BlockBuilder, x: relax.Var, y: relax.Var) -> list[relax.Var]:
        parameters = AddFactors.from_scales((0.1, 0.1, 0.2), (0, 0, 0))
        a = TfliteAdd(parameters).write(bb, [x, y], "a/*add*/:0")
        b = TfliteAdd(parameters).write(bb, [y, x], "a/*add*/;0")
        requant = TfliteRequant((2**30,), (1,), 0)
        c = Convert(requant).write(bb, [a], "2 to 3")
        return [some_conv(bb, c, "Relu6;conv", "NHWC"), some_conv(bb, b, "Relu6:conv", "NHWC")]

    equals_the_integer_form(module_of({"in:0": shape, "in/0": shape}, write), target)


@pytest.mark.parametrize("shape", [(1, 1), (1, 3, 4, 1), (1, 3, 4, 2)])
def test_softmax_of_rows_of_one_element(shape: tuple[int, ...]) -> None:
    module = module_of(
        {"x": shape}, lambda bb, x: [TfliteSoftmax.of_scale(0.1).write(bb, [x], "softmax_0")]
    )
    equals_the_integer_form(module, "diana.cpu")


def test_operators_that_no_result_needs_are_left_out() -> None:
    def write(bb: relax.BlockBuilder, x: relax.Var) -> list[relax.Var]:
        some_conv(bb, Add(Shift(1)).write(bb, [x, x], "add_0"), "conv2d_0", "NHWC")
        return [some_conv(bb, x, "conv2d_1", "NHWC")]

    built = equals_the_integer_form(module_of({"x": (1, 5, 4, 8)}, write), "diana.digital")
    assert list(built.placement) == ["conv2d_1"]


@pytest.mark.parametrize("target", ["diana.cpu", "diana.digital"])
def test_a_network_may_return_its_inputs_and_nothing_else(target: str) -> None:
    module = module_of({"x": (1, 3), "y": (1, 2, 2, 5)}, lambda bb, x, y: [y, x, y])
    equals_the_integer_form(module, target)
