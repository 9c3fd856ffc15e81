"""Weights of 4 bits, per tensor, per channel and in blocks, against onnxruntime.

Scales are powers of two, so that reals are exact.  Sessions are not optimized: an optimized one
rounds the activations beside blocks of weights to 8 bits of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import htvm
from byoc_dory.errors import HtvmError, ModelError, UnsupportedError
from patterns.reading.read import graph_of
from tests.frontend.onnx.affine_files import Array, File, ours
from tests.reference import onnx_session

DTYPES = {"int4": TensorProto.INT4, "uint4": TensorProto.UINT4}
LIMITS = {"int4": (-8, 8), "uint4": (0, 16)}


def narrow(values: Any, dtype: str) -> Array:
    return np.asarray(np.asarray(values).astype(helper.tensor_dtype_to_np_dtype(DTYPES[dtype])))


def drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    return narrow(rng.integers(*LIMITS[dtype], shape), dtype)


def powers(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return (2.0 ** rng.integers(-6, -2, shape)).astype(np.float32)


def started(shape: tuple[int, ...]) -> tuple[File, str]:
    file = File(opset=21)
    return file, file.through(file.input("x", shape), 2.0**-4, 3)


def weights(file: File, data: Array, scale: Array, zero: Array | None, **attributes: Any) -> str:
    constants = [data, scale] + ([] if zero is None else [zero])
    return file.node("DequantizeLinear", [file.constant(item) for item in constants], **attributes)


def agree(file: File, y: str, shape: tuple[int, ...], folder: Path) -> Path:
    file.output(file.through(y, 2.0**-3, -5))
    path = file.save(folder)
    x = np.random.default_rng(1).normal(0, 3, shape).astype(np.float32)
    session = onnx_session.session(str(path), precise=False, optimized=False)
    (wanted,) = session.run(None, {"x": x})
    assert np.unique(wanted).size > 20
    np.testing.assert_array_equal(ours(path, [x])[0], wanted)
    return path


@pytest.mark.rotating(8)
@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("zero", [True, False])
@pytest.mark.parametrize("op", ["Conv", "MatMul", "Gemm"])
def test_one_scale_or_one_per_channel(
    op: str, zero: bool, per_channel: bool, dtype: str, tmp_path: Path
) -> None:
    """Odd numbers of weights and of channels, so that the last byte is half empty."""
    rng = np.random.default_rng(0)
    shape, sizes, axis = ((1, 3, 6, 5), (5, 3, 3, 3), 0) if op == "Conv" else ((7, 9), (9, 5), 1)
    file, x = started(shape)
    rows = (5,) if per_channel else ()
    scale, zeros = powers(rng, rows), drawn(rng, rows, dtype) if zero else None
    w = weights(file, drawn(rng, sizes, dtype), scale, zeros, axis=axis)
    path = agree(file, file.node(op, [x, w]), shape, tmp_path)
    kinds = {node.kind for node in graph_of(htvm.load(path).module).in_order}
    assert kinds & {"conv2d", "dense", "linear"}, kinds


def test_weights_in_the_field_of_integers(tmp_path: Path) -> None:
    """Two of them in each integer, where a file has no raw data."""
    file, x = started((7, 9))
    numbers = np.random.default_rng(3).integers(-8, 8, 45)
    w = weights(
        file, narrow(numbers.reshape(9, 5), "int4"), powers(np.random.default_rng(4), ()), None
    )
    file.constants[-2].CopyFrom(
        helper.make_tensor(file.constants[-2].name, TensorProto.INT4, (9, 5), numbers)
    )
    assert len(file.constants[-2].int32_data) == 23
    agree(file, file.node("MatMul", [x, w]), (7, 9), tmp_path)


@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("op", ["MatMul", "Gemm", "Transpose"])
def test_blocks(op: str, dtype: str, tmp_path: Path) -> None:
    """The last block is shorter."""
    rng = np.random.default_rng(5)
    file, x = started((6, 22))
    turned = op != "MatMul"
    sizes, blocks, axis = ((5, 22), (5, 3), 1) if turned else ((22, 5), (3, 5), 0)
    zeros = drawn(rng, blocks, dtype) if dtype == "uint4" else None
    w = weights(file, drawn(rng, sizes, dtype), powers(rng, blocks), zeros, axis=axis, block_size=8)
    if op == "Gemm":
        y = file.node(op, [x, w, file.constant(rng.integers(-9, 9, 5) / 8, "float32")], transB=1)
    else:
        y = file.node("MatMul", [x, file.node(op, [w], perm=[1, 0]) if turned else w])
    agree(file, y, (6, 22), tmp_path)


def test_a_single_block_along_an_axis_is_a_channel(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    file, x = started((6, 16))
    w = weights(file, drawn(rng, (16, 5), "int4"), powers(rng, (1, 5)), None, axis=0, block_size=16)
    path = agree(file, file.node("MatMul", [x, w]), (6, 16), tmp_path)
    assert "real_matmul" not in {node.kind for node in graph_of(htvm.load(path).module).in_order}


# ------------------------------------------------------------------------------ bad files


def convolved(file: File, x: str, **changes: Any) -> None:
    rng = np.random.default_rng(7)
    given = {
        "data": drawn(rng, (4, 3, 3, 3), "int4"), "scale": powers(rng, (4,)), "zero": None,
        "attributes": {"axis": 0}, **changes,
    }  # fmt: skip
    w = weights(file, given["data"], given["scale"], given["zero"], **given["attributes"])
    file.output(file.through(file.node("Conv", [x, w]), 0.1, 0))


def short(file: File, x: str) -> None:
    convolved(file, x)
    tensor = next(item for item in file.constants if item.data_type == TensorProto.INT4)
    tensor.raw_data = tensor.raw_data[:-1]


def long(file: File, x: str) -> None:
    """A byte for each element."""
    convolved(file, x)
    tensor = next(item for item in file.constants if item.data_type == TensorProto.INT4)
    tensor.raw_data = bytes(108)


def two_bits(file: File, x: str) -> None:
    convolved(file, x)
    tensor = next(item for item in file.constants if item.data_type == TensorProto.INT4)
    tensor.data_type = TensorProto.INT2


def blocked(
    shape: tuple[int, ...], zero: Array | None = None, block: int = 2
) -> Callable[..., None]:
    scale = np.full(shape, 0.5, "f4")
    attributes = {"axis": 1, "block_size": block}
    return lambda file, x: convolved(file, x, scale=scale, zero=zero, attributes=attributes)


def added(file: File, x: str) -> None:
    constant = file.constant(narrow(np.ones((1, 3, 8, 8)), "int4"))
    file.output(file.through(file.node("Add", [x, constant]), 0.1, 0))


def activation(file: File, x: str) -> None:
    scale, zero = file.constant(0.5, "float32"), file.constant(narrow(0, "int4"))
    y = file.node("QuantizeLinear", [file.node("Relu", [x]), scale, zero])
    file.output(file.node("DequantizeLinear", [y, scale, zero]))


@pytest.mark.parametrize(
    ("write", "kind", "words"),
    [
        (short, ModelError, "53 bytes for int4[4, 3, 3, 3], which takes 54"),
        (long, ModelError, "108 bytes for int4[4, 3, 3, 3], which takes 54"),
        (two_bits, UnsupportedError, "a tensor of type INT2"),
        (blocked((4, 3, 3, 3)), ModelError, "scales of shape [4, 3, 3, 3] for blocks of 2"),
        (blocked((4,)), ModelError, "there must be one for each block: [4, 2, 3, 3]"),
        (blocked((4, 3, 3, 3), block=-1), ModelError, "for blocks of -1 along axis 1"),
        (blocked((4, 2, 3, 3), narrow(np.zeros(4), "int4")), ModelError,
         "zero points of shape [4] for blocks of 2"),
        (blocked((4, 2, 3, 3), np.zeros((4, 2, 3, 3), "int8")), ModelError,
         "data of type int4 with a zero point of type int8"),
        (added, UnsupportedError, "constant input 1 of int4"),
        (activation, UnsupportedError, "an activation of type int4"),
    ],
)  # fmt: skip
def test_it_is_refused(
    write: Callable[[File, str], None], kind: type[HtvmError], words: str, tmp_path: Path
) -> None:
    file, x = started((1, 3, 8, 8))
    write(file, x)
    with pytest.raises(kind) as caught:
        htvm.load(file.save(tmp_path))
    assert words in str(caught.value)


def test_blocks_of_a_convolution_are_refused(tmp_path: Path) -> None:
    file, x = started((1, 3, 8, 8))
    scale = powers(np.random.default_rng(8), (4, 2, 3, 3))
    convolved(file, x, scale=scale, attributes={"axis": 1, "block_size": 2})
    with pytest.raises(UnsupportedError, match="scales along axes .*DequantizeLinear_2"):
        htvm.load(file.save(tmp_path))
