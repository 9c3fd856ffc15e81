"""Tensors of other types than int8: written, checked, compiled, run, and interpreted alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tvm import relax

import htvm
from byoc_dory.layers import MulShift, Shift
from patterns.ops.add import Add
from patterns.ops.convert import Convert
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.dense import Dense
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.reshape import Reshape
from patterns.reading.read import graph_of
from tests.reference.interpreter import interpret

Array = npt.NDArray[Any]

RNG = np.random.default_rng(5)
FILTER = RNG.integers(-128, 128, (6, 3, 3, 3)).astype(np.int8)
MATRIX = RNG.integers(-128, 128, (5, 24)).astype(np.int8)
BIAS = RNG.integers(-5000, 5000, 6).astype(np.int32)


def module_of(types: Sequence[tuple[tuple[int, ...], str]], write: Callable[..., Any]) -> Any:
    """A module in the integer form of what ``write`` writes, with inputs of these types."""
    bb = relax.BlockBuilder()
    params = [
        relax.Var(f"input_{index}", relax.TensorType(size, dtype))
        for index, (size, dtype) in enumerate(types)
    ]
    with bb.function("main", params):
        with bb.dataflow():
            results = write(bb, *params)
            results = results if isinstance(results, list) else [results]
            results = [bb.emit_output(result) for result in results]
        bb.emit_func_output(results[0] if len(results) == 1 else relax.Tuple(results))
    return bb.get()


def drawn(types: Sequence[tuple[tuple[int, ...], str]]) -> list[Array]:
    """Random inputs over the whole range of their types."""
    arrays = []
    for size, dtype in types:
        limits = np.iinfo(dtype)
        arrays.append(RNG.integers(limits.min, limits.max, size, endpoint=True).astype(dtype))
    return arrays


def agree(types: Sequence[tuple[tuple[int, ...], str]], write: Callable[..., Any]) -> htvm.Module:
    """Generated C, TVM's LLVM and the interpreter compute the same."""
    module = module_of(types, write)
    built = htvm.build(htvm.load(module), target="generic.cpu", platform="host")
    inputs = drawn(types)
    wanted = interpret(module, inputs).outputs
    for made in (built.run(inputs).outputs, built.reference(inputs)):
        for array, expected in zip(made, wanted, strict=True):
            assert array.dtype == expected.dtype
            np.testing.assert_array_equal(array, expected)
    return built


@pytest.mark.rotating(1)
@pytest.mark.parametrize("unsigned", [False, True])
def test_a_convolution_of_unsigned_bytes(unsigned: bool) -> None:
    clip, dtype = ((0, 255), "uint8") if unsigned else ((-128, 127), "int8")
    requant = MulShift((77, 20, 1, 300, -90, 4000), (14,) * 6, (8192,) * 6)

    def write(bb: Any, x: Any) -> Any:
        y = conv2d_of(
            FILTER, BIAS, Window(padding=(1, 1, 1, 1), layout="NCHW"), requant, clip, dtype=dtype
        ).write(bb, [x], "conv2d_0")
        return MaxPool(kernel=(2, 2), strides=(2, 2), padding=(1, 1, 1, 1), layout="NCHW").write(
            bb, [y], "pool"
        )

    built = agree([((1, 3, 8, 8), "uint8")], write)
    conv, maximum = graph_of(built.model.module).in_order
    assert conv.layer is not None
    assert (conv.layer.inputs[0].dtype, conv.layer.output.dtype) == ("uint8", dtype)
    assert (maximum.input_dtypes, maximum.output_dtype) == ((dtype,), dtype)
    assert [info.dtype for info in (*built.model.inputs, *built.model.outputs)] == ["uint8", dtype]


def test_a_product_of_several_rows_of_unsigned_bytes() -> None:
    requant = MulShift((1 << 14,), (20,), (1 << 19,))
    bias = BIAS[:5]
    built = agree(
        [((7, 24), "uint8")],
        lambda bb, x: Dense(MATRIX, bias, requant).write(bb, [x], "linear_0"),
    )
    (node,) = graph_of(built.model.module).in_order
    assert node.kind == "linear" and node.scaled is None
    assert node.layer is not None and node.layer.op == "gemm"
    assert node.layer.inputs[0].dtype == "uint8"
    assert vars(node.op)["requant"] == node.layer.requant == requant


def test_sums_and_conversions_of_mixed_types() -> None:
    def write(bb: Any, a: Any, b: Any) -> Any:
        total = Add(Shift(1), (0, 255), dtype="uint8").write(bb, [a, b], "add_0")
        half = Convert(MulShift((3,), (2,), (1,)), offset=-128).write(bb, [total], "convert_0")
        return [total, Reshape((30,)).write(bb, [half], "reshape_0")]

    built = agree([((1, 5, 6), "uint8"), ((1, 5, 6), "int8")], write)
    assert [info.dtype for info in built.model.outputs] == ["uint8", "int8"]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32"])
def test_tensors_of_any_type_pass_the_border(dtype: str) -> None:
    agree([((1, 6), dtype)], lambda bb, x: Reshape((2, 3)).write(bb, [x], "reshape_0"))
