"""Operators that QDQ files leave in reals: what is imported equals onnxruntime."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import htvm
from tests.frontend.onnx.affine_files import Array, File, ours, theirs

IN, OUT = 0.0313717, 0.0173391  # no round numbers, so that no results are ties
ROWS = (1, 16, 32)


def data(shape=ROWS, seed: int = 0, spread: float = 1.5) -> Array:
    return np.random.default_rng(seed).normal(0.2, spread, shape).astype(np.float32)


def agree(path: Path, inputs: list[Array], made: Array | None = None) -> None:
    """99.9 % of the int8 elements equal onnxruntime's, none is off by more than one."""
    made = ours(path, inputs)[0] if made is None else made
    wanted = theirs(path, inputs)[0]
    assert made.dtype == wanted.dtype == np.int8 and made.shape == wanted.shape
    assert np.unique(wanted).size > 20
    assert np.mean(made == wanted) >= 0.999
    assert np.abs(made.astype(int) - wanted).max() <= 1


def saved(file: File, y: str, folder: Path, scale: float = OUT, zero: int = 3) -> Path:
    file.output(file.quantize(y, scale, zero), "int8")
    return file.save(folder)


def layer_norm(file: File, x: str, spelled: bool) -> str:
    rng = np.random.default_rng(7)
    scale = file.constant(rng.normal(1, 0.2, ROWS[-1]), "float32")
    bias = file.constant(rng.normal(0, 0.2, ROWS[-1]), "float32")
    if not spelled:
        return file.node("LayerNormalization", [x, scale, bias], axis=-1, epsilon=1e-5)
    centred = file.node("Sub", [x, file.node("ReduceMean", [x], axes=[-1])])
    square = file.node("Pow", [centred, file.constant(2.0, "float32")])
    variance = file.node("ReduceMean", [square], axes=[-1])
    root = file.node("Sqrt", [file.node("Add", [variance, file.constant(1e-5, "float32")])])
    y = file.node("Mul", [file.node("Div", [centred, root]), scale])
    return file.node("Add", [y, bias])


def gelu(file: File, x: str) -> str:
    y = file.node("Erf", [file.node("Div", [x, file.constant(math.sqrt(2), "float32")])])
    y = file.node("Mul", [x, file.node("Add", [y, file.constant(1.0, "float32")])])
    return file.node("Mul", [y, file.constant(0.5, "float32")])


@pytest.mark.parametrize("spelled", [False, True])
def test_layer_norm(spelled: bool, tmp_path) -> None:
    file = File()
    y = layer_norm(file, file.through(file.input("x", ROWS), IN, 4), spelled)
    path = saved(file, y, tmp_path)
    inputs = [data()]
    agree(path, inputs)
    built = htvm.build(htvm.load(path), target="diana.cpu", platform="host")
    agree(path, inputs, built.run(inputs[0]).outputs[0])


def test_instance_norm(tmp_path) -> None:
    file, rng, shape = File(), np.random.default_rng(8), (1, 6, 16, 8)
    x = file.through(file.input("x", shape), IN, 4)
    factors = [file.constant(rng.normal(mean, 0.2, 6), "float32") for mean in (1, 0)]
    y = file.node("InstanceNormalization", [x, *factors], epsilon=1e-5)
    agree(saved(file, y, tmp_path), [data(shape)])


def test_gelu_of_a_quantized_tensor_is_a_table(tmp_path) -> None:
    file = File()
    path = saved(file, gelu(file, file.through(file.input("x", ROWS), IN, 4)), tmp_path)
    agree(path, [data()])
    kinds = {name.rsplit("_", 1)[0] for name in names(path)}
    assert kinds == {"quantize", "mul"}


def names(path: Path) -> list[str]:
    from tests.reference.interpreter import interpret

    model = htvm.load(path)
    inputs = [np.zeros(item.shape, item.dtype) for item in model.inputs]
    return list(interpret(model.module, inputs).tensors)


@pytest.mark.parametrize("op", ["", "Gelu", "Tanh", "Sigmoid", "LeakyRelu", "Exp"])
def test_functions_of_reals(op: str, tmp_path) -> None:
    file = File()
    x = layer_norm(file, file.through(file.input("x", ROWS), IN, 4), False)
    y = file.node(op, [x], domain="com.microsoft" if op == "Gelu" else "") if op else gelu(file, x)
    agree(saved(file, y, tmp_path, 0.0113391, -40), [data()])


@pytest.mark.parametrize("quantized", [True, False])
@pytest.mark.parametrize("zero", [0, 5])
def test_attention(quantized: bool, zero: int, tmp_path) -> None:
    """Two heads; with all tensors quantized, or reals from the dequantized parts to the result."""
    file, shape = File(), (1, 2, 16, 24)
    q, k, v = (file.through(file.input(name, shape), IN, zero) for name in "qkv")
    between = (lambda y, s, z: file.through(y, s, z)) if quantized else (lambda y, s, z: y)
    k = between(file.node("Transpose", [k], perm=[0, 1, 3, 2]), IN, zero)
    y = between(file.node("MatMul", [q, k]), 0.113391, zero)
    y = between(file.node("Div", [y, file.constant(math.sqrt(24), "float32")]), 0.0241771, zero)
    y = between(file.node("Softmax", [y], axis=-1), 1 / 256, -128)
    y = file.node("MatMul", [y, v])
    path = saved(file, y, tmp_path)
    inputs = [data(shape, seed) for seed in range(3)]
    agree(path, inputs)


def test_an_average_that_does_not_count_its_padding(tmp_path) -> None:
    file = File()
    shape = (1, 3, 5, 4)
    x = file.through(file.input("x", shape), IN, 4)
    y = file.node("AveragePool", [x], kernel_shape=[2, 2], pads=[1, 1, 0, 0])
    agree(saved(file, file.through(y, 0.021, -3), tmp_path), [data(shape, 3)])


@pytest.mark.parametrize("op", ["Add", "Mul", "Sub"])
def test_a_constant_operand_with_a_scale_per_channel(op: str, tmp_path) -> None:
    file, rng = File(), np.random.default_rng(2)
    x = file.through(file.input("x", ROWS), IN, 4)
    scales, zeros = rng.uniform(0.01, 0.03, 16), rng.integers(-9, 9, 16)
    constant = file.constant(rng.integers(-90, 90, ROWS), "int8")
    y = file.node(op, [x, file.dequantize(constant, scales, zeros, axis=1)])
    agree(saved(file, y, tmp_path, 0.0413917), [data(seed=4)])


def test_a_function_that_stays_a_real(tmp_path) -> None:
    file = File()
    x = layer_norm(file, file.through(file.input("x", ROWS), IN, 4), False)
    agree(saved(file, file.through(file.node("Elu", [x]), 0.02, -100), tmp_path), [data(ROWS, 1)])


@pytest.mark.parametrize("rectified", [False, True])
def test_a_concatenation_that_stays_a_real(rectified: bool, tmp_path) -> None:
    """As torch quantizes a concatenation whose average is quantized next."""
    file = File()
    x = file.input("x", ROWS)
    parts = [file.through(x, IN, 4), file.through(x, 2 * IN, -20)]
    y = file.node("Concat", parts, axis=2)
    y = file.node("Relu", [y]) if rectified else y
    y = file.node("ReduceMean", [y], axes=[1], keepdims=0)
    agree(saved(file, y, tmp_path, 0.0073917, -128 if rectified else 3), [data(seed=4)])


def dense(file: File, x: str, rows: int, columns: int, rng: np.random.Generator) -> str:
    weight = rng.integers(-127, 128, (rows, columns)).astype(np.int8)
    y = file.node("MatMul", [x, file.dequantize(file.constant(weight), 0.0021, 0)])
    return file.node("Add", [y, file.constant(rng.normal(0, 0.1, columns), "float32")])


def heads(file: File, x: str, perm: list[int]) -> str:
    y = file.node("Reshape", [x, file.constant([1, 16, 4, 8], "int64")])
    return file.node("Transpose", [y], perm=perm)


def test_transformer_block_on_the_simulator(tmp_path) -> None:
    """Layer norms, attention whose scores stay reals, a GELU behind a product, residuals."""
    file, rng = File(), np.random.default_rng(1)
    x = file.through(file.input("x", ROWS), IN, 4)
    normed = file.through(layer_norm(file, x, False), 0.0171391, 2)
    q, k, v = (
        heads(file, file.through(dense(file, normed, 32, 32, rng), 0.0311713, 0), perm)
        for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
    )
    y = file.node("Mul", [file.node("MatMul", [q, k]), file.constant(8**-0.5, "float32")])
    y = file.node("MatMul", [file.node("Softmax", [y], axis=-1), v])
    y = file.node("Transpose", [y], perm=[0, 2, 1, 3])
    y = file.node("Reshape", [y, file.constant(list(ROWS), "int64")])
    y = file.through(dense(file, file.through(y, 0.0213317, 0), 32, 32, rng), 0.0213317, 0)
    x = file.through(file.node("Add", [x, y]), 0.0411713, 1)
    normed = file.through(layer_norm(file, x, True), 0.0171391, 2)
    y = file.through(gelu(file, dense(file, normed, 32, 64, rng)), 0.0217391, -100)
    y = file.through(dense(file, y, 64, 32, rng), 0.0213317, 0)
    path = saved(file, file.node("Add", [x, y]), tmp_path, 0.0513917)
    inputs = [data(seed=3)]
    agree(path, inputs)
    built = htvm.build(htvm.load(path), target="diana.cpu")
    agree(path, inputs, built.run(inputs[0]).outputs[0])
