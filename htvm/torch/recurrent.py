"""LSTM and GRU layers as steps of linear layers and functions, which quantizers know.

torch exports a recurrent layer as one operator, of which a quantizer sees neither gates nor states.
Here a layer is written out before it is exported, with the parameters that it has.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from torch import nn

_State: TypeAlias = tuple[Any, ...]
"""The states behind a step, ``[N, H]``: its output first; nothing stands for zeros."""


def unroll(module: nn.Module) -> nn.Module:
    """Return a module whose LSTM and GRU layers are written out; it is changed in place.

    Layers that project their outputs stay as they are.
    """
    if isinstance(module, nn.LSTM | nn.GRU) and not module.proj_size:
        return Unrolled(module)
    for name, part in list(module.named_children()):
        setattr(module, name, unroll(part))
    return module


class Unrolled(nn.Module):  # type: ignore[misc]
    """A recurrent layer over sequences of constant length, with or without a batch."""

    def __init__(self, layer: nn.LSTM | nn.GRU) -> None:
        """Make one that has a layer's parameters."""
        super().__init__()
        self.layer = layer
        self.train(layer.training)

    def forward(self, x: Any, first: Any = None) -> Any:
        """Return outputs and last states, as the layer does."""
        layer, lstm = self.layer, isinstance(self.layer, nn.LSTM)
        axis = 1 if layer.batch_first and x.dim() == 3 else 0
        inputs = [x.select(axis, at) for at in range(x.shape[axis])]
        if first is not None and not lstm:
            first = (first,)
        ends: list[_State] = []
        for number in range(layer.num_layers):
            sides = []
            for direction in ("", "_reverse")[: 1 + layer.bidirectional]:
                states = () if first is None else tuple(each[len(ends)] for each in first)
                made, states = self._run(inputs, states, f"_l{number}{direction}")
                sides.append(made)
                ends.append(states)
            inputs = sides[0]
            if layer.bidirectional:
                inputs = [torch.cat(pair, -1) for pair in zip(*sides, strict=True)]
            if number < layer.num_layers - 1:
                inputs = [
                    nn.functional.dropout(each, layer.dropout, self.training) for each in inputs
                ]
        last = tuple(torch.stack(parts) for parts in zip(*ends, strict=True))
        return torch.stack(inputs, axis), last if lstm else last[0]

    def _run(self, inputs: list[Any], states: _State, suffix: str) -> tuple[list[Any], _State]:
        """Return the outputs of one direction, in the order of the inputs, and its last states."""
        enter, own = (getattr(self.layer, f"weight_{kind}{suffix}") for kind in ("ih", "hh"))
        biases = [getattr(self.layer, f"bias_{kind}{suffix}", None) for kind in ("ih", "hh")]
        step = _lstm if isinstance(self.layer, nn.LSTM) else _gru
        order = -1 if suffix.endswith("_reverse") else 1
        made = []
        for x in inputs[::order]:
            given = nn.functional.linear(x, enter, biases[0])
            if states:
                states = step(given, nn.functional.linear(states[0], own, biases[1]), states)
            else:
                states = step(given, biases[1], states)
            made.append(states[0])
        return made[::order], states


def _lstm(given: Any, own: Any, states: _State) -> _State:
    enter, forget, cell, out = _parts(given if own is None else given + own, 4)
    memory = torch.sigmoid(enter) * torch.tanh(cell)
    if states:
        memory = memory + torch.sigmoid(forget) * states[1]
    return torch.sigmoid(out) * torch.tanh(memory), memory


def _gru(given: Any, own: Any, states: _State) -> _State:
    own = torch.zeros_like(given) if own is None else own
    (reset, update, new), (own_reset, own_update, own_new) = _parts(given, 3), _parts(own, 3)
    update = torch.sigmoid(update + own_update)
    new = torch.tanh(new + torch.sigmoid(reset + own_reset) * own_new)
    return (new + update * (states[0] - new if states else -new),)


def _parts(gates: Any, count: int) -> list[Any]:
    """Return the parts of gates as slices, which quantizers pass."""
    size = gates.shape[-1] // count
    return [gates[..., at * size : (at + 1) * size] for at in range(count)]
