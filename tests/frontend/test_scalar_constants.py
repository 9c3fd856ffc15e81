"""Constants without axes, such as the 1 of ``1 - x``, on either side of an operator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import htvm
from tests.frontend.flatfile import Graph, Options
from tests.frontend.onnx.affine_files import File, theirs
from tests.frontend.sketch import Sketch
from tests.frontend.tflm import reference
from tests.frontend.wide import as_int16
from tests.reference.interpreter import Array, interpret

_STEP, _ZERO = 0.04, -7
_FUSED = {0: ("b", 0)}

TFLITE: dict[str, Options | None] = {
    "ADD": (11, _FUSED),
    "MAXIMUM": (39, {}),
    "MINIMUM": (39, {}),
    "MUL": (21, _FUSED),
    "PRELU": None,
    "SQUARED_DIFFERENCE": None,
    "SUB": (28, _FUSED),
}
"""Operators of two tensors, with their options."""
WIDE = ("ADD", "MAXIMUM", "MINIMUM", "MUL", "SUB")
ONNX = ("Add", "Div", "Max", "Min", "Mul", "Sub")
CPUS = ("generic.cpu", "cortex_m4", "rv32imc")
EVERYDAY, SLOW = ("generic.cpu", "diana", "siracusa"), ("cortex_m4", "rv32imc", "snitch_ita")
TARGETS = (*EVERYDAY, *(pytest.param(target, marks=pytest.mark.slow) for target in SLOW))

SIDES = [(kind, side) for kind in TFLITE for side in (0, 1) if (kind, side) != ("PRELU", 0)]
EVERY_BYTE = np.arange(-128, 128, dtype=np.int8).reshape(1, 8, 8, 4)


def with_number(sketch: Sketch, source: int, kind: str, side: int) -> int:
    """The result of an operator of a tensor and a number, which is operand ``side``."""
    number = sketch.constant(np.asarray(25, np.int8), _STEP, _ZERO)
    operands = [source, number] if side else [number, source]
    out = sketch.like(source, sketch.tensors[source].shape)
    sketch.op(kind, operands, [out], TFLITE[kind])
    return out


def alone(kind: str, side: int) -> Graph:
    sketch = Sketch(np.random.default_rng(0))
    source = sketch.input(EVERY_BYTE.shape, _STEP, _ZERO)
    return sketch.graph(with_number(sketch, source, kind, side))


def between_layers() -> Graph:
    """A convolution, one operator after another with a number, and a convolution."""
    sketch = Sketch(np.random.default_rng(0))
    value = sketch.input(EVERY_BYTE.shape, _STEP, _ZERO)

    def convolved(source: int) -> int:
        weights = sketch.constant(sketch.bytes(4, 3, 3, 4), 0.005)
        out = sketch.like(source, EVERY_BYTE.shape)
        options = {0: ("b", 0), 1: ("i", 1), 2: ("i", 1)}
        sketch.op("CONV_2D", [source, weights], [out], (1, options))
        return out

    value = convolved(value)
    for kind, side in SIDES:
        value = with_number(sketch, value, kind, side)
    return sketch.graph(convolved(value))


def loaded(graph: Graph, folder: Path) -> htvm.Model:
    path = folder / "network.tflite"
    path.write_bytes(graph.file())
    return htvm.load(path)


def same(model: htvm.Model, inputs: list[Array], wanted: list[Array]) -> None:
    built = htvm.build(model, "generic.cpu", "host")
    for made in (interpret(model.module, inputs).outputs, built.run(inputs).outputs):
        np.testing.assert_array_equal(made[0], wanted[0])
    assert np.unique(wanted[0]).size > 5


@pytest.mark.rotating(5)
@pytest.mark.parametrize(("kind", "side"), SIDES)
def test_tflite_operators_equal_tflite_micro(kind: str, side: int, tmp_path: Path) -> None:
    graph = alone(kind, side)
    same(loaded(graph, tmp_path), [EVERY_BYTE], reference(graph, [EVERY_BYTE]))


@pytest.mark.parametrize(("kind", "side"), [item for item in SIDES if item[0] in WIDE])
def test_those_of_int16_equal_tflite_micro(kind: str, side: int, tmp_path: Path) -> None:
    graph, data = as_int16(alone(kind, side)), EVERY_BYTE.astype(np.int16) * 255
    same(loaded(graph, tmp_path), [data], reference(graph, [data]))


@pytest.mark.rotating(1)
@pytest.mark.parametrize("target", TARGETS)
def test_every_target_computes_them_between_layers(target: str, tmp_path: Path) -> None:
    graph = between_layers()
    model = loaded(graph, tmp_path)
    built = htvm.build(model, target)
    (made,), (wanted,) = built.run(EVERY_BYTE).outputs, reference(graph, [EVERY_BYTE])
    np.testing.assert_array_equal(made, interpret(built.model.module, [EVERY_BYTE]).outputs[0])
    if target in CPUS:
        np.testing.assert_array_equal(made, wanted)
    assert np.corrcoef(made.ravel(), wanted.ravel())[0, 1] > 0.99


@pytest.mark.rotating(8)
@pytest.mark.parametrize("quantized", [True, False], ids=["int8", "float32"])
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("op", ONNX)
def test_onnx_operators_equal_onnxruntime(
    op: str, side: int, quantized: bool, tmp_path: Path
) -> None:
    file = File()
    x = file.input("x", EVERY_BYTE.shape)
    if quantized:
        x = file.through(x, _STEP, _ZERO)
        number = file.dequantize(file.constant(25, "int8"), _STEP, _ZERO)
    else:
        number = file.constant(1.28, "float32")
    made = file.node(op, [x, number] if side else [number, x])
    file.output(file.through(made, _STEP, _ZERO) if quantized else made)
    path, data = file.save(tmp_path), (EVERY_BYTE + 0.5).astype(np.float32) * np.float32(_STEP)
    same(htvm.load(path), [data], theirs(path, [data]))


def test_a_number_is_one_element_in_comments(tmp_path: Path) -> None:
    built = htvm.build(loaded(alone("SUB", 0), tmp_path), "generic.cpu", "host")
    (kernel,) = built.compiled.cpu_kernels
    assert "int8 1 -> int8 1x8x8x4" in kernel.source
    comments = [constant.comment for constant in built.compiled.program.constants]
    assert any(comment.endswith("int8 1") for comment in comments)
