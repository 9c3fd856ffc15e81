"""Choosing the scales: coordinate descent on the error model.

Unknowns are the unit of every lane of every tie (a grid of quarter octaves), the right shift of
every layer with weights, and how each add is executed.  The model's noise is a sum of terms that
each depend on few of them, so one tie, or one layer's shift with the ties around it, is improved at
a time.  Per-channel scales of a per-channel scheme become, here, a factor moved from a layer's rows
into the next layer's columns (cross-layer equalization): both are the lanes' units.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from byoc_dory.layers import Array
from htvm.quantization.annotated import Annotated
from htvm.quantization.chosen import COARSEST, FINEST, Chosen
from htvm.quantization.noise import WEIGHT_LIMIT, NoiseModel
from htvm.quantization.terms import WIDE, Scope, Terms
from htvm.quantization.ties import AddChoice, add_choices
from patterns.reading.node import Node

_NEAR = np.arange(-4, 5)
_SWEEPS = 3


@dataclass(frozen=True, eq=False)
class Scales:
    """The result: everything needed to write the network in the shift scheme.

    Attributes:
        step: tensor -> ``[C]``, step of the new tensor in steps of the source's.
        zero_point: tensor -> new zero point.
        shift: layer with 8-bit weights -> right shift m that the weights are scaled for; with a
            multiplier, log2 of the divisor of both together.
        adds: add -> how it is executed.
        noise: expected noise at the outputs by the error model, in squared steps of the source.
    """

    step: Mapping[str, Array]
    zero_point: Mapping[str, int]
    shift: Mapping[str, float]
    adds: Mapping[str, AddChoice]
    noise: float


def choose_scales(
    net: Annotated, noise: NoiseModel, *, per_channel: bool = True, grid: float = 1.0
) -> Scales:
    """Return the scales with the least noise at the outputs.

    Where many tensors are tied, only the terms of the noise near an add or a layer decide how it is
    executed (`htvm.quantization.terms.EXHAUSTIVE`), so that the time grows with the operators.

    Args:
        net: the source.
        noise: error model of the source.
        per_channel: whether channels may have different steps.
        grid: octaves between the available shifts: 1, or a fraction if layers also multiply.

    Raises:
        UnsupportedError: the network's adds cannot be tied by powers of two.
    """
    search = Search(net, noise, per_channel, grid)
    search.run()
    return search.result()


class Search:
    """The descent; every method leaves what is chosen complete and consistent.

    Attributes:
        chosen: what is chosen.
        terms: the noise of it.
    """

    def __init__(self, net: Annotated, noise: NoiseModel, per_channel: bool, grid: float) -> None:
        self.net = net
        self.noise = noise
        self.grid = grid
        self.chosen = Chosen(net, per_channel)
        self.terms = Terms(self.chosen, noise)
        for tie in self.chosen.ties.distinct:
            if self.terms.is_large(tie):
                self.chosen.balance(tie)
        for layer in net.shifted:
            self.chosen.shift[layer.name] = self._fitting_shift(layer)

    def run(self) -> None:
        """Improve everything, one after the other, a few times."""
        for sweep in range(_SWEEPS):
            for add in self.net.adds:
                self.improve_add(add)
            for tie in self.chosen.ties.distinct:
                self.improve(self.terms.whole_tie(tie), WIDE if sweep == 0 else _NEAR)
            for layer in self.net.shifted:
                self.improve_shift(layer)

    def _fitting_shift(self, node: Node) -> float:
        """Return the largest shift with which the weights fit int8."""
        step_in, step_out = self.chosen.step(node.inputs[0]), self.chosen.step(node.name)
        largest = self.noise.largest_weight(node, step_in, step_out)
        if largest <= 0.0:
            return 0
        fitting = math.floor(math.log2(WEIGHT_LIMIT / largest) / self.grid) * self.grid
        return min(max(fitting, 0), 31)

    # -------------------------------------------------------------------- moves

    def improve(self, scope: Scope, window: Array) -> float:
        """Set units to the best of a window around them; return the remaining noise."""
        previous = self.chosen.exponent[scope.tie]
        exponent = previous[scope.lanes][:, None]
        if not scope.is_held and not self.chosen.fixed(scope.tie):
            exponent = np.clip(exponent + window, FINEST, COARSEST)
        noise = np.take_along_axis(self.terms.noise_of(scope), exponent - FINEST, axis=1)
        best, rows = _first_best(noise), np.arange(len(exponent))
        best_exponent = exponent[rows, best]
        if not np.array_equal(best_exponent, previous[scope.lanes]):
            after = previous.copy()
            after[scope.lanes] = best_exponent
            self.chosen.exponent[scope.tie] = after
        return float(noise[rows, best].sum())

    def _remaining(self, scopes: Sequence[Scope]) -> float:
        """Return the noise of all terms of scopes."""
        total = 0.0
        for scope in scopes:
            exponent = self.chosen.exponent[scope.tie][scope.lanes][:, None]
            noise = np.take_along_axis(self.terms.noise_of(scope), exponent - FINEST, axis=1)
            total += float(noise.sum())
        return total

    def improve_shift(self, node: Node) -> None:
        """Try a layer's next shifts up and down, adapting the ties around each time."""
        around = self.terms.around_layer(node)
        previous = {scope.tie: self.chosen.exponent[scope.tie] for scope in around}
        start = self.chosen.shift[node.name]
        outcomes = []
        steps = dict.fromkeys((0.0, 1.0, -1.0, self.grid, -self.grid))
        for shift in (start + step for step in steps):
            if not 0 <= shift <= 31:
                continue
            self.chosen.exponent.update(previous)
            self.chosen.shift[node.name] = shift
            for scope in around * 2:
                self.improve(scope, _NEAR)
            exponents = {tie: self.chosen.exponent[tie] for tie in previous}
            outcomes.append((self._remaining(around), shift, exponents))
        least_noise = min(noise for noise, _, _ in outcomes)
        _, shift, exponents = next(o for o in outcomes if o[0] <= least_noise * (1 + 1e-6))
        self.chosen.shift[node.name] = shift
        self.chosen.exponent.update(exponents)

    def improve_add(self, node: Node) -> None:
        """Try every way to execute an add, adapting its tie each time."""
        scope = self.terms.around_add(node)
        previous, exponent = self.chosen.adds[node.name], self.chosen.exponent[scope.tie]
        outcomes = []
        for choice in (previous, *add_choices(self.net, node)):
            if self.chosen.choose(node, choice):
                self.chosen.exponent[scope.tie] = exponent
                noise = self.improve(scope, WIDE)
                outcomes.append((noise, choice, self.chosen.exponent[scope.tie]))
        least_noise = min(noise for noise, _, _ in outcomes)
        _, choice, best_exponent = next(o for o in outcomes if o[0] <= least_noise * (1 + 1e-6))
        self.chosen.choose(node, choice)
        # The units of a large tie are not those that are best for what is near one add.
        self.chosen.exponent[scope.tie] = (
            exponent if self.terms.is_large(scope.tie) else best_exponent
        )

    def result(self) -> Scales:
        """Return the scales found."""
        chosen = self.chosen
        return Scales(
            step={name: chosen.step(name) for name in self.net.tensors},
            zero_point=dict(chosen.zeros),
            shift=dict(chosen.shift),
            adds=dict(chosen.adds),
            noise=self._remaining([self.terms.whole_tie(tie) for tie in chosen.ties.distinct]),
        )


def _first_best(noise: Array) -> Array:
    """Per row the first column within a millionth of the least, to break ties reproducibly."""
    least = noise.min(axis=1, keepdims=True)
    return np.asarray((noise <= least * (1 + 1e-6)).argmax(axis=1))
