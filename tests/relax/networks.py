"""Helper: networks in the quantize/dequantize form, as Relax modules with seeded weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import relax
from tvm.relax import op as R

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import Expr


@dataclass(frozen=True)
class Quantized:
    """An int8 tensor and its scale; its zero point is 0."""

    var: Expr
    scale: float
    channels: int


class Writer:
    """Writes layers whose reals are between a dequantization and a quantization."""

    def __init__(self, seed: int) -> None:
        self.builder = relax.BlockBuilder()
        self._rng = np.random.default_rng(seed)

    def emit(self, expr: Expr) -> Expr:
        return self.builder.emit(expr)

    def dequantized(self, x: Quantized) -> Expr:
        zero = relax.const(np.int8(0))
        return self.emit(R.dequantize(x.var, relax.const(np.float32(x.scale)), zero))

    def quantized(self, x: Expr, scale: float, channels: int) -> Quantized:
        zero = relax.const(np.int8(0))
        made = R.quantize(x, relax.const(np.float32(scale)), zero, out_dtype="int8")
        return Quantized(self.emit(made), scale, channels)

    def weight(self, shape: tuple[int, ...], x: float) -> tuple[Expr, Expr]:
        """Return weights, and a bias along their first axis, dequantized."""
        values = self._rng.integers(-127, 128, shape).astype("int8")
        scale = np.float32(1 / (73 * np.sqrt(np.prod(shape[1:]))))
        scales = (scale * self._rng.uniform(0.5, 1.0, shape[0])).astype("float32")
        bias = self._rng.integers(-2000, 2000, shape[0]).astype("int32")
        zeros = relax.const(np.zeros(shape[0], "int8"))
        w = R.dequantize(relax.const(values), relax.const(scales), zeros, axis=0)
        totals = relax.const((scales * np.float32(x)).astype("float32"))
        zeros = relax.const(np.zeros(shape[0], "int32"))
        b = R.dequantize(relax.const(bias), totals, zeros, axis=0)
        return self.emit(w), self.emit(b)

    def conv(
        self, x: Quantized, channels: int, size: int, stride: int = 1, groups: int = 1,
        relu: bool = True,
    ) -> Quantized:  # fmt: skip
        w, b = self.weight((channels, x.channels // groups, size, size), x.scale)
        pad = (size // 2,) * 4
        y = self.emit(R.nn.conv2d(self.dequantized(x), w, (stride, stride), pad, groups=groups))
        y = self.emit(R.add(y, self.emit(R.reshape(b, (1, channels, 1, 1)))))
        if relu:
            y = self.emit(R.clip(y, 0, 6))
        return self.quantized(y, 0.024 if relu else 0.03, channels)

    def add(self, a: Quantized, b: Quantized, relu: bool = False) -> Quantized:
        y = self.emit(R.add(self.dequantized(a), self.dequantized(b)))
        return self.quantized(self.emit(R.nn.relu(y)) if relu else y, 0.04, a.channels)

    def dense(self, x: Expr, scale: float, inputs: int, outputs: int) -> Expr:
        """Return the product of a dequantized matrix with weights, as reals."""
        w, b = self.weight((outputs, inputs), scale)
        return self.emit(R.add(self.emit(R.matmul(x, self.emit(R.permute_dims(w)))), b))

    def classifier(self, x: Quantized, classes: int) -> Expr:
        pooled = self.emit(R.mean(self.dequantized(x), [2, 3], keepdims=False))
        features = self.quantized(pooled, 0.02, x.channels)
        y = self.dense(self.dequantized(features), features.scale, x.channels, classes)
        return self.dequantized(self.quantized(y, 0.03, classes))


def network(write: object, shape: tuple[int, ...], seed: int) -> IRModule:
    writer = Writer(seed)
    x = relax.Var("image", relax.TensorType(shape, "float32"))
    with writer.builder.function("main", [x]):
        with writer.builder.dataflow():
            first = writer.quantized(x, 0.02, shape[1])
            out = writer.builder.emit_output(write(writer, first))  # type: ignore[operator]
        writer.builder.emit_func_output(out)
    return writer.builder.get()


def mobilenet_v2(size: int = 32, width: float = 0.25, repeats: int | None = None) -> IRModule:
    """MobileNetV2 with all of its blocks, or with few of each stage."""
    stages = ((1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1))
    stages += ((6, 160, 3, 2), (6, 320, 1, 1))

    def channels(count: int) -> int:
        return max(8, int(count * width) // 8 * 8)

    def write(net: Writer, x: Quantized) -> Expr:
        x = net.conv(x, channels(32), 3, 2)
        for expand, count, times, stride in stages:
            for at in range(times if repeats is None else min(times, repeats)):
                y = net.conv(x, x.channels * expand, 1) if expand > 1 else x
                y = net.conv(y, y.channels, 3, stride if at == 0 else 1, groups=y.channels)
                y = net.conv(y, channels(count), 1, relu=False)
                same = at > 0 and y.channels == x.channels
                x = net.add(x, y) if same else y
        return net.classifier(net.conv(x, channels(1280), 1), 10)

    return network(write, (1, 3, size, size), 2)


def resnet18(size: int = 32, width: int = 8) -> IRModule:
    """ResNet-18 with narrow layers."""

    def write(net: Writer, x: Quantized) -> Expr:
        x = net.conv(x, width, 3)
        for stage in range(4):
            for block in range(2):
                stride = 2 if stage > 0 and block == 0 else 1
                y = net.conv(x, width << stage, 3, stride)
                y = net.conv(y, width << stage, 3, relu=False)
                if stride > 1:
                    x = net.conv(x, width << stage, 1, stride, relu=False)
                x = net.add(x, y, relu=True)
        return net.classifier(x, 10)

    return network(write, (1, 3, size, size), 18)


def lstm(steps: int = 4, inputs: int = 16, hidden: int = 16, classes: int = 5) -> IRModule:
    """A classifier with one LSTM layer, unrolled; gates and state are int8, too."""
    writer = Writer(7)
    x = relax.Var("sequence", relax.TensorType((1, steps, inputs), "float32"))
    emit = writer.emit

    def part(x: Quantized, axis: int, begin: int, size: int) -> Quantized:
        cut = emit(R.strided_slice(x.var, [axis], [begin], [begin + size]))
        return Quantized(cut, x.scale, x.channels if axis == 1 and size == 1 else size)

    def product(x: Quantized, outputs: int, scale: float) -> Quantized:
        y = writer.dense(writer.dequantized(x), x.scale, x.channels, outputs)
        return writer.quantized(y, scale, outputs)

    def of_one(function: Any, x: Quantized) -> Quantized:
        return writer.quantized(emit(function(writer.dequantized(x))), 1 / 128, x.channels)

    def of_two(function: Any, a: Quantized, b: Quantized, scale: float) -> Quantized:
        y = emit(function(writer.dequantized(a), writer.dequantized(b)))
        return writer.quantized(y, scale, a.channels)

    with writer.builder.function("main", [x]):
        with writer.builder.dataflow():
            whole = writer.quantized(x, 0.02, inputs)
            h: Quantized | None = None  # both are zero before the first step
            c: Quantized | None = None
            for step in range(steps):
                now = part(whole, 1, step, 1)
                now = replace(now, var=emit(R.reshape(now.var, (1, inputs))))
                gates = product(now, 4 * hidden, 0.03)
                if h is not None:
                    gates = of_two(R.add, gates, product(h, 4 * hidden, 0.03), 0.04)
                i, f, g, o = (part(gates, 1, at * hidden, hidden) for at in range(4))
                new = of_two(R.multiply, of_one(R.sigmoid, i), of_one(R.tanh, g), 1 / 128)
                if c is not None:
                    kept = of_two(R.multiply, of_one(R.sigmoid, f), c, 1 / 64)
                    new = of_two(R.add, kept, new, 1 / 64)
                c = new
                h = of_two(R.multiply, of_one(R.sigmoid, o), of_one(R.tanh, c), 1 / 128)
            assert h is not None
            out = writer.builder.emit_output(writer.dequantized(product(h, classes, 0.03)))
        writer.builder.emit_func_output(out)
    return writer.builder.get()
