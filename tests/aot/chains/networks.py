"""Helper: random networks that can be computed by rows: branches, strides, odd heights."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

import htvm
from htvm.aot.chains import chains_in
from htvm.build_options import BuildOptions, Input, Platform
from htvm.compiled import Compiled
from htvm.errors import UnsupportedError
from htvm.model import TensorInfo
from patterns.op import TensorType
from patterns.ops.convert import TableLookup
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.concat import Concat
from patterns.ops.moves.pad import Pad
from patterns.ops.tflite.averages import AveragePool
from patterns.ops.tflite.binary import AddFactors, TfliteAdd
from patterns.reading.building import GraphBuilder
from tests.e2e.draws import Array, Draws
from tests.reference.interpreter import interpret


class _Sketch:
    """Writes operators one after another; the last tensor is read by most."""

    def __init__(self, seed: int) -> None:
        self.draw = Draws(seed, "tflite")
        shape = (
            1,
            self.draw.between(5, 17),
            self.draw.between(3, 12),
            self.draw.pick([1, 3, 4, 8]),
        )
        self.graph = GraphBuilder([("x", TensorType(shape))])
        self.last = "x"
        self.count = 0

    def shape(self, tensor: str) -> tuple[int, ...]:
        return self.graph.types[tensor].shape

    def apply(self, op: object, *inputs: str) -> str:
        self.count += 1
        self.last = self.graph.apply(op, inputs, f"op_{self.count}")  # type: ignore[arg-type]
        return self.last

    def convolution(
        self, source: str, depthwise: bool, stride: int | None = None, size: int | None = None
    ) -> str:
        """A convolution, mostly with padding of its own or before it, that keeps every size."""
        draw, channels = self.draw, self.shape(source)[3]
        size = draw.pick([1, 3, 3, 3, 5]) if size is None else size
        stride = draw.pick([1, 1, 2]) if stride is None else stride
        count = channels if depthwise else draw.pick([4, 8, 6, 5, 16])
        weight = draw.weights((count, 1 if depthwise else channels, size, size))
        bias, requant, clip, _ = draw.ending(weight)
        pad = (size // 2, size // 2, (size - 1) // 2 + draw.between(0, 1), size // 2)
        pad = (pad[0], pad[1], min(pad[2], size - 1), pad[3])
        window = Window((stride, stride), groups=channels if depthwise else 1)
        if draw.chance(0.6):
            if any(pad):
                source = self.apply(Pad(draw.between(-128, 127), pad), source)
        else:
            window = replace(window, padding=pad)
        return self.apply(conv2d_of(weight, bias, window, requant, clip), source)

    def add(self, a: str, b: str) -> str:
        zeros = tuple(self.draw.zero() for _ in range(3))
        factors = AddFactors.from_scales((0.02, 0.03, 0.04), zeros)  # type: ignore[arg-type]
        return self.apply(TfliteAdd(factors, self.draw.clip(zeros[2])), a, b)

    def bottleneck(self) -> None:
        """A wide depthwise convolution between two narrow ones, whose rows pass by."""
        start = self.last
        inner = start
        for depthwise in (False, True, False):
            size = 3 if depthwise else 1
            inner = self.convolution(inner, depthwise, None if depthwise else 1, size)
        if self.shape(inner) == self.shape(start):
            self.add(start, inner)

    def block(self) -> None:
        """One of the usual parts of networks of maps."""
        draw, start = self.draw, self.last
        kind = draw.pick(["plain", "plain", "separable", "residual", "pool", "table", "concat"])
        _, y, x, _ = self.shape(start)
        if kind == "plain":
            self.convolution(start, depthwise=False)
        elif kind == "separable":
            self.convolution(self.convolution(start, depthwise=True), depthwise=False)
        elif kind == "residual":
            inner = self.convolution(start, depthwise=draw.chance(0.5), stride=1)
            if self.shape(inner) == self.shape(start):
                self.add(start, inner)
        elif kind == "pool" and min(y, x) > 2:
            self.apply(MaxPool((2, 2), (draw.pick([1, 2]),) * 2), start)
        elif kind == "table":
            table = draw.rng.integers(-128, 128, 256).astype("int8")
            self.apply(TableLookup(table), start)
        elif kind == "concat":
            a = self.convolution(start, depthwise=False, stride=1)
            b = self.convolution(start, depthwise=False, stride=1)
            if self.shape(a)[1:3] == self.shape(b)[1:3]:
                self.apply(Concat(3), a, b)


def chained_network(seed: int, bottlenecks: bool = False) -> htvm.Model:
    """The network of a seed: int8 maps in NHWC, three to six blocks, often a global average."""
    sketch = _Sketch(seed)
    for number in range(sketch.draw.between(3, 6)):
        if bottlenecks and number % 2:
            sketch.bottleneck()
        else:
            sketch.block()
    if sketch.last == "x":
        sketch.convolution("x", depthwise=False)
    _, y, x, _ = sketch.shape(sketch.last)
    if sketch.draw.chance(0.4):
        sketch.apply(AveragePool((y, x), (1, 1)), sketch.last)
    graph = sketch.graph.graph([sketch.last])
    return htvm.load(graph.module, name=f"rows{seed}")


def banded_network(width: int) -> htvm.Model:
    """A depthwise convolution between two products, whose rows pay in bands on some cores."""
    sketch = _Sketch(4)
    sketch.graph = GraphBuilder([("x", TensorType((1, 16, width, 8)))])
    for depthwise, size in ((False, 1), (True, 3), (False, 1)):
        weight = sketch.draw.weights((8, 1 if depthwise else 8, size, size))
        bias, requant, clip, _ = sketch.draw.ending(weight)
        window = Window((1, 1), padding=(size // 2,) * 4, groups=8 if depthwise else 1)
        sketch.apply(conv2d_of(weight, bias, window, requant, clip), sketch.last)
    return htvm.load(sketch.graph.graph([sketch.last]).module, name="bands")


def check(target: str, platform: Platform, seed: int, way: Input = "kept") -> int:
    """Build the network of a seed within a limit, and compare it with the interpreter.

    Every second network has bottlenecks.  The limit is the least one, one between it and that of
    layer after layer, or, where the input is not the caller's, none.

    Returns:
        The number of chains; 0 if the input cannot come row by row.
    """
    model = chained_network(seed, bottlenecks=seed % 2 == 1)
    memory: int | Literal["least"] | None = "least"
    if seed % 3 == 1:
        memory = None if way != "kept" else _between(model, target, seed)
    try:
        module = htvm.build(model, target, platform, memory=memory, input=way)
    except UnsupportedError as error:
        assert way == "streamed" and "cannot come row by row" in str(error)
        return 0
    assert not isinstance(memory, int) or module.l2_peak <= memory
    program, (info,) = module.compiled.program, model.inputs
    if way == "overwritten":
        assert program.l2_inputs == ()
    if way == "streamed":
        assert program.streamed is not None and program.streamed.rows == info.shape[1]
        assert program.l2_inputs[0].shape == (1, 1, *info.shape[2:])
    for number in range(2):
        inputs = inputs_of(model, number)
        wanted = interpret(model.module, inputs).outputs
        np.testing.assert_array_equal(module.run(inputs).outputs[0], wanted[0])
    return len(chains_in(module.compiled.cpu_kernels))


def _between(model: htvm.Model, target: str, seed: int) -> int:
    whole, least = (
        Compiled(model, target, BuildOptions(memory=memory)).program.plan.peak
        for memory in (None, "least")
    )
    return least + max(whole - 1 - least, 0) * (seed % 7) // 7


def inputs_of(model: htvm.Model, seed: int) -> list[Array]:
    """Random inputs, with seed 0 only of the ends of the range."""
    rng = np.random.default_rng([seed, 3])
    ends = np.array([-128, 127], "int8")
    return [_draw(rng, ends, seed, info) for info in model.inputs]


def _draw(rng: np.random.Generator, ends: Array, seed: int, info: TensorInfo) -> Array:
    if seed == 0:
        return rng.choice(ends, info.shape)
    return rng.integers(-128, 128, info.shape).astype("int8")


def mobilenet_v2(side: int, width: float) -> htvm.Model:
    """The layers of MobileNetV2 for images of ``side`` x ``side``, with random weights, in NHWC."""
    sketch = _Sketch(1)
    sketch.graph = GraphBuilder([("x", TensorType((1, side, side, 3)))])
    draw = sketch.draw

    def count(channels: float) -> int:
        """Channels of this width, rounded like Keras."""
        wanted = channels * width
        rounded = max(8, int(wanted + 4) // 8 * 8)
        return rounded + 8 * (rounded < 0.9 * wanted)

    def convolution(source: str, k: int, size: int, stride: int = 1, groups: int = 1) -> str:
        _, y, x, channels = sketch.shape(source)
        needed = [max((-(-n // stride) - 1) * stride + size - n, 0) for n in (y, x)]
        pad = (needed[0] // 2, needed[1] // 2, -(-needed[0] // 2), -(-needed[1] // 2))
        if any(pad):
            source = sketch.apply(Pad(-128, pad), source)
        weight = draw.weights((k, channels // groups, size, size))
        bias, requant, clip, _ = draw.ending(weight)
        window = Window((stride, stride), groups=groups)
        return sketch.apply(conv2d_of(weight, bias, window, requant, clip), source)

    last = convolution("x", count(32), 3, 2)
    stages = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1))
    for factor, k, blocks, first in (*stages, (6, 160, 3, 2), (6, 320, 1, 1)):
        for index in range(blocks):
            before, stride = last, first if index == 0 else 1
            wide = sketch.shape(last)[3] * factor
            if factor > 1:
                last = convolution(last, wide, 1)
            last = convolution(last, wide, 3, stride, groups=wide)
            last = convolution(last, count(k), 1)
            if sketch.shape(before) == sketch.shape(last):
                last = sketch.add(before, last)
    last = convolution(last, max(1280, count(1280)), 1)
    _, y, x, _ = sketch.shape(last)
    sketch.apply(AveragePool((y, x), (1, 1)), last)
    return htvm.load(sketch.graph.graph([sketch.last]).module, name="mobilenet")
