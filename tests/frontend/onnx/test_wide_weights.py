"""uint8 weights that are farther from their zero point than int8 reaches, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

import htvm
from tests.frontend.onnx.affine_files import Array, File, ours, theirs
from tests.reference.interpreter import interpret

SHAPE = (1, 6, 7, 8)
ZEROS = (0, 101, 255)


def weights(shape: tuple[int, ...]) -> Array:
    drawn = np.random.default_rng(3).integers(0, 256, shape).astype(np.uint8)
    drawn.reshape(-1)[:2] = 0, 255
    return drawn


def data(shape: tuple[int, ...]) -> Array:
    return np.random.default_rng(0).normal(0.2, 2.0, shape).astype(np.float32)


def check(file: File, folder, inputs: list[Array], dtype: str = "int16") -> None:
    path = file.save(folder)
    (made,), (wanted,) = ours(path, inputs), theirs(path, inputs)
    assert np.unique(wanted).size > 5
    np.testing.assert_array_equal(made, wanted)
    layers = [node.layer for node in htvm.load(path).graph.in_order]
    assert [str(layer.weight.dtype) for layer in layers if hasattr(layer, "weight")] == [dtype]


@pytest.mark.parametrize("zero", ZEROS)
@pytest.mark.parametrize("groups", [1, 6])
def test_convolution(groups: int, zero: int, tmp_path) -> None:
    file = File()
    x = file.through(file.input("x", SHAPE), 0.031, 137, "uint8")
    weight = file.constant(weights((6, 6 // groups, 3, 3)))
    weight = file.dequantize(weight, 0.004, zero, "uint8")
    y = file.node("Conv", [x, weight], pads=[1, 0, 1, 1], strides=[2, 1], group=groups)
    file.output(file.through(y, 0.4, 131, "uint8"))
    check(file, tmp_path, [data(SHAPE)])


@pytest.mark.parametrize("zero", ZEROS)
def test_matrix(zero: int, tmp_path) -> None:
    file = File()
    x = file.through(file.input("x", (1, 40)), 0.031, 137, "uint8")
    weight = file.dequantize(file.constant(weights((40, 9))), 0.004, zero, "uint8")
    file.output(file.through(file.node("MatMul", [x, weight]), 0.4, 131, "uint8"))
    check(file, tmp_path, [data((1, 40))])


def test_an_operator_of_integers(tmp_path) -> None:
    file = File()
    x = file.input("x", SHAPE, "uint8")
    inputs = [x, *file.step(0.031, 137, "uint8"), file.constant(weights((5, 6, 3, 3))),
              *file.step(0.004, 99, "uint8"), *file.step(0.4, 131, "uint8")]  # fmt: skip
    file.output(file.node("QLinearConv", inputs), "uint8")
    given = np.random.default_rng(1).integers(0, 256, SHAPE).astype(np.uint8)
    check(file, tmp_path, [given])


def test_weights_that_fit_stay_narrow(tmp_path) -> None:
    file = File()
    x = file.through(file.input("x", (1, 40)), 0.031, 137, "uint8")
    narrow = file.constant(np.clip(weights((40, 9)), 5, 200))
    weight = file.dequantize(narrow, 0.004, 100, "uint8")
    file.output(file.through(file.node("MatMul", [x, weight]), 0.4, 131, "uint8"))
    check(file, tmp_path, [data((1, 40))], "int8")


@pytest.mark.rotating(1)
@pytest.mark.parametrize("target", ["diana.digital", "siracusa"])
def test_accelerators_get_them_in_bytes(target: str, tmp_path) -> None:
    file = File()
    x = file.through(file.input("x", (1, 8, 10, 12)), 0.031, 137, "uint8")
    weight = file.dequantize(file.constant(weights((16, 8, 3, 3))), 0.004, 0, "uint8")
    y = file.node("Conv", [x, weight], pads=[1, 1, 1, 1])
    file.output(file.through(y, 0.8, 131, "uint8"))
    path = file.save(tmp_path)
    built = htvm.build(htvm.load(path), target, "host")
    assert built.compiled.dispatch.placement["conv2d_0"] in ("digital", "neureka")
    inputs = [data((1, 8, 10, 12))]
    (made,), (wanted,) = built.run(inputs).outputs, ours(path, inputs)
    (exact,) = interpret(built.compiled.retargeted.model.module, inputs).outputs
    np.testing.assert_array_equal(made, exact)
    assert 10 * np.log10((wanted**2).sum() / ((made - wanted) ** 2).sum()) > 30
