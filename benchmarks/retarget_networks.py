"""Networks of any number of small operators, in TFLite's arithmetic, with seeded weights.

Tensors are normalised where they are made: a step is about a fortieth of their deviation, so that
they neither vanish nor saturate however long the network is.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from tvm import relax

from byoc_dory.layers import TfliteRequant
from htvm.model import Model, TensorInfo
from patterns.op import Op
from patterns.ops.convert import TableLookup, tabulate
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.dense import Dense
from patterns.ops.moves.concat import Concat
from patterns.ops.moves.reshape import Slice
from patterns.ops.requantize import fixed_point
from patterns.ops.tflite.binary import AddFactors, MultiplyFactors, TfliteAdd, TfliteBinary
from patterns.reading.read import graph_of

__all__ = ["SHAPES", "draw"]

_CHANNELS = 8
_SIDE = 4
_SPREAD = 40.0  # deviation of a tensor, in its own steps
_UNIT = 1 / 64  # real step of a recurrent network's state and gates


class _Drawing:
    """A network being written; tensors are NHWC maps, or rows."""

    def __init__(self, shape: tuple[int, ...], seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.builder = relax.BlockBuilder()
        self.input = relax.Var("input", relax.TensorType((1, *shape), "int8"))
        self.shapes: dict[relax.Var, tuple[int, ...]] = {self.input: shape}
        self.count = 0

    def emit(self, op: Op, inputs: list[relax.Var], shape: tuple[int, ...]) -> relax.Var:
        """Append an operator; return its result."""
        made: relax.Var = op.write(self.builder, inputs, f"op_{self.count}")
        self.shapes[made] = shape
        self.count += 1
        return made

    def product(self, x: relax.Var, *, side: int = 1, relu: bool = True) -> relax.Var:
        """Append a convolution that keeps the map's size, or a dense layer."""
        shape, channels = self.shapes[x], _CHANNELS
        return self._product(x, (*shape[:-1], channels), side, (0 if relu else -128, 127))

    def _product(
        self, x: relax.Var, shape: tuple[int, ...], side: int, clip: tuple[int, int]
    ) -> relax.Var:
        weight = self.rng.integers(-127, 128, (shape[-1], self.shapes[x][-1], side, side))
        weight = weight.astype(np.int8)
        # The sum of as many products of independent numbers; a rectifier leaves half its power.
        gain = math.sqrt(2.0 if clip[0] == 0 else 1.0) / (73.6 * math.sqrt(weight[0].size))
        pairs = [fixed_point(gain * 2.0 ** self.rng.uniform(-0.5, 0.5)) for _ in weight]
        requant = TfliteRequant(tuple(m for m, _ in pairs), tuple(s for _, s in pairs), 0)
        bias = self.rng.normal(0, 0.1 * _SPREAD / gain, len(weight)).astype(np.int32)
        if len(shape) == 1:
            return self.emit(Dense(weight, bias, requant, clip), [x], shape)
        border = (side // 2,) * 4
        window = Window((1, 1), border, (1, 1), 1, "NHWC")
        return self.emit(conv2d_of(weight, bias, window, requant, clip), [x], shape)

    def dense(self, x: relax.Var, size: int) -> relax.Var:
        """Append a fully connected layer."""
        return self._product(x, (size,), 1, (-128, 127))

    def add(self, first: relax.Var, second: relax.Var, scale: float = 0.7071) -> relax.Var:
        """Append the sum, with the deviation of its operands (of independent ones by default)."""
        factors = AddFactors.from_scales((scale, scale, 1.0), (0, 0, 0))
        return self.emit(TfliteAdd(factors, (-128, 127)), [first, second], self.shapes[first])

    def multiply(self, first: relax.Var, second: relax.Var, gate: float) -> relax.Var:
        """Append the product with a gate of 8 bits for 0 to 1."""
        factors = MultiplyFactors.from_scales((1 / 256, gate, _UNIT), (-128, 0, 0))
        return self.emit(TfliteBinary("multiply", factors), [first, second], self.shapes[first])

    def part(self, x: relax.Var, begin: int, size: int) -> relax.Var:
        """Append a slice of a row."""
        return self.emit(Slice.every((0, begin), (1, size)), [x], (size,))

    def sigmoid(self, x: relax.Var) -> relax.Var:
        """Append a table of the logistic function, from steps of `_UNIT` to 8 bits for 0 to 1."""
        table = tabulate(lambda v: round(256 / (1 + math.exp(-v * _UNIT))) - 128)
        return self.emit(TableLookup(table, zero_point=-128), [x], self.shapes[x])

    def tanh(self, x: relax.Var) -> relax.Var:
        """Append a table of the hyperbolic tangent, from and to steps of `_UNIT`."""
        table = tabulate(lambda v: round(math.tanh(v * _UNIT) / _UNIT))
        return self.emit(TableLookup(table), [x], self.shapes[x])

    def concat(self, parts: list[relax.Var]) -> relax.Var:
        """Append a concatenation of channels."""
        shape = self.shapes[parts[0]]
        total = sum(self.shapes[part][-1] for part in parts)
        return self.emit(Concat(len(shape)), parts, (*shape[:-1], total))


_MAP = (_SIDE, _SIDE, _CHANNELS)


def _chain(net: _Drawing, size: int) -> relax.Var:
    """Convolutions one after the other."""
    x = net.input
    for index in range(size):
        x = net.product(x, side=(3, 1)[index % 2])
    return x


def _residual(net: _Drawing, size: int) -> relax.Var:
    """Blocks of two convolutions and a sum with the block's input, never cut."""
    x = net.product(net.input)
    while net.count < size:
        x = net.add(x, net.product(net.product(x, side=3), relu=False))
    return x


def _dense_residual(net: _Drawing, size: int) -> relax.Var:
    """A convolution's result added to its own input, again and again."""
    x = net.product(net.input)
    while net.count < size:
        x = net.add(x, net.product(x, relu=False))
    return x


def _concatenated(net: _Drawing, size: int) -> relax.Var:
    """Blocks of twelve layers, each of which reads the concatenation of all before it."""
    x = net.product(net.input)
    while net.count < size:
        for _ in range(12):
            x = net.concat([x, net.product(x)])
        x = net.product(x)
    return x


def _branches(net: _Drawing, size: int) -> relax.Var:
    """As many convolutions of one tensor, joined."""
    x = net.product(net.input)
    return net.product(net.concat([net.product(x) for _ in range(size)]))


def _sums(net: _Drawing, size: int) -> relax.Var:
    """A tree of sums of convolutions of one tensor."""
    x = net.product(net.input)
    level = [net.product(x, relu=False) for _ in range(max(size // 2, 2))]
    while len(level) > 1:
        odd = level[len(level) // 2 * 2 :]
        level = [net.add(a, b) for a, b in zip(level[::2], level[1::2], strict=False)] + odd
    return level[0]


def _lstm(net: _Drawing, size: int) -> relax.Var:
    """A recurrent network with long short-term memory, unrolled: 16 operators for each step."""
    hidden, state, step = None, None, 0
    while net.count < size:
        x = net.part(net.input, step % 8, 4)
        gates = net.dense(x, 4 * _CHANNELS)
        if hidden is not None:
            gates = net.add(gates, net.dense(hidden, 4 * _CHANNELS))
        keep, take, show, new = (net.part(gates, i * _CHANNELS, _CHANNELS) for i in range(4))
        fresh = net.multiply(net.sigmoid(take), net.tanh(new), _UNIT)
        if state is not None:
            fresh = net.add(net.multiply(net.sigmoid(keep), state, _UNIT), fresh, 1.0)
        state = fresh
        hidden = net.multiply(net.sigmoid(show), net.tanh(state), _UNIT)
        step += 1
    assert hidden is not None
    return net.dense(hidden, 10)


def _gru(net: _Drawing, size: int) -> relax.Var:
    """A recurrent network with gated units, unrolled: 14 operators for each step."""
    hidden, step = None, 0
    while net.count < size:
        x = net.dense(net.part(net.input, step % 8, 4), 2 * _CHANNELS)
        gates = x if hidden is None else net.add(x, net.dense(hidden, 2 * _CHANNELS))
        first, second = (net.part(gates, i * _CHANNELS, _CHANNELS) for i in range(2))
        update, new = net.sigmoid(first), net.tanh(second)
        fresh = net.multiply(update, new, _UNIT)
        if hidden is not None:
            fresh = net.add(fresh, net.multiply(net.sigmoid(second), hidden, _UNIT), 1.0)
        hidden, step = fresh, step + 1
    assert hidden is not None
    return net.dense(hidden, 10)


_ROW = (12,)

SHAPES: dict[str, tuple[tuple[int, ...], Callable[[_Drawing, int], relax.Var]]] = {
    "chain": (_MAP, _chain),
    "residual": (_MAP, _residual),
    "dense residual": (_MAP, _dense_residual),
    "concatenated": (_MAP, _concatenated),
    "branches": (_MAP, _branches),
    "sums": (_MAP, _sums),
    "lstm": (_ROW, _lstm),
    "gru": (_ROW, _gru),
}
"""Shape of network -> shape of its input, and what draws it."""


def draw(shape: str, size: int, seed: int = 0) -> Model:
    """Return a network.

    Args:
        shape: one of `SHAPES`.
        size: about how many operators it has; of ``"branches"``, how many branches.
        seed: of its weights.
    """
    source, body = SHAPES[shape]
    net = _Drawing(source, seed)
    with net.builder.function("main", [net.input]):
        with net.builder.dataflow():
            result = body(net, size)
            output = net.builder.emit_output(result)
        net.builder.emit_func_output(output)
    info = TensorInfo("input", (1, *source), "int8", _UNIT, 0)
    made = TensorInfo("output", (1, *net.shapes[result]), "int8", _UNIT, 0)
    name = f"{shape.replace(' ', '_')}_{size}"
    return Model(name, graph_of(net.builder.get()), (info,), (made,))
