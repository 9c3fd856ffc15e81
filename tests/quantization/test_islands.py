"""Retargeting networks with parts in reals, which stay on the host as the source has them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import htvm
from htvm.frontend.check import check
from tests.frontend.onnx.affine_files import Array, File
from tests.reference.interpreter import interpret

SHAPE = (1, 8, 6, 6)


def data(shape: tuple[int, ...], seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(0.2, 1.5, shape).astype(np.float32)


def convolution(file: File, x: str, seed: int) -> str:
    rng = np.random.default_rng(seed)
    weight = file.constant(rng.integers(-127, 128, (8, 8, 3, 3)).astype(np.int8))
    return file.node("Conv", [x, file.dequantize(weight, 0.0019, 0)], pads=[1, 1, 1, 1])


def layer_norm(file: File, x: str) -> str:
    rng = np.random.default_rng(7)
    scale, bias = (file.constant(rng.normal(at, 0.2, (6,)), "float32") for at in (1, 0))
    return file.node("LayerNormalization", [x, scale, bias], axis=-1, epsilon=1e-5)


def normed(file: File) -> None:
    """A layer norm that is quantized twice, between convolutions, and a residual."""
    x = file.through(file.input("x", SHAPE), 0.0313717, 4)
    x = file.through(convolution(file, x, 1), 0.0513717, -7)
    y = layer_norm(file, x)
    first, second = file.through(y, 0.0171391, 2), file.through(y, 0.0211391, -9)
    y = file.through(convolution(file, first, 2), 0.0391391, 5)
    y = file.through(file.node("Add", [second, y]), 0.0491391, -3)
    file.output(file.quantize(convolution(file, y, 3), 0.0713391, 3), "int8")


def attending(file: File) -> None:
    """Products of activations and a softmax of integers between convolutions."""
    x = file.through(file.input("x", SHAPE), 0.0313717, 4)
    q, k, v = (file.through(convolution(file, x, at), 0.0513717, at) for at in (1, 0, 2))
    y = file.through(file.node("MatMul", [q, k]), 0.0313391, 0)
    y = file.through(file.node("Softmax", [y], axis=-1), 1 / 256, -128)
    y = file.through(file.node("MatMul", [y, v]), 0.0413391, 3)
    file.output(file.quantize(convolution(file, y, 3), 0.0713391, 3), "int8")


def in_rows(file: File) -> None:
    """A dense layer of many rows, and a residual around it."""
    rng = np.random.default_rng(5)
    x = file.through(file.input("x", (1, 16, 32)), 0.0313717, 4)
    x = file.through(file.node("Mul", [x, x]), 0.0713717, -100)
    weight = file.constant(rng.integers(-127, 128, (32, 32)).astype(np.int8))
    y = file.node("MatMul", [x, file.dequantize(weight, 0.0021, 0)])
    y = file.through(
        file.node("Add", [y, file.constant(rng.normal(0, 0.1, 32), "float32")]), 0.0513717, 6
    )
    file.output(file.quantize(file.node("Add", [x, y]), 0.0713391, 3), "int8")


def with_itself(file: File) -> None:
    """A sum and a product of a tensor and itself, which is read twice."""
    x = file.through(file.input("x", SHAPE), 0.0313717, 4)
    x = file.through(convolution(file, x, 1), 0.0513717, -7)
    y = file.through(file.node("MatMul", [x, x]), 0.5713391, 3)
    y = file.through(convolution(file, y, 2), 0.4513717, 5)
    y = file.through(file.node("Add", [y, y]), 0.9013391, 5)
    file.output(file.quantize(convolution(file, y, 3), 1.2713391, 3), "int8")


@pytest.mark.rotating(2)
@pytest.mark.parametrize("network", [normed, attending, in_rows, with_itself])
def test_layers_around_islands_run_on_the_core(
    network: Callable[[File], None], tmp_path: Path
) -> None:
    file = File()
    network(file)
    model = htvm.load(file.save(tmp_path))
    shape = model.inputs[0].shape
    samples = np.stack([data(shape, seed) for seed in range(100, 116)])
    module = htvm.build(model, "diana.digital", "host", data=samples)
    places = module.placement
    layers = [places[name] for name in places if name.startswith(("conv2d_", "add_"))]
    assert layers and set(layers) == {"digital"}
    result = module.compiled.retargeted.model.module
    names = [node.name for node in check(result).in_order]
    assert len(names) == len(set(names)), "what islands have in common is written twice"
    wanted, found = [], []
    for seed in range(4):
        x = data(shape, seed)
        wanted.append(interpret(model.module, [x]).outputs[0].astype(int))
        (expected,) = interpret(result, [x]).outputs
        (made,) = module.run(x).outputs
        np.testing.assert_array_equal(made, expected)
        found.append(made.astype(int))
    assert np.unique(wanted).size > 60
    assert np.mean(np.abs(np.stack(wanted) - np.stack(found)) <= 2) >= 0.95
