"""Quantize/dequantize modules: what the integer form computes, and what it means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax
from tvm.relax import op as R

import htvm
from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import Weighted
from htvm.vm import linked
from patterns.reading.read import graph_of
from tests.frontend.qdq import QdqBuilder
from tests.patterns.build import run_tvm
from tests.reference.interpreter import interpret

SHAPE = {"NHWC": (1, 8, 6, 4), "NCHW": (1, 4, 8, 6)}

Write = Callable[[QdqBuilder, Any], Any]

SINGLE: dict[str, Write] = {
    "conv": lambda q, x: q.conv(x, 5),
    "conv strided": lambda q, x: q.conv(x, 5, (3, 5), (2, 2), (0, 1, 1, 2)),
    "conv relu": lambda q, x: q.conv(x, 5, (1, 1), padding=(0, 0, 0, 0), activation="relu"),
    "conv relu6": lambda q, x: q.conv(x, 5, activation="relu6"),
    "depthwise": lambda q, x: q.conv(x, 0, depthwise=True),
    "dense": lambda q, x: q.dense(q.flatten(x), 7, "relu"),
    "add": lambda q, x: q.add(x, q.requantize(x)),
    "requantize": lambda q, x: q.requantize(x),
    "softmax": lambda q, x: q.softmax(q.flatten(x)),
}


@pytest.mark.rotating(5)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("write", SINGLE.values(), ids=SINGLE.keys())
def test_one_operator_means_what_the_floats_mean(write: Write, layout: str) -> None:
    """At most one step from the float reading: two roundings against one."""
    qdq = QdqBuilder(11, SHAPE[layout], layout)
    module = qdq.module(lambda x: write(qdq, x))
    model = htvm.load(module)
    sample = qdq.rng.integers(-128, 128, SHAPE[layout]).astype(np.int8)
    made = run_tvm(model.module, sample)
    np.testing.assert_array_equal(interpret(model.module, [sample]).outputs[0], made)
    wanted = run_tvm(module, sample)
    assert len(np.unique(wanted)) > 3
    difference = np.abs(made.astype(int) - wanted)
    assert difference.max() <= 1
    assert (difference > 0).mean() < 0.2
    (result,) = model.outputs
    assert (result.scale, result.zero_point) == list(qdq.steps.values())[-1]
    assert (model.inputs[0].scale, model.inputs[0].zero_point) == qdq.steps[qdq.source]


@st.composite
def networks(draw: st.DrawFn) -> tuple[QdqBuilder, Any, str]:
    """A small network with branches."""
    layout = draw(st.sampled_from(["NHWC", "NCHW"]))
    qdq = QdqBuilder(draw(st.integers(0, 2**16)), SHAPE[layout], layout)
    kinds = draw(
        st.lists(
            st.sampled_from(
                ["conv", "wide", "depthwise", "residual", "requantize", "max", "average"]
            ),
            min_size=1,
            max_size=4,
        )
    )
    ending = draw(st.sampled_from(["none", "dense", "softmax", "both"]))
    activation = draw(st.sampled_from(["none", "relu", "relu6"]))

    def write(x: Any) -> Any:
        for kind in kinds:
            x = step(x, kind)
        if ending == "none":
            return x
        dense = qdq.dense(qdq.flatten(x), 6)
        if ending == "both":
            return dense, qdq.softmax(dense), x
        return dense if ending == "dense" else qdq.softmax(dense)

    def step(x: Any, kind: str) -> Any:
        spatial = [int(size) for size in x.ty.shape][
            slice(1, 3) if layout == "NHWC" else slice(2, 4)
        ]
        if kind == "conv":
            return qdq.conv(x, 5, activation=activation)
        if kind == "wide":
            return qdq.conv(x, 7, (1, 1), (2, 2), (0, 0, 0, 0), activation=activation)
        if kind == "depthwise":
            return qdq.conv(x, 0, (3, 3), (1, 1), (1, 1, 1, 1), True, activation)
        if kind == "residual":
            channels = int(x.ty.shape[3 if layout == "NHWC" else 1])
            return qdq.add(qdq.conv(x, channels), x, activation)
        if kind == "max" and min(spatial) >= 2:
            return qdq.max_pool(x)
        if kind == "average":
            return qdq.average_pool(x, (min(2, spatial[0]), min(3, spatial[1])))
        return qdq.requantize(x)

    return qdq, qdq.module(write), layout


@settings(max_examples=10, deadline=None, derandomize=True)
@given(networks())
def test_random_networks(case: tuple[QdqBuilder, Any, str]) -> None:
    qdq, module, layout = case
    model = htvm.load(module, "random")
    sample = qdq.rng.integers(-128, 128, SHAPE[layout]).astype(np.int8)
    run = interpret(model.module, [sample])
    if len(run.outputs) == 1:
        made = [run_tvm(model.module, sample)]
    else:
        made = _run_all(model.module, sample)
    assert len(made) == len(model.outputs)
    for output, wanted in zip(made, run.outputs, strict=True):
        np.testing.assert_array_equal(output, wanted)
    # Loading the integer form again changes nothing.
    again = htvm.load(model.module)
    assert [node.name for node in graph_of(again.module).in_order] == list(run.tensors)


def _run_all(module: Any, sample: Any) -> list[Any]:
    machine = relax.VirtualMachine(linked(relax.build(module, "llvm")), tvm.cpu())
    return [item.numpy() for item in machine["main"](tvm.runtime.tensor(sample))]


def test_bias_in_other_steps_is_converted() -> None:
    """A bias that is float, or has a scale of its own, is rounded to the accumulator's step."""
    qdq = QdqBuilder(3, (1, 16))
    weight, scales = qdq.weights(16, 4, axis=1)
    product = qdq.steps[qdq.source][0] * scales.astype(np.float64)
    reals = qdq.rng.normal(0, 100, 4) * product
    value_of = {
        "float": relax.const(reals.astype(np.float32)),
        "coarse": R.dequantize(
            relax.const(np.rint(reals / (product * 8)).astype(np.int32)),
            relax.const((product * 8).astype(np.float32)),
            relax.const(0, "int32"),
            axis=0,
        ),
    }
    for kind, bias in value_of.items():
        builder = QdqBuilder(3, (1, 16))
        module = builder.module(
            lambda x, b=builder, v=bias: b.quantized(
                R.add(R.matmul(b.dequantized(x), weight), v), (1.0, 0)
            )
        )
        layer = graph_of(htvm.load(module).module).in_order[0].layer
        assert isinstance(layer, Weighted) and layer.bias is not None
        zero_point = builder.steps[builder.source][1]
        bias_read = layer.bias + zero_point * layer.weight.astype(np.int64).sum(axis=(1, 2, 3))
        wanted = np.rint(reals / product)
        tolerance = 1 if kind == "float" else 5
        assert np.abs(bias_read - wanted).max() <= tolerance


def test_constants_in_attributes_are_no_parameters() -> None:
    """TVM's TFLite importer lists them beside a function that has inputs only."""
    qdq = QdqBuilder(3, (1, 16))
    module = qdq.module(lambda x: qdq.dense(x, 4))
    wanted = htvm.load(module).module
    more = {"num_input": 1, "params": [tvm.runtime.tensor(np.zeros(3, np.int8))]}
    module["main"] = module["main"].with_attrs(more)
    assert tvm_ffi.structural_equal(htvm.load(module).module, wanted)


def _unquantized(q: QdqBuilder, x: Any) -> Any:
    value = R.nn.relu(R.nn.relu(q.dequantized(x)))
    return q.quantized(R.add(value, q.dequantized(x)))


def _tanh(q: QdqBuilder, x: Any) -> Any:
    return q.quantized(R.tanh(q.dequantized(x)))


def _zero_point(q: QdqBuilder, x: Any) -> Any:
    data = relax.const(np.ones((24, 2), np.int8))
    weight = R.dequantize(data, relax.const(0.5, "float32"), relax.const(3, "int32"), axis=1)
    return q.quantized(R.matmul(q.dequantized(q.flatten(x)), weight))


def _overflow(q: QdqBuilder, x: Any) -> Any:
    flat = q.flatten(x)
    weight, scales = q.weights(192, 2, axis=1)
    scale = (np.float32(q.steps[x][0]) * scales).astype(np.float32)
    huge = relax.const(np.full(2, 2**31 - 5, np.int32))
    bias = R.dequantize(huge, relax.const(scale), relax.const(0, "int32"), axis=0)
    return q.quantized(R.add(R.matmul(q.dequantized(flat), weight), bias))


def _int16(q: QdqBuilder, x: Any) -> Any:
    scale, zero = relax.const(0.1, "float32"), relax.const(0, "int32")
    wide = R.quantize(q.dequantized(x), scale, zero, axis=0, out_dtype="int16")
    return q.quantized(R.dequantize(wide, scale, zero, axis=0))


def _endless_border(q: QdqBuilder, x: Any) -> Any:
    widths = [0, 0, 1, 1, 1, 1, 0, 0]
    return q.quantized(R.nn.pad(q.dequantized(x), widths, "constant", float("-inf")))


def _far_zero_point(q: QdqBuilder, x: Any) -> Any:
    return q.quantized(q.dequantized(x), (0.1, 300))


def _other_layout(q: QdqBuilder, x: Any) -> Any:
    pool = R.nn.max_pool2d(x, (2, 2), (2, 2), layout="NHWC", out_layout="NCHW")
    return q.requantize(q.keep_step(x, pool))


def _product_of_tensors(q: QdqBuilder, x: Any) -> Any:
    a, b = (q.keep_step(x, R.reshape(x, shape)) for shape in ((12, 16), (16, 12)))
    return q.quantized(R.matmul(q.dequantized(a), q.dequantized(b)))


def _softmax_scale(q: QdqBuilder, x: Any) -> Any:
    return q.quantized(R.nn.softmax(q.dequantized(q.flatten(x))), (0.01, 0))


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (_unquantized, "first operand is no dequantized"),
        (_tanh, "int8 tanh has scale 1/128 and zero point 0"),
        (_zero_point, "zero point 3"),
        (_overflow, "do not fit 32 bits"),
        (_int16, "int16"),
        (_endless_border, "padding with -inf"),
        (_softmax_scale, "1/256"),
        (_far_zero_point, "zero point beyond int8: [300]"),
        (_other_layout, "layout NCHW"),
        (_product_of_tensors, "computed at run time"),
    ],
)
def test_unsupported_is_named(write: Write, message: str) -> None:
    qdq = QdqBuilder(5, SHAPE["NHWC"])
    if write is _zero_point:
        qdq = QdqBuilder(5, (1, 24))
    module = qdq.module(lambda x: write(qdq, x))
    with pytest.raises(UnsupportedError) as caught:
        htvm.load(module)
    assert message in str(caught.value)
    assert caught.value.where
