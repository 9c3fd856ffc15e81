"""What is said of ONNX files that are sound but not read: the operator, the place, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import htvm
from htvm.errors import HtvmError, ModelError, UnsupportedError
from htvm.frontend.onnx import schema
from tests.frontend.onnxfile import model_of, node, saved

X = {"x": (1, 6)}
BIG = np.asarray([100_000, 100_000], np.int64)
ONE = np.asarray([2], np.int64)


def typed(dtype: int, *nodes: onnx.NodeProto, **constants: Any) -> onnx.ModelProto:
    """A network whose input and output are of a type."""
    model = model_of(nodes, X, constants=constants, dtype=dtype)
    model.graph.output[0].type.tensor_type.elem_type = dtype
    return model


def branch(name: str, op: str) -> onnx.GraphProto:
    result = helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 6))
    return helper.make_graph([node(op, ["x"], name)], name, [], [result])


FLOAT, INT8 = TensorProto.FLOAT, TensorProto.INT8
CASES: dict[str, tuple[onnx.ModelProto, str]] = {
    "operators that nobody reads are named, and only they": (
        typed(FLOAT, node("Relu", ["x"], "a"), node("TopK", ["a", "k"], "y"), k=ONE),
        r"operator TopK is not supported; node 'y' \(TopK\), 2 of 2",
    ),
    "an operator of another domain": (
        typed(FLOAT, node("Foo", ["x"], "y", domain="com.acme")),
        "operator Foo of the domain 'com.acme'",
    ),
    "a constant too large to be folded": (
        typed(FLOAT, node("ConstantOfShape", ["n"], "c"), node("ReduceSum", ["c"], "s"),
              node("Add", ["x", "s"], "y"), n=BIG),
        r"elements or more, for a limit of 33,554,432; node 'c' \(ConstantOfShape\)",
    ),
    "integers without scales": (
        typed(INT8, node("Neg", ["x"], "y")), "no dialect has these operators on tensors of int8"
    ),
    "sums of int8 that wrap around": (
        typed(INT8, node("Add", ["x", "c"], "y"), c=np.asarray([100], np.int8)),
        r"declares int8\[1, 6\], which is int32 here",
    ),
    "nothing to compute": (
        typed(FLOAT, node("Relu", ["c"], "y"), c=np.ones((1, 6), np.float32)),
        "no operator is left",
    ),
    "a slice without elements": (
        typed(FLOAT, node("Slice", ["x", "n", "n", "a"], "y"), n=ONE, a=np.asarray([1], np.int64)),
        "leaves nothing",
    ),
    "control flow": (
        typed(FLOAT, node("Loop", ["", "c", "x"], "y", body=branch("t", "Relu")),
              c=np.asarray(True)),
        "control flow",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("model", "message"), CASES.values(), ids=CASES.keys())
def test_the_reason_is_true(model: onnx.ModelProto, message: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=message) as raised:
        htvm.load(saved(model, tmp_path))
    assert "damaged" not in str(raised.value)


@pytest.mark.parametrize(
    ("shape", "message"),
    [((1, 0), "dimension 1 is declared as 0"), ((1, -4), "declared as -4"), ((1, None), "dynamic"),
     (("n", 6), "'n', is dynamic"), ((), "without dimensions")],
)  # fmt: skip
def test_open_sizes(shape: tuple[Any, ...], message: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=message):
        htvm.load(saved(model_of([node("Relu", ["x"], "y")], {"x": shape}), tmp_path))


def of_opset(opset: int) -> onnx.ModelProto:
    model = model_of([node("Relu", ["x"], "y")], X)
    model.opset_import[0].version = opset
    return model


def test_a_later_standard_is_not_guessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnsupportedError, match="opset 999; model.onnx; at most"):
        htvm.load(saved(of_opset(999), tmp_path))
    htvm.load(saved(of_opset(14), tmp_path))
    monkeypatch.setattr(schema, "NEWEST_OPSET", 13)  # Relu was defined anew in 14
    schema._form.cache_clear()
    try:
        htvm.load(saved(of_opset(13), tmp_path))
        with pytest.raises(UnsupportedError, match="Relu as opset 14 defines it"):
            htvm.load(saved(of_opset(14), tmp_path))
    finally:
        schema._form.cache_clear()


def test_an_attribute_given_twice(tmp_path: Path) -> None:
    model = model_of([node("Softmax", ["x"], "y", axis=0)], X)
    model.graph.node[0].attribute.append(helper.make_attribute("axis", 1))
    with pytest.raises(ModelError, match="'axis' is given twice"):
        htvm.load(saved(model, tmp_path))


@pytest.mark.parametrize("rank", [3, 4])
def test_a_transposed_convolution_of_other_axes(rank: int, tmp_path: Path) -> None:
    shape, weights = ((1, 2, 5), (2, 1, 3, 3)) if rank == 3 else ((1, 2, 5, 5), (2, 1, 3))
    nodes = [node("ConvTranspose", ["x", "w"], "y")]
    model = model_of(nodes, {"x": shape}, constants={"w": np.ones(weights, np.float32)})
    with pytest.raises(HtvmError, match="weights of shape"):
        htvm.load(saved(model, tmp_path))


ONES = np.ones((2, 1, 3, 3), np.float32)
WRONG_ONCE: dict[str, tuple[onnx.ModelProto, str]] = {
    "an exponent with more axes than its base": (
        model_of([node("Pow", ["x", "c"], "y")], {"x": (3,)},
                 constants={"c": np.full((1, 1), 2, np.float32)}),
        r"exponents of shape \[1, 1\] for \[3\]",
    ),
    "integers beside reals": (
        model_of([node("ConvTranspose", ["x", "w", "b"], "y", group=2)], {"x": (1, 2, 3, 3)},
                 constants={"w": ONES, "b": np.asarray([1, 0], np.int64)}),
        "constant input 2 of int64 beside reals",
    ),
    "SAME padding of a pool with dilations, which onnxruntime leaves out": (
        model_of([node("MaxPool", ["x"], "y", kernel_shape=[2, 2], dilations=[2, 1],
                       auto_pad="SAME_LOWER")], {"x": (1, 3, 8, 8)}),
        "'SAME_LOWER' of a pool with dilations",
    ),
    "SAME padding that is negative": (
        model_of([node("MaxPool", ["x"], "y", kernel_shape=[1, 2], strides=[2, 2],
                       auto_pad="SAME_LOWER")], {"x": (1, 1, 2, 2)}),
        r"strides \(2, 2\) beyond the kernel \(1, 2\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("model", "message"), WRONG_ONCE.values(), ids=WRONG_ONCE.keys())
def test_what_runtimes_refuse_or_broadcast(
    model: onnx.ModelProto, message: str, tmp_path: Path
) -> None:
    with pytest.raises(HtvmError, match=message):
        htvm.load(saved(model, tmp_path))


def test_a_constant_that_an_operator_needs_is_missing(tmp_path: Path) -> None:
    """The package onnx has an error of its own for it."""
    nodes = node("Pow", ["c", ""], "p"), node("Add", ["x", "p"], "y")
    made = typed(FLOAT, *nodes, c=np.ones((1, 6), np.float32))
    with pytest.raises(ModelError, match=r"input 1 is missing; node 'p' \(Pow\)"):
        htvm.load(saved(made, tmp_path))
