"""The checker: what is in the integer form passes, everything else is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax, te, tirx
from tvm.ir import IRModule
from tvm.relax import op as R

import htvm
from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Shift
from htvm.frontend.check import check
from patterns.names import emit
from patterns.ops.add import Add
from patterns.ops.dense import Dense
from patterns.ops.moves.reshape import Reshape
from patterns.primitive import call_primitive, primitive
from patterns.reading.read import graph_of
from tests.patterns.build import module_of
from tests.reference.interpreter import interpret

WEIGHT = np.arange(-30, 30, dtype=np.int8).reshape(4, 15)
BIAS = np.asarray([5, -7, 900, 0], np.int32)


def dense(bb: Any, x: Any, name: str = "dense_0", **options: Any) -> Any:
    requant = options.pop("requant", Shift(4))
    return Dense(WEIGHT, BIAS, requant, **options).write(bb, [x], name)


def two_layers(bb: Any, x: Any) -> Any:
    y = dense(bb, x)
    return Add(Shift(1)).write(bb, [y, y], "add_0")


def test_the_form_passes_and_is_read() -> None:
    module = module_of([(1, 15)], two_layers)
    nodes = check(module).in_order
    assert [(node.name, node.kind, node.inputs) for node in nodes] == [
        ("dense_0", "dense", ("input_0",)),
        ("add_0", "add", ("dense_0", "dense_0")),
    ]
    model = htvm.load(module, "two layers")
    assert (model.name, model.scheme) == ("two_layers", "shift")
    assert [(info.name, info.shape, info.scale) for info in (*model.inputs, *model.outputs)] == [
        ("input_0", (1, 15), None),
        ("add_0", (1, 4), None),
    ]


def unnamed(module: IRModule) -> IRModule:
    """The same module as somebody writes it who knows nothing of names."""
    main = module["main"]
    bindings = []
    for binding in main.body.blocks[0].bindings:
        value = binding.value
        if isinstance(value, relax.Call):
            value = relax.Call(value.op, value.args, value.attrs, value.ty_args)
        bindings.append(relax.VarBinding(binding.var, value))
    body = relax.SeqExpr([relax.DataflowBlock(bindings)], main.body.body)
    functions = dict(module.functions.items())
    key = next(var for var in functions if var.name_hint == "main")
    functions[key] = relax.Function(main.params, body, main.ret_ty)
    return relax.transform.Normalize()(tvm.IRModule(functions))


def test_operators_without_names_are_named() -> None:
    module = module_of([(1, 15)], two_layers)
    bare = unnamed(module)
    with pytest.raises(IntegerFormError, match="carries no name"):
        check(bare)
    model = htvm.load(bare)
    assert [node.name for node in graph_of(model.module).in_order] == ["dense_0", "add_0"]
    sample = np.arange(15, dtype=np.int8).reshape(1, 15)
    np.testing.assert_array_equal(
        interpret(model.module, [sample]).outputs[0], interpret(module, [sample]).outputs[0]
    )


def float_value(bb: Any, x: Any) -> Any:
    return emit(bb, R.astype(R.tanh(R.astype(x, "float64")), "int8"), "tanh_0", last=True)


def int8_sum(bb: Any, x: Any) -> Any:
    return emit(bb, R.add(x, x), "add_0", last=True)


def leaking(bb: Any, x: Any) -> Any:
    acc = emit(bb, R.astype(x, "int32"), "convert_0")
    one = emit(bb, R.add(acc, relax.const(1, "int32")), "convert_0")
    one = emit(bb, R.right_shift(one, relax.const(1, "int32")), "convert_0")
    one = emit(bb, R.clip(one, -128, 127), "convert_0")
    one = emit(bb, R.astype(one, "int8"), "convert_0", last=True)
    two = emit(bb, R.add(acc, relax.const(2, "int32")), "convert_1")
    two = emit(bb, R.right_shift(two, relax.const(1, "int32")), "convert_1")
    two = emit(bb, R.clip(two, -128, 127), "convert_1")
    emit(bb, R.astype(two, "int8"), "convert_1", last=True)
    return one


def half_named(bb: Any, x: Any) -> Any:
    acc = bb.emit(R.astype(x, "int32"))
    one = emit(bb, R.add(acc, relax.const(1, "int32")), "convert_0")
    one = emit(bb, R.right_shift(one, relax.const(1, "int32")), "convert_0")
    one = emit(bb, R.clip(one, -128, 127), "convert_0")
    return emit(bb, R.astype(one, "int8"), "convert_0", last=True)


def unused(bb: Any, x: Any) -> Any:
    emit(bb, R.astype(x, "int32"), "convert_0")
    return dense(bb, x)


def same_name(bb: Any, x: Any) -> Any:
    return Reshape((4, 1)).write(bb, [dense(bb, x)], "dense_0")


def name_of_input(bb: Any, x: Any) -> Any:
    return dense(bb, x, "input_0")


def foreign_primitive(bb: Any, x: Any) -> Any:
    def body(source: te.Tensor) -> te.Tensor:
        return te.compute(source.shape, lambda *i: tirx.max(source(*i), tirx.const(0, "int8")))

    func = primitive("mystery", [("x", (1, 15), "int8")], body, {})
    return call_primitive(bb, func, [x], (1, 15), "int8", "mystery_0", last=True)


def wide_weights(bb: Any, x: Any) -> Any:
    wide = emit(bb, R.astype(x, "int32"), "dense_0")
    matrix = relax.const(WEIGHT.T.astype(np.int32))
    acc = emit(bb, R.matmul(wide, matrix, out_dtype="int32"), "dense_0")
    acc = emit(bb, R.add(acc, relax.const(BIAS)), "dense_0")
    acc = emit(bb, R.right_shift(acc, relax.const(4, "int32")), "dense_0")
    acc = emit(bb, R.clip(acc, -128, 127), "dense_0")
    return emit(bb, R.astype(acc, "int8"), "dense_0", last=True)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (float_value, "float64"),
        (int8_sum, "not an operator of the integer form"),
        (leaking, "used by two operators"),
        (half_named, "is a part of 'convert_0'"),
        (unused, "no operator uses"),
        (same_name, "two tensors have the name 'dense_0'"),
        (name_of_input, "two tensors have the name 'input_0'"),
        (foreign_primitive, "not an operator of the integer form"),
        (wide_weights, "weights of type int32"),
        (lambda bb, x: dense(bb, x, clip=(-200, 127)), "a clip to (-200, 127)"),
        (lambda bb, x: dense(bb, x, requant=Shift(32)), "shifts (32,)"),
        (lambda bb, x: dense(bb, x, requant=Shift(-1)), "shifts (-1,)"),
        (lambda bb, x: bb.emit(R.astype(x, "float16")), "returns"),
    ],
)
def test_what_is_not_in_the_form_is_named(write: Callable[..., Any], message: str) -> None:
    with pytest.raises(IntegerFormError) as caught:
        check(module_of([(1, 15)], write))
    assert message in str(caught.value)
    assert caught.value.where


def test_modules_of_another_shape() -> None:
    with pytest.raises(IntegerFormError, match="no Relax function 'main'"):
        htvm.load(tvm.IRModule({}))
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 15), "int8"))
    with builder.function("main", [x]):
        builder.emit_func_output(dense(builder, x))
    with pytest.raises(IntegerFormError, match="dataflow block"):
        htvm.load(builder.get())
    size = tirx.Var("n", "int64")
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, size), "int8"))
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(R.nn.relu(x))
        builder.emit_func_output(result)
    with pytest.raises(IntegerFormError, match="known shape"):
        check(builder.get())
