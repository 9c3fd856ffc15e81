"""Helper: small random networks in TFLite's scheme: per-channel scales, all operators."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tvm import relax

from byoc_dory.layers import TfliteRequant
from htvm.model import Model, TensorInfo
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.dense import Dense
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.pad import Pad
from patterns.ops.moves.reshape import Reshape
from patterns.ops.requantize import fixed_point
from patterns.ops.tflite.averages import AveragePool
from patterns.ops.tflite.binary import AddFactors, TfliteAdd
from patterns.ops.tflite.softmax import TfliteSoftmax
from patterns.reading.read import graph_of

Array = Any


@dataclass(frozen=True)
class Activation:
    """What clips a layer's results.

    Attributes:
        low, high: bounds, as shares of the largest magnitude before; ``None`` for none.
        room: factor of the scale that the results need, at least 1: with more, bounds lie inside
            the range of int8, as where tensors share a scale.
    """

    low: float | None = None
    high: float | None = None
    room: float = 1.0


RELU, LINEAR = Activation(low=0.0), Activation()


@dataclass
class Source:
    """A network being written, its activations simulated in real numbers to find good scales.

    Attributes:
        seed: of weights and inputs.
        input_shape: (y, x, C) or (C,).
        input_zero: zero point of the input, whose scale is 1/32.
        layout: of the module.
    """

    seed: int
    input_shape: tuple[int, ...] = (8, 8, 3)
    input_zero: int = -9
    layout: str = "NHWC"
    steps: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        x = self.rng.integers(-128, 128, (16, *self.input_shape))
        scale = 1 / 32
        self.real: dict[str, Array] = {"input": (x - self.input_zero) * scale}
        self.scale = {"input": scale}
        self.zero = {"input": self.input_zero}
        self.clip: dict[str, tuple[int, int]] = {}
        self.last = "input"

    # -------------------------------------------------------------------- drawing

    def linear(
        self,
        kind: str,
        channels: int = 0,
        kernel: int = 1,
        stride: int = 1,
        pad: tuple[int, int, int, int] = (0, 0, 0, 0),
        relu: bool | Activation = True,
        source: str | None = None,
        zero: int | None = None,
    ) -> str:
        """A layer with weights and an activation, or a rectifier or none; returns its name."""
        source = source or self.last
        x = self.real[source]
        fan = x.shape[-1]
        if kind == "depthwise":
            channels = fan
        size = (channels, 1 if kind == "depthwise" else fan, kernel, kernel)
        spread = 2.0 ** self.rng.uniform(-2, 2, channels)
        real = self.rng.normal(size=size) * spread[:, None, None, None]
        real = real / (_linear(x, real, kind, stride, pad).std() or 1.0)
        weight_scale = np.abs(real).reshape(channels, -1).max(axis=1) / 127
        weight = np.rint(real / weight_scale[:, None, None, None]).astype(np.int8)
        bias_scale = self.scale[source] * weight_scale
        out = _linear(x, weight * weight_scale[:, None, None, None], kind, stride, pad)
        bias = np.rint(-0.5 * out.reshape(-1, channels).mean(axis=0) / bias_scale)
        out = out + bias * bias_scale
        name = self._add_tensor(kind, out, relu, zero)
        ratio = bias_scale / self.scale[name]
        self.steps.append((kind, name, source, weight, bias, ratio, stride, pad))
        return name

    def add(
        self, first: str, second: str, relu: bool | Activation = True, zero: int | None = None
    ) -> str:
        """The sum of two tensors."""
        out = self.real[first] + self.real[second]
        name = self._add_tensor("add", out, relu, zero)
        self.steps.append(("add", name, first, second))
        return name

    def average_pool(self) -> str:
        """The mean of each map."""
        kernel = self.real[self.last].shape[1:3]
        return self._passing("average_pool", self.real[self.last].mean(axis=(1, 2), keepdims=True),
                             kernel)  # fmt: skip

    def max_pool(self) -> str:
        """The maximum of 2x2 windows."""
        x = self.real[self.last]
        n, y, width, c = x.shape
        out = x.reshape(n, y // 2, 2, width // 2, 2, c).max(axis=(2, 4))
        return self._passing("max_pool", out, (2, 2))

    def flatten(self) -> str:
        """All elements in a row, in the module's own order."""
        x = self.real[self.last]
        order = np.moveaxis(x, -1, 1) if self.layout == "NCHW" and x.ndim == 4 else x
        return self._passing("reshape", order.reshape(len(x), -1), None)

    def softmax(self) -> str:
        """The end of a classifier."""
        self.steps.append(("softmax", "softmax_0", self.last))
        self.scale["softmax_0"], self.zero["softmax_0"] = 1 / 256, -128
        self.real["softmax_0"] = self.real[self.last]
        self.last = "softmax_0"
        return self.last

    def _passing(self, kind: str, out: Array, extra: Any) -> str:
        source = self.last
        name = f"{kind}_{sum(step[0] == kind for step in self.steps)}"
        self.real[name], self.scale[name], self.zero[name] = (
            out, self.scale[source], self.zero[source],
        )  # fmt: skip
        self.steps.append((kind, name, source, extra))
        self.last = name
        return name

    def _add_tensor(self, kind: str, out: Array, relu: bool | Activation, zero: int | None) -> str:
        name = f"{kind}_{sum(step[0] == kind for step in self.steps)}"
        shape = relu if isinstance(relu, Activation) else RELU if relu else LINEAR
        largest = float(np.abs(out).max())
        bounds = [
            end if share is None else share * largest
            for share, end in ((shape.low, -np.inf), (shape.high, np.inf))
        ]
        out = np.clip(out, *bounds)
        low, high = min(float(out.min()), 0.0), float(out.max()) * 0.9
        self.scale[name] = scale = (high - low) / 255 * shape.room or 1 / 32
        self.zero[name] = int(np.rint(-128 - low / scale)) if zero is None else zero
        at = np.clip(np.rint(np.array(bounds) / scale) + self.zero[name], -128, 127)
        self.clip[name] = int(at[0]), int(at[1])
        self.real[name] = out
        self.last = name
        return name

    # -------------------------------------------------------------------- writing

    def model(self) -> Model:
        """The network as a model."""
        builder = relax.BlockBuilder()
        values = {"input": relax.Var("input", relax.TensorType(self._shape("input"), "int8"))}
        with builder.function("main", [values["input"]]):
            with builder.dataflow():
                for step in self.steps:
                    values[step[1]] = self._write(builder, values, step)
                result = builder.emit_output(values[self.last])
            builder.emit_func_output(result)
        infos = [
            TensorInfo(label, self._shape(name), "int8", self.scale[name], self.zero[name])
            for label, name in (("image", "input"), ("Identity", self.last))
        ]
        graph = graph_of(builder.get())
        return Model("net", graph, (infos[0],), (infos[1],), sources={"conv2d_0": "first"})

    def inputs(self, count: int, seed: int) -> Array:
        """Random inputs of the module, batch axis of 1 each."""
        rng = np.random.default_rng([self.seed, seed])
        return rng.integers(-128, 128, (count, *self._shape("input"))).astype(np.int8)

    def _shape(self, name: str) -> tuple[int, ...]:
        rest = self.real[name].shape[1:]
        if self.layout == "NCHW" and len(rest) == 3:
            rest = (rest[2], rest[0], rest[1])
        return (1, *rest)

    def _write(self, builder: Any, values: dict[str, Any], step: Any) -> Any:
        kind, name, source = step[:3]
        x = values[source]
        if kind == "add":
            first, second = step[2:]
            names = (first, second, name)
            scales = tuple(self.scale[item] for item in names)
            parameters = AddFactors.from_scales(scales, tuple(self.zero[item] for item in names))
            return TfliteAdd(parameters, self.clip[name]).write(builder, [x, values[second]], name)
        if kind == "average_pool":
            return AveragePool(kernel=step[3], strides=(1, 1), layout=self.layout).write(
                builder, [x], name
            )
        if kind == "max_pool":
            return MaxPool(kernel=step[3], strides=(2, 2), layout=self.layout).write(
                builder, [x], name
            )
        if kind == "reshape":
            return Reshape(self._shape(name)).write(builder, [x], name)
        if kind == "softmax":
            return TfliteSoftmax.of_scale(self.scale[source]).write(builder, [x], name)
        return self._write_linear(builder, x, step)

    def _write_linear(self, builder: Any, x: Any, step: Any) -> Any:
        kind, name, source, weight, bias, ratio, stride, pad = step
        zero = self.zero[source]
        folded = bias - zero * weight.astype(np.int64).reshape(len(weight), -1).sum(axis=1)
        parts = [fixed_point(float(value)) for value in ratio]
        requant = TfliteRequant(
            tuple(mul for mul, _ in parts), tuple(shift for _, shift in parts), self.zero[name]
        )
        clip = self.clip[name]
        folded = folded.astype(np.int32)
        if kind == "dense":
            return Dense(weight, folded, requant, clip).write(builder, [x], name)
        if any(pad) and zero:
            x = Pad(zero, pad, layout=self.layout).write(builder, [x], f"pad_{name}")
            pad = (0, 0, 0, 0)
        return conv2d_of(
            weight,
            folded,
            Window(
                strides=(stride, stride),
                padding=pad,
                groups=len(weight) if kind == "depthwise" else 1,
                layout=self.layout,
            ),
            requant,
            clip,
        ).write(builder, [x], name)


def _linear(
    x: Array, weight: Array, kind: str, stride: int, pad: tuple[int, int, int, int]
) -> Array:
    if kind == "dense":
        return x @ weight[:, :, 0, 0].T
    padded = np.pad(x, ((0, 0), (pad[0], pad[2]), (pad[1], pad[3]), (0, 0)))
    view = np.lib.stride_tricks.sliding_window_view(padded, weight.shape[2:], axis=(1, 2))
    view = view[:, ::stride, ::stride]
    equation = "nyxcij,coij->nyxc" if kind == "depthwise" else "nyxcij,kcij->nyxk"
    return np.einsum(equation, view, weight)


SAME = (1, 1, 1, 1)


def mobile(seed: int, layout: str = "NHWC", zero: int = -9) -> Source:
    """Depthwise-separable: padded, pointwise, strided with one-sided padding, pooled."""
    source = Source(seed, layout=layout, input_zero=zero)
    source.linear("conv2d", 8, 3, pad=SAME)
    source.linear("depthwise", kernel=3, pad=SAME)
    source.linear("conv2d", 16)
    source.linear("depthwise", kernel=3, stride=2, pad=(0, 0, 1, 1))
    source.linear("conv2d", 12)
    source.average_pool()
    source.flatten()
    source.linear("dense", 6, relu=False)
    source.softmax()
    return source


def residual(seed: int, layout: str = "NHWC") -> Source:
    """Two residual blocks, one with a projection; maximum pool; flattened maps."""
    source = Source(seed, layout=layout, input_zero=-128)
    first = source.linear("conv2d", 8, 3, pad=SAME)
    source.linear("conv2d", 8, 3, pad=SAME)
    second = source.linear("conv2d", 8, 3, pad=SAME, relu=False)
    block = source.add(first, second)
    source.linear("conv2d", 12, 3, stride=2, pad=(0, 0, 1, 1))
    main = source.linear("conv2d", 12, 3, pad=SAME, relu=False)
    side = source.linear("conv2d", 12, stride=2, relu=False, source=block)
    source.add(side, main)
    source.max_pool()
    source.flatten()
    source.linear("dense", 5, relu=False)
    source.softmax()
    return source


def encoder(seed: int) -> Source:
    """Fully connected layers down and up again; the output is no decision."""
    source = Source(seed, input_shape=(40,), input_zero=30)
    for width in (32, 32, 8, 32):
        source.linear("dense", width)
    source.linear("dense", 40, relu=False)
    return source


FAMILIES = {"mobile": mobile, "residual": residual, "encoder": encoder}
