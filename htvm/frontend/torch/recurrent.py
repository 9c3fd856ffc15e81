"""LSTM, GRU and plain recurrent layers, which torch exports as one operator: unrolled.

Quantizers leave them in reals, so they are computed in float32, one step after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from htvm.frontend.torch.writer import Call, Handler

_State: TypeAlias = tuple[str, ...]
"""Names of the state's tensors ``[1, H]``: the output of a step first."""

_Step: TypeAlias = "Callable[[_Layer, str, _State], _State]"
"""Takes the input's share of the gates ``[1, G * H]`` and the state; returns the next state."""


@dataclass(frozen=True)
class _Layer:
    """One direction of a layer.

    Attributes:
        call: the call.
        weight: name of the weights from the state to the gates, ``[G * H, H]``.
        bias: name of their bias, or empty.
        size: H.
    """

    call: Call
    weight: str
    bias: str
    size: int

    def gates(self, state: str) -> str:
        """Write the state's share of the gates."""
        call, constants = self.call, self.call.writer.constants
        bias = [self.bias] if self.bias else []
        known = [constants.get(name) for name in (state, self.weight, *bias)]
        if all(value is not None for value in known):  # the first step from constants
            first, weight, *more = (np.asarray(value, "float32") for value in known)
            return call.constant(first @ weight.T + (more[0] if more else 0), "float32")
        return call.node("Gemm", [state, self.weight, *bias], transB=1)

    def part(self, gates: str, index: int) -> str:
        """Write one of the gates."""
        constant = self.call.writer.constants.get(gates)
        bounds = index * self.size, (index + 1) * self.size
        if constant is not None:
            return self.call.constant(constant[:, slice(*bounds)], "float32")
        ends = [self.call.constant([value], "int64") for value in (*bounds, 1)]
        return self.call.node("Slice", [gates, *ends])

    def pair(self, op: str, a: str, b: str) -> str:
        """Write a function of two tensors."""
        return self.call.node(op, [a, b])


def _lstm(layer: _Layer, given: str, state: _State) -> _State:
    total = layer.pair("Add", given, layer.gates(state[0]))
    enter, forget, cell, out = (
        layer.call.node(op, [layer.part(total, index)])
        for index, op in enumerate(("Sigmoid", "Sigmoid", "Tanh", "Sigmoid"))
    )
    kept, new = layer.pair("Mul", forget, state[1]), layer.pair("Mul", enter, cell)
    memory = layer.pair("Add", kept, new)
    return layer.pair("Mul", out, layer.call.node("Tanh", [memory])), memory


def _gru(layer: _Layer, given: str, state: _State) -> _State:
    own = layer.gates(state[0])
    reset, update = (
        layer.call.node("Sigmoid", [layer.pair("Add", layer.part(given, at), layer.part(own, at))])
        for at in (0, 1)
    )
    kept = layer.pair("Mul", reset, layer.part(own, 2))
    new = layer.call.node("Tanh", [layer.pair("Add", layer.part(given, 2), kept)])
    change = layer.pair("Mul", layer.pair("Sub", state[0], new), update)
    return (layer.pair("Add", change, new),)


def _plain(layer: _Layer, given: str, state: _State, op: str) -> _State:
    return (layer.call.node(op, [layer.pair("Add", given, layer.gates(state[0]))]),)


def _recurrent(call: Call, step: _Step, states: int, gates: int) -> Sequence[str]:
    shape, biased = call.shape("input"), call.flag("has_biases", default=True)
    layers, both = call.integer("num_layers", 1), call.flag("bidirectional")
    if call.flag("train") and call.number("dropout", 0.0):
        raise call.torch.unsupported("a dropout in training mode", "export after module.eval()")
    call.ignore("dropout")
    batch = 0 if call.flag("batch_first") else 1
    if len(shape) != 3 or shape[batch] != 1:
        raise call.torch.unsupported(
            f"a recurrent layer over an input of shape {list(shape)}", "a batch of 1"
        )
    count, directions = shape[1 - batch], 2 if both else 1
    params, first = call.tensors("params"), _first(call, states)
    each = 4 if biased else 2
    if len(params) != each * layers * directions:
        raise call.torch.unsupported(f"{len(params)} parameters", "a layer without projections")
    rows = call.reshaped(call.tensor("input"), (count, shape[2]))
    ends: list[_State] = []
    for number in range(layers):
        sequences = []
        for direction in range(directions):
            at = number * directions + direction
            own = params[at * each : (at + 1) * each]
            size = _size(call, own, gates)
            layer = _Layer(call, own[1], own[3] if biased else "", size)
            given = call.node("Gemm", [rows, own[0], *own[2:3]], transB=1)
            state = tuple(_row(call, name, at, size) for name in first)
            steps = range(count)[:: -1 if direction else 1]
            made: dict[int, str] = {}
            for place in steps:
                bounds = [call.constant([value], "int64") for value in (place, place + 1, 0)]
                state = step(layer, call.node("Slice", [given, *bounds]), state)
                made[place] = state[0]
            sequences.append(call.node("Concat", [made[place] for place in range(count)], axis=0))
            ends.append(state)
        rows = sequences[0] if len(sequences) == 1 else call.node("Concat", sequences, axis=1)
    results = [call.reshaped(rows, call.result())]
    for index in range(states):
        parts = [end[index] for end in ends]
        whole = call.node("Concat", parts, axis=0) if len(parts) > 1 else parts[0]
        results.append(call.reshaped(whole, call.result(1 + index)))
    return results


def _first(call: Call, states: int) -> list[str]:
    """Return the names of the states before the first step, ``[layers, 1, H]``."""
    found = call.tensors("hx") if states > 1 else [call.tensor("hx")]
    if len(found) != states:
        raise call.torch.damaged(f"{len(found)} first states", f"{states}")
    return found


def _size(call: Call, own: Sequence[str], gates: int) -> int:
    """Return H, which the weights and biases of one direction must agree on."""
    values = [call.writer.constants.get(name) for name in own]
    shapes = [value.shape for value in values if value is not None]
    if len(shapes) != len(own):
        raise call.torch.unsupported("weights that are computed", "constant ones")
    size = shapes[1][-1] if shapes[1] else 0
    rows = gates * size
    if not size or shapes[1] != (rows, size) or shapes[0][:1] != (rows,) or len(shapes[0]) != 2:
        raise call.torch.damaged(f"weights of shapes {[list(shape) for shape in shapes]}")
    if any(shape != (rows,) for shape in shapes[2:]):
        raise call.torch.damaged(f"biases of shapes {[list(shape) for shape in shapes[2:]]}")
    return size


def _row(call: Call, name: str, at: int, size: int) -> str:
    """Return the state of one layer and direction, ``[1, H]``."""
    constant = call.writer.constants.get(name)
    if constant is None:
        raise call.torch.unsupported("a first state that is computed", "a constant one")
    if constant.ndim != 3 or at >= len(constant) or constant[at].size != size:
        raise call.torch.damaged(f"a first state of shape {list(constant.shape)}")
    return call.constant(constant[at].reshape(1, -1), "float32")


HANDLERS: Mapping[str, Handler] = {
    "aten.gru": partial(_recurrent, step=_gru, states=1, gates=3),
    "aten.lstm": partial(_recurrent, step=_lstm, states=2, gates=4),
    "aten.rnn_relu": partial(_recurrent, step=partial(_plain, op="Relu"), states=1, gates=1),
    "aten.rnn_tanh": partial(_recurrent, step=partial(_plain, op="Tanh"), states=1, gates=1),
}
"""Handlers by operator."""
