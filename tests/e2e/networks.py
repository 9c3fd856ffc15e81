"""Helper: random small networks in the integer form, written by the builders of `patterns`.

A network follows from its seed alone, operator by operator: the first n operators of a network are
the network of the same seed with n operators, which is how a failing one is made smaller.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from tvm import relax

import htvm
from byoc_dory.layers import Requant, TfliteRequant
from patterns.ops.add import Add
from patterns.ops.convert import Convert
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.dense import Dense
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.pad import Pad
from patterns.ops.moves.reshape import Reshape
from patterns.ops.tflite.averages import AveragePool
from patterns.ops.tflite.binary import AddFactors, TfliteAdd
from patterns.ops.tflite.softmax import TfliteSoftmax
from tests.e2e.draws import SPREAD, Array, Draws, Scheme, brief, factor


@dataclass(frozen=True, eq=False)
class Network:
    """A random network.

    Attributes:
        model: ready to be built.
        text: one line per operator, for messages.
    """

    model: htvm.Model
    text: tuple[str, ...]

    def inputs(self, seed: int) -> list[Array]:
        """Random inputs: with seed 0 the two ends of the range only."""
        rng = np.random.default_rng([seed, 11])
        ends = np.array([-128, 127])
        return [
            (rng.choice(ends, info.shape) if seed == 0 else rng.integers(-128, 128, info.shape))
            .astype(np.int8)
            for info in self.model.inputs
        ]  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Tensor:
    """A tensor that further operators may read.

    Attributes:
        var: it in the module.
        name: of its operator, or of the input.
        shape: (y, x, C) or (C,), without batch.
        zero: its zero point.
        scale: the real value of one step.
    """

    var: relax.Var
    name: str
    shape: tuple[int, ...]
    zero: int
    scale: float


def random_network(
    seed: int, scheme: Scheme, *, free: bool = False, operators: int | None = None
) -> Network:
    """The network of a seed.

    Args:
        seed: all choices follow from it.
        scheme: how the layers are requantized.
        free: also write what retargeting does not know: paddings of any value before anything,
            softmax in the middle, conversions per channel, groups.
        operators: keep only so many; default: as many as the seed says, two to ten.
    """
    return _Writer(seed, scheme, free).network(operators)


class _Writer:
    def __init__(self, seed: int, scheme: Scheme, free: bool) -> None:
        self.draw = Draws(seed, scheme)
        self.ends = np.random.default_rng([seed, 8])  # choices that need the whole network
        self.scheme = scheme
        self.free = free
        self.name = f"net{seed}"
        self.layout = "NHWC" if self.draw.chance(0.7) else "NCHW"
        self.bb = relax.BlockBuilder()
        self.text: list[str] = []
        self.counts: dict[str, int] = {}
        self.tensors: list[_Tensor] = []  # that may be read
        self.closed: list[_Tensor] = []  # results that must not be read
        self.read: set[str] = set()
        self.odd_names = self.draw.chance(0.1)
        for number in range(self.draw.pick([1, 1, 1, 2, 3])):
            self.tensors.append(self._input(number))
        self.inputs = list(self.tensors)

    # -------------------------------------------------------------------- the whole

    def network(self, operators: int | None) -> Network:
        count = self.draw.between(2, 10)
        count = count if operators is None else min(count, operators)
        with self.bb.function("main", [tensor.var for tensor in self.inputs]):
            with self.bb.dataflow():
                while len(self.text) < count:
                    self._operator()
                outputs = self._outputs()
                fields = [self.bb.emit_output(tensor.var) for tensor in outputs]
            self.bb.emit_func_output(fields[0] if len(fields) == 1 else relax.Tuple(fields))
        model = htvm.load(self.bb.get(), name=self.name)
        if self.scheme == "tflite":
            infos = [
                replace(info, zero_point=tensor.zero, scale=tensor.scale)
                for info, tensor in zip(model.inputs, self.inputs, strict=True)
            ]
            model = replace(model, inputs=tuple(infos))
        signature = [f"{t.name} {t.shape} zero {t.zero}" for t in self.inputs]
        names = " ".join(tensor.name for tensor in outputs)
        text = (f"{self.scheme} {self.layout}", *signature, *self.text, f"return {names}")
        return Network(model, text)

    def _outputs(self) -> list[_Tensor]:
        """All that nobody reads, mostly; sometimes more: inner tensors, inputs, one twice."""
        every = [tensor for tensor in (*self.tensors, *self.closed) if tensor not in self.inputs]
        outputs = [tensor for tensor in every if tensor.name not in self.read]
        inner = [tensor for tensor in every if tensor.name in self.read]
        if inner and self.ends.random() < 0.25:
            outputs.append(inner[self.ends.integers(len(inner))])
        if self.ends.random() < 0.06:
            outputs.append(self.inputs[self.ends.integers(len(self.inputs))])
        self.ends.shuffle(outputs)  # type: ignore[arg-type]
        if len(outputs) > 1 and self.ends.random() < 0.06:
            outputs.pop()
        if self.ends.random() < 0.04:
            outputs.append(outputs[0])
        return outputs

    def _operator(self) -> None:
        """Write one operator of a random kind on a random tensor, if that is possible."""
        source = self._source()
        if len(source.shape) == 1:
            kinds = {"dense": 6, "add": 2, "convert": 1, "softmax": 0.7, "reshape": 0.7}
        else:
            kinds = {
                "conv2d": 8, "depthwise": 3, "add": 4, "convert": 1.2, "average_pool": 1,
                "max_pool": 1, "pad": 0.8, "reshape": 1, "softmax": 0.2,
            }  # fmt: skip
        weights = np.array(list(kinds.values()))
        kind = str(self.draw.rng.choice(list(kinds), p=weights / weights.sum()))
        write: Mapping[str, Callable[[_Tensor], None]] = {
            "add": self._add, "average_pool": self._average_pool, "conv2d": self._conv2d,
            "convert": self._convert, "dense": self._dense, "depthwise": self._depthwise,
            "max_pool": self._max_pool, "pad": self._pad, "reshape": self._reshape,
            "softmax": self._softmax,
        }  # fmt: skip
        write[kind](source)

    # -------------------------------------------------------------------- choosing

    def _source(self) -> _Tensor:
        """Mostly the latest tensor, so that there are chains; else any."""
        return self.tensors[-1] if self.draw.chance(0.7) else self.draw.pick(self.tensors)

    def _input(self, number: int) -> _Tensor:
        name = f"input_{number}"
        if self.odd_names:
            name = self.draw.pick(["a/b:0", "int", "out", "output_0", "x y", "2d"]) + "'" * number
        zero = (
            self.draw.between(-128, 127) if self.scheme == "tflite" and self.draw.chance(0.7) else 0
        )
        same = self.tensors[-1] if self.tensors and self.draw.chance(0.5) else None
        if same is not None:
            sizes = same.shape
        elif self.draw.chance(0.15):
            sizes = (self.draw.pick([self.draw.between(1, 40), 16, 64, 300]),)
        else:
            x = self.draw.pick([self.draw.between(1, 15), 16, self.draw.between(17, 40)])
            sizes = (
                self.draw.between(1, 14),
                x,
                self.draw.pick([1, 3, 16, self.draw.between(1, 24)]),
            )
        var = relax.Var(name, relax.TensorType(self._full(sizes), "int8"))
        return _Tensor(var, name, sizes, zero, self.draw.scale())

    def _full(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """The shape in the module."""
        if len(sizes) == 3 and self.layout == "NCHW":
            sizes = (sizes[2], *sizes[:2])
        return (1, *sizes)

    def _fresh(self, kind: str) -> str:
        number = self.counts.get(kind, 0)
        self.counts[kind] = number + 1
        return f"{kind}/{number}*/;Relu:0" if self.odd_names else f"{kind}_{number}"

    def _add_tensor(
        self, var: relax.Var, name: str, sizes: tuple[int, ...], zero: int, scale: float,
        words: str, *sources: _Tensor, last: bool = False,
    ) -> None:  # fmt: skip
        assert tuple(int(size) for size in var.ty.shape) == self._full(sizes), (name, sizes)
        (self.closed if last else self.tensors).append(_Tensor(var, name, sizes, zero, scale))
        self.read.update(source.name for source in sources)
        self.text.append(f"{name} = {' + '.join(s.name for s in sources)} -> {sizes} {words}")

    def _conv2d(self, source: _Tensor) -> None:
        groups = 1
        if self.free and self.draw.chance(0.04):
            groups = math.gcd(source.shape[2], self.draw.pick([2, 3, 4]))
        k = self.draw.channels() if groups == 1 else groups * self.draw.between(1, 3)
        self._convolution(source, "conv2d", k, groups)

    def _depthwise(self, source: _Tensor) -> None:
        self._convolution(source, "depthwise", source.shape[2], source.shape[2])

    def _convolution(self, source: _Tensor, kind: str, k: int, groups: int) -> None:
        iy, ix, channels = source.shape
        kernel, strides, dilation = self.draw.kernel()
        spans = (dilation[0] * (kernel[0] - 1) + 1, dilation[1] * (kernel[1] - 1) + 1)
        pad = self.draw.padding(spans, (iy, ix))
        weight = self.draw.weights((k, channels // groups, *kernel))
        bias, requant, clip, zero = self.draw.ending(weight)
        oy, ox = (
            (size + pad[axis] + pad[axis + 2] - spans[axis]) // strides[axis] + 1
            for axis, size in enumerate((iy, ix))
        )
        if min(oy, ox) < 1 or oy * ox * weight.size > 3_000_000:
            return
        x, implicit = source, pad
        if any(pad) and source.zero:
            x = self._write_pad(source, pad, source.zero)
            implicit = (0, 0, 0, 0)
        name = self._fresh(kind)
        var = conv2d_of(
            weight,
            bias,
            Window(
                strides=strides,
                padding=implicit,
                dilation=dilation,
                groups=groups,
                layout=self.layout,
            ),
            requant,
            clip,
        ).write(self.bb, [x.var], name)
        words = f"{kernel=} {strides=} {implicit=} {dilation=} {groups=} {clip=} {brief(requant)}"
        self._add_tensor(var, name, (oy, ox, k), zero, self.draw.scale(), words, x)

    def _dense(self, source: _Tensor) -> None:
        (channels,) = source.shape
        weight = self.draw.weights((self.draw.channels(), channels))
        bias, requant, clip, zero = self.draw.ending(weight)
        name = self._fresh("dense")
        var = Dense(weight, bias, requant, clip).write(self.bb, [source.var], name)
        words = f"{clip=} {brief(requant)}"
        self._add_tensor(var, name, (len(weight),), zero, self.draw.scale(), words, source)

    # -------------------------------------------------------------------- element-wise

    def _add(self, source: _Tensor) -> None:
        others = [other for other in self.tensors if other.shape == source.shape]
        if self.scheme == "mul_shift" and not self.free:
            # One factor for both operands.
            others = [other for other in others if other.scale == source.scale]
        other = others[0] if self.draw.chance(0.5) else self.draw.pick(others)
        pair = (source, other) if self.draw.chance(0.5) else (other, source)
        zero = self.draw.zero()
        clip, name = self.draw.clip(zero), self._fresh("add")
        a, b = (tensor.var for tensor in pair)
        if self.scheme == "tflite":
            scale = float(max(pair[0].scale, pair[1].scale) * 2.0 ** self.draw.rng.uniform(-1, 2))
            parameters = AddFactors.from_scales(
                (pair[0].scale, pair[1].scale, scale), (pair[0].zero, pair[1].zero, zero)
            )
            var = TfliteAdd(parameters, clip).write(self.bb, [a, b], name)
            words = str(parameters)
        else:
            requant = self.draw.requant(np.full(1, SPREAD * 1.4), 256, zero)
            assert not isinstance(requant, TfliteRequant)
            var = Add(requant, clip).write(self.bb, [a, b], name)
            words, scale = brief(requant), source.scale / factor(requant)
        self._add_tensor(var, name, source.shape, zero, scale, f"{clip=} {words}", *pair)

    def _convert(self, source: _Tensor) -> None:
        zero, offset = self.draw.zero(), -source.zero
        if self.free or self.scheme == "shift":
            offset = self.draw.between(-200, 200)
        channels = self._full(source.shape)[-1] if self.free and self.draw.chance(0.4) else 1
        if self.scheme == "shift" and self.draw.chance(0.5):
            factors = 2.0 ** self.draw.rng.uniform(-1, 1, channels)
            requant: Requant = self.draw.mul_shift(factors, 128 + abs(offset))
        else:
            requant = self.draw.requant(np.full(channels, SPREAD), 128 + abs(offset), zero)
        clip, name = self.draw.clip(zero), self._fresh("convert")
        if not self.free and self.scheme != "shift" and clip not in ((-128, 127), (zero, 127)):
            clip = (zero, 127)
        var = Convert(requant, clip, offset=offset).write(self.bb, [source.var], name)
        words, scale = f"{offset=} {clip=} {brief(requant)}", source.scale / factor(requant)
        self._add_tensor(var, name, source.shape, zero, scale, words, source)

    # -------------------------------------------------------------------- the others

    def _average_pool(self, source: _Tensor) -> None:
        window = self.draw.window(source.shape[:2])
        if window is None:
            return
        kernel, strides, padding, out = window
        clip, name = self.draw.clip(source.zero), self._fresh("average_pool")
        var = AveragePool(
            kernel=kernel, strides=strides, padding=padding, clip=clip, layout=self.layout
        ).write(self.bb, [source.var], name)
        words = f"{kernel=} {strides=} {padding=} {clip=}"
        self._add_tensor(
            var, name, (*out, source.shape[2]), source.zero, source.scale, words, source
        )

    def _max_pool(self, source: _Tensor) -> None:
        window = self.draw.window(source.shape[:2])
        if window is None:
            return
        kernel, strides, padding, out = window
        name = self._fresh("max_pool")
        var = MaxPool(kernel=kernel, strides=strides, padding=padding, layout=self.layout).write(
            self.bb, [source.var], name
        )
        words = f"{kernel=} {strides=} {padding=}"
        self._add_tensor(
            var, name, (*out, source.shape[2]), source.zero, source.scale, words, source
        )

    def _pad(self, source: _Tensor) -> None:
        if not self.free:
            return
        pad = tuple(self.draw.between(0, 3) for _ in range(4))
        value = self.draw.pick([source.zero, 0, self.draw.between(-128, 127)])
        self._write_pad(source, pad, value)

    def _write_pad(self, source: _Tensor, pad: tuple[int, ...], value: int) -> _Tensor:
        top, left, bottom, right = pad
        name = self._fresh("pad")
        var = Pad(value, (top, left, bottom, right), layout=self.layout).write(
            self.bb, [source.var], name
        )
        y, x, channels = source.shape
        sizes, words = (y + top + bottom, x + left + right, channels), f"{pad=} {value=}"
        self._add_tensor(var, name, sizes, source.zero, source.scale, words, source)
        return self.tensors[-1] if self.free else self.tensors.pop()

    def _reshape(self, source: _Tensor) -> None:
        size = math.prod(source.shape)
        sizes: tuple[int, ...] = (size,)
        if len(source.shape) == 1 or self.draw.chance(0.2):
            y = self.draw.pick([n for n in range(1, size + 1) if size % n == 0 and n <= 12])
            rest = size // y
            x = self.draw.pick([n for n in range(1, rest + 1) if rest % n == 0 and n <= 20])
            sizes = (y, x, rest // x)
        if size > 2500 or sizes[-1] > 2500:
            return
        name = self._fresh("reshape")
        var = Reshape(self._full(sizes)).write(self.bb, [source.var], name)
        self._add_tensor(var, name, sizes, source.zero, source.scale, "", source)

    def _softmax(self, source: _Tensor) -> None:
        scale = source.scale if self.scheme == "tflite" else 2.0 ** self.draw.rng.uniform(-7, -1)
        name = self._fresh("softmax")
        var = TfliteSoftmax.of_scale(scale).write(self.bb, [source.var], name)
        words = f"{scale=:.6f}"
        self._add_tensor(var, name, source.shape, -128, 1 / 256, words, source, last=not self.free)
