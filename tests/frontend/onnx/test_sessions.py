"""Which nodes a default session of onnxruntime fuses, and that both forms are rounded as it does.

Networks are drawn: tensors of int8 and uint8 with one or several readers, at the borders or inside,
with moves, rectifiers and constants between.  Scales are powers of two, so that many results are
ties and every step in float32 is exact.
"""

from __future__ import annotations

import platform
import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import htvm
from htvm.frontend.onnx.affine.sessions import Session
from htvm.frontend.onnx.file import read_file
from tests.frontend.onnx.affine_files import Array, File
from tests.reference.interpreter import interpret

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="int8 becomes uint8 on x86 only"
)

SHAPE = (1, 4, 6, 6)
ASKED = ("Add", "AveragePool", "GlobalAveragePool", "Mul")
BETWEEN = ("Clip", "MaxPool", "Relu", "Reshape", "Squeeze")


class Drawn:
    """A network of a few functions of quantized tensors."""

    def __init__(self, seed: int) -> None:
        self.rng, self.file = random.Random(seed), File()
        self.file.opset = self.rng.choice((13, 17, 19, 20))
        self.moves = [*BETWEEN, "Transpose"]
        self.usual = self.rng.choice(("int8", "int8", "uint8"))
        self.tensors: list[tuple[str, float, int, str]] = []
        self.reals: list[str] = []
        for index in range(self.rng.choice((1, 2))):
            self.enter(f"x{index}")
        for _ in range(self.rng.randrange(2, 6)):
            self.add()
        self.end()

    def step(self) -> tuple[float, int, str]:
        dtype = self.usual if self.rng.random() < 0.9 else self.rng.choice(("int8", "uint8"))
        low = self.rng.random() < 0.3
        zero = -128 if low else self.rng.randrange(-9, 10)
        return 2.0 ** self.rng.randrange(-5, -1), zero + 128 * (dtype == "uint8"), dtype

    def enter(self, name: str) -> None:
        step = self.step()
        if self.rng.random() < 0.5:
            made = self.file.quantize(self.file.input(name, SHAPE), *step)
        else:
            made = self.file.input(name, SHAPE, step[2])
        self.keep(made, step)

    def keep(self, made: str, step: tuple[float, int, str]) -> None:
        self.tensors.append((made, *step))
        self.reals.append(self.file.dequantize(made, *step))

    def operand(self, moved: bool = True) -> str:
        if self.rng.random() < 0.2:
            return self.file.dequantize(*self.rng.choice(self.tensors))
        made = self.rng.choice(self.reals[-3:])
        return self.between(made) if moved and self.rng.random() < 0.3 else made

    def between(self, x: str) -> str:
        op, file = self.rng.choice(self.moves), self.file
        match op:
            case "Clip":
                ends = (0.0, self.rng.choice((6.0, 100.0)))
                return file.node(op, [x, *(file.constant(end, "float32") for end in ends)])
            case "MaxPool":
                return file.node(op, [x], kernel_shape=[3, 3], pads=[1] * 4)
            case "Reshape":
                return file.node(op, [x, file.constant(SHAPE, "int64")])
            case "Squeeze":
                axes = file.constant([0], "int64")
                return file.node("Unsqueeze", [file.node(op, [x, axes]), axes])
            case "Transpose":
                self.moves.remove(op)  # a session merges several
                return file.node(op, [x], perm=[0, 1, 3, 2])
        return file.node(op, [x])

    def add(self) -> None:
        op, file = self.rng.choice((*ASKED, "Sub", "Add", "Mul")), self.file
        if op == "AveragePool":
            y = file.node(
                op, [self.operand()], kernel_shape=[2, 2], pads=[1, 1, 0, 0], count_include_pad=1
            )
        elif op == "GlobalAveragePool":
            mean = file.node(op, [self.operand()])
            y = file.node("Add", [self.operand(), file.through(mean, *self.step())])
        elif self.rng.random() < 0.2:
            step = self.step()
            data = np.random.default_rng(len(self.reals)).integers(0, 100, SHAPE).astype(step[2])
            y = file.node(op, [self.operand(), file.dequantize(file.constant(data), *step)])
        else:
            y = file.node(op, [self.operand(), self.operand()])
        if self.rng.random() < 0.4:
            y = self.between(y)
        step = self.step()
        self.keep(file.quantize(y, *step), step)
        if self.rng.random() < 0.1:
            again = file.nodes[-2]  # a second one of the same tensor, with the same constants
            self.keep(file.node(again.op_type, list(again.input)), step)

    def end(self) -> None:
        read = {name for node in self.file.nodes for name in node.input}
        for name in self.reals:
            if name not in read:
                self.file.output(name)

    def inputs(self, seed: int) -> list[Array]:
        rng, made = np.random.default_rng(seed), []
        for item in self.file.inputs:
            dtype = dtype_of(item)
            if dtype.kind == "f":
                made.append(rng.normal(0, 3, SHAPE).astype(dtype))
            else:
                limits = np.iinfo(dtype)
                made.append(rng.integers(limits.min, limits.max + 1, SHAPE).astype(dtype))
        return made


def dtype_of(item: onnx.ValueInfoProto) -> np.dtype[Any]:
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(item.type.tensor_type.elem_type))


def optimized(
    model: onnx.ModelProto, folder: Path
) -> tuple[onnxruntime.InferenceSession, onnx.ModelProto]:
    """A default session, and the graph that it runs."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session, onnx.load(folder / "optimized.onnx")


def kernels(model: onnx.ModelProto) -> dict[str, str | None]:
    """The type of each node's fused kernel, None for those in reals, by name."""
    types = {item.name: item.data_type for item in model.graph.initializer}
    names = {onnx.TensorProto.INT8: "int8", onnx.TensorProto.UINT8: "uint8"}
    return {
        node.name: names[types[node.input[2]]] if node.op_type.startswith("QLinear") else None
        for node in model.graph.node
    }


@pytest.mark.rotating(4)
@pytest.mark.parametrize("seed", range(12))
def test_drawn_networks(seed: int, tmp_path: Path) -> None:
    for number in range(seed * 4, seed * 4 + 4):
        drawn = Drawn(number)
        session, graph = optimized(drawn.file.model(), tmp_path)
        found, path = kernels(graph), drawn.file.save(tmp_path)
        read = read_file(path)
        predicted = Session(read)
        for node in read.nodes:
            if node.op in ASKED and node.name in found:
                assert predicted.kernel(node) == found[node.name], (number, node.name)
        inputs = drawn.inputs(number)
        names = [item.name for item in session.get_inputs()]
        wanted = session.run(None, dict(zip(names, inputs, strict=True)))
        for ours, theirs in zip(
            interpret(htvm.load(path).module, inputs).outputs, wanted, strict=True
        ):
            np.testing.assert_array_equal(ours, theirs, err_msg=str(number))


@pytest.mark.parametrize("readers", ["one", "two", "an output", "an output between two moves"])
def test_moves_of_a_dequantized_input(readers: str, tmp_path: Path) -> None:
    file, fused = File(), readers in ("one", "an output between two moves")
    # In reals, steps in float32 that are not exact.
    first, second, last = (0.125, 0.25, 0.5) if fused else (0.02, 0.2, 0.2)
    x = file.dequantize(file.input("x", SHAPE, "int8"), first, 3)
    axes = file.constant([0], "int64")
    middle = file.node("Squeeze", [x, axes])
    moved = file.node("Unsqueeze", [middle, axes])
    y = file.node("Add", [moved, file.through(file.input("z", SHAPE), second, 1)])
    file.output(file.through(y, last, -5))
    if readers == "two":
        file.output(file.through(file.node("Neg", [moved]), 0.25, 1))
    elif readers != "one":
        file.output(middle if "between" in readers else moved)
    session, graph = optimized(file.model(), tmp_path)
    path, (name,) = file.save(tmp_path), (n.name for n in file.nodes if n.op_type == "Add")
    read = read_file(path)
    (node,) = (item for item in read.nodes if item.name == name)
    assert Session(read).kernel(node) == kernels(graph)[name]
    assert (kernels(graph)[name] == "uint8") == fused
    rng = np.random.default_rng(0)
    data = rng.integers(-128, 128, SHAPE).astype(np.int8), rng.normal(0, 9, SHAPE).astype("f4")
    wanted = session.run(None, dict(zip("xz", data, strict=True)))[0]
    np.testing.assert_array_equal(interpret(htvm.load(path).module, data).outputs[0], wanted)
