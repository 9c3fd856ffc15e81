"""Choosing the scales: coordinate descent on the error model.

Unknowns are the unit of every lane of every tie (a grid of quarter octaves), the right shift of
every layer with weights, and how each add is executed.  The model's noise is a sum of terms that
each depend on few of them, so one tie, or one layer's shift with the ties around it, is improved at
a time.  Per-channel scales of a per-channel scheme become, here, a factor moved from a layer's rows
into the next layer's columns (cross-layer equalization): both are the lanes' units.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import Array
from htvm.quantization.graph import Net
from htvm.quantization.noise import WEIGHT_LIMIT, NoiseModel
from htvm.quantization.operators import AddOperator
from htvm.quantization.passing import AverageOperator
from htvm.quantization.products import ProductOperator
from htvm.quantization.ties import AddChoice, Tie, add_choices, find_ties, zero_points

__all__ = ["Scales", "choose_scales"]

_STEPS_PER_OCTAVE = 4
_FINEST, _COARSEST = -16, 12  # quarter octaves around the step that covers the source's range
_WIDE = np.arange(_FINEST, _COARSEST + 1)  # all exponents
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
    net: Net, noise: NoiseModel, *, per_channel: bool = True, grid: float = 1.0
) -> Scales:
    """Return the scales with the least noise at the outputs.

    Args:
        net: the source.
        noise: error model of the source.
        per_channel: whether channels may have different steps.
        grid: octaves between the available shifts: 1, or a fraction if layers also multiply.

    Raises:
        UnsupportedError: the network's adds cannot be tied by powers of two.
    """
    search = _Search(net, noise, per_channel, grid)
    search.start()
    for sweep in range(_SWEEPS):
        for add in net.adds:
            search.improve_add(add)
        for tie in search.distinct_ties():
            search.improve_tie(tie, _WIDE if sweep == 0 else _NEAR)
        for layer in net.shifted:
            search.improve_shift(layer)
    return search.result()


class _Search:
    """The state of the descent; every method leaves it complete and consistent."""

    def __init__(self, net: Net, noise: NoiseModel, per_channel: bool, grid: float) -> None:
        self.net = net
        self.noise = noise
        self.per_channel = per_channel
        self.grid = grid
        self.adds: dict[str, AddChoice] = {}
        self.ties: dict[str, Tie] = {}
        self.zeros: dict[str, int] = {}
        # A lane's unit is base * 2**(exponent / 4); both by the name of the tie's first member.
        self.base: dict[str, float] = {}
        self.exponent: dict[str, Array] = {}
        self.shift: dict[str, float] = {}
        self.input_shift: dict[str, int] = {}
        self._clipping: dict[tuple[str, int, int, float], Array] = {}

    # -------------------------------------------------------------------- state

    def start(self) -> None:
        """Start with steps that hold all of the source's values, and the largest shifts."""
        for add in self.net.adds:
            self.adds[add.name] = self._first_consistent(add)
        self._apply_adds()
        for name in self.net.given:
            self.input_shift[name] = self._needed_input_shift(name)
        for tie in self.distinct_ties():
            self.base[self.key(tie)] = self._covering_unit(tie)
            self.exponent[self.key(tie)] = np.zeros(tie.lanes, np.int64)
        for layer in self.net.shifted:
            self.shift[layer.name] = self._fitting_shift(layer)

    def _first_consistent(self, op: AddOperator) -> AddChoice:
        others = {
            other.name: self.adds.get(other.name) or add_choices(self.net, other)[0]
            for other in self.net.adds
            if other.name != op.name
        }
        error: UnsupportedError | None = None
        for choice in add_choices(self.net, op):
            try:
                find_ties(self.net, {**others, op.name: choice})
            except UnsupportedError as problem:
                error = problem
            else:
                return choice
        assert error is not None
        raise error

    def _apply_adds(self) -> None:
        self.ties = find_ties(self.net, self.adds, per_channel=self.per_channel)
        self.zeros = zero_points(self.net, self.adds)

    def distinct_ties(self) -> list[Tie]:
        """Return every tie once, in execution order."""
        return list({id(tie): tie for tie in self.ties.values()}.values())

    def key(self, tie: Tie) -> str:
        """Return a name of a tie that remains valid when adds change."""
        return min(tie.members, key=self.net.tensors.index)

    def step(self, name: str, exponent: Array | None = None) -> Array:
        """Return steps ``[C]`` (or ``[C, G]`` for candidates ``[L, G]``) of a tensor."""
        tie = self.ties[name]
        key = self.key(tie)
        factor, lanes = tie.members[name]
        chosen = (self.exponent[key] if exponent is None else exponent)[lanes]
        return np.asarray(self.base[key] * factor * 2.0 ** (chosen / _STEPS_PER_OCTAVE))

    def bounds(self, name: str) -> tuple[int, int]:
        """Return inclusive bounds of a tensor relative to its zero point, in its steps."""
        zero = self.zeros[name]
        low, high = self.net.limits(name)
        if zero == 0 and self.net.rectified(name):
            low = 0
        return low - zero, high - zero

    def _fixed(self, tie: Tie) -> bool:
        lonely_input = any(n in self.net.given for n in tie.members) and len(tie.members) == 1
        return tie.anchor is not None or lonely_input

    def _needed_input_shift(self, name: str) -> int:
        """Return the smallest power of two with which the input's range fits its new zero point."""
        low, high = self.bounds(name)
        zero, (least, most) = self.net.zero_point(name), self.net.clip(name)
        shift = 0
        while (least - zero) < low << shift or (most - zero) > ((high + 1) << shift) - 1:
            shift += 1
        return shift

    def _covering_unit(self, tie: Tie) -> float:
        if tie.anchor is not None:
            return 1.0
        need = 1e-6
        for name, (factor, _) in tie.members.items():
            if name in self.net.given:
                need = max(need, 2.0 ** self.input_shift[name] / factor)
                continue
            low, high = self.bounds(name)
            zero, clip = self.net.zero_point(name), self.net.clip(name)
            # A zero point at an end leaves no values on its other side.
            reach = [
                (end - zero) / bound for end, bound in zip(clip, (low, high), strict=True) if bound
            ]
            need = max(need, *(value / factor for value in reach))
        for name, (factor, _) in tie.members.items():
            op = self.net.producer(name)
            if isinstance(op, AverageOperator):
                # An average benefits from the source's grid: let step 1 be on ours.
                return 2.0 ** math.ceil(math.log2(need * factor) - 0.1) / factor
        return need

    def _fitting_shift(self, op: ProductOperator) -> float:
        largest = self.noise.largest_weight(op, self.step(op.inputs[0]), self.step(op.name))
        if largest <= 0.0:
            return 0
        fitting = math.floor(math.log2(WEIGHT_LIMIT / largest) / self.grid) * self.grid
        return min(max(fitting, 0), 31)

    # -------------------------------------------------------------------- noise

    def _tie_noise(self, tie: Tie, exponent: Array) -> Array:
        """Return the noise ``[L, G]`` of all terms that depend on a tie's candidates ``[L, G]``."""
        total = np.zeros(exponent.shape)
        for name, (_, lanes) in tie.members.items():
            step = self.step(name, exponent)
            noise = self._own_noise(name, step, exponent[lanes])
            op = self.net.producer(name)
            # The cost of ternary weights does not depend on steps, which their scales absorb.
            if isinstance(op, ProductOperator) and op.core is None:
                source = self.step(op.inputs[0])
                noise = noise + self.noise.row_noise(op, self.shift[name], source, step)
            for user in self.net.consumers(name):
                if isinstance(user, ProductOperator) and user.core is None:
                    shift, out = self.shift[user.name], self.step(user.name)
                    noise = noise + self.noise.column_noise(user, shift, step, out)
            np.add.at(total, lanes, noise)
        return total

    def _own_noise(self, name: str, step: Array, exponent: Array) -> Array:
        shift = self.input_shift.get(name, 0)
        rounding = self.noise.rounding(name, step, self.adds.get(name), shift)
        op = self.net.producer(name)
        clipping = np.zeros(step.shape)
        if op is None or not op.passes:
            table = self._clipping_table(name)
            clipping = np.take_along_axis(table, exponent - _FINEST, axis=1)
        return self.noise.activation_noise(name, rounding, clipping)

    def _clipping_table(self, name: str) -> Array:
        """Return the clipping error ``[C, E]`` of a tensor for every exponent."""
        low, high = self.bounds(name)
        tie = self.ties[name]
        key = (name, low, high, tie.members[name][0])
        if key not in self._clipping:
            lanes = np.broadcast_to(_WIDE, (tie.lanes, len(_WIDE)))
            self._clipping[key] = self.noise.clipping(name, self.step(name, lanes), low, high)
        return self._clipping[key]

    def _noise_around(self, ties: list[Tie]) -> float:
        total = 0.0
        for tie in ties:
            total += float(self._tie_noise(tie, self.exponent[self.key(tie)][:, None]).sum())
        return total

    # -------------------------------------------------------------------- moves

    def improve_tie(self, tie: Tie, window: Array) -> float:
        """Set a tie's units to the best of a window around them; return the remaining noise."""
        exponent = self.exponent[self.key(tie)][:, None]
        if not self._fixed(tie):
            exponent = np.clip(exponent + window, _FINEST, _COARSEST)
        noise = self._tie_noise(tie, exponent)
        best, rows = _first_best(noise), np.arange(len(exponent))
        self.exponent[self.key(tie)] = exponent[rows, best]
        return float(noise[rows, best].sum())

    def improve_shift(self, op: ProductOperator) -> None:
        """Try a layer's next shifts up and down, adapting the ties around each time."""
        around = list({id(t): t for t in (self.ties[op.inputs[0]], self.ties[op.name])}.values())
        before = {self.key(tie): self.exponent[self.key(tie)] for tie in around}
        start = self.shift[op.name]
        outcomes = []
        steps = dict.fromkeys((0.0, 1.0, -1.0, self.grid, -self.grid))
        for shift in (start + step for step in steps):
            if not 0 <= shift <= 31:
                continue
            self.exponent.update(before)
            self.shift[op.name] = shift
            for tie in around * 2:
                self.improve_tie(tie, _NEAR)
            exponents = {self.key(tie): self.exponent[self.key(tie)] for tie in around}
            outcomes.append((self._noise_around(around), shift, exponents))
        least = min(noise for noise, _, _ in outcomes)
        _, shift, exponents = next(o for o in outcomes if o[0] <= least * (1 + 1e-6))
        self.shift[op.name] = shift
        self.exponent.update(exponents)

    def improve_add(self, op: AddOperator) -> None:
        """Try every way to execute an add, adapting its tie each time."""
        before = self.adds[op.name], self.exponent[self.key(self.ties[op.name])]
        outcomes = []
        for choice in (before[0], *add_choices(self.net, op)):
            self.adds[op.name] = choice
            try:
                self._apply_adds()
            except UnsupportedError:
                continue
            tie = self.ties[op.name]
            self.exponent[self.key(tie)] = before[1]
            outcomes.append((self.improve_tie(tie, _WIDE), choice, self.exponent[self.key(tie)]))
        least = min(noise for noise, _, _ in outcomes)
        _, choice, exponent = next(o for o in outcomes if o[0] <= least * (1 + 1e-6))
        self.adds[op.name] = choice
        self._apply_adds()
        self.exponent[self.key(self.ties[op.name])] = exponent

    def result(self) -> Scales:
        """Return the scales found."""
        return Scales(
            step={name: self.step(name) for name in self.net.tensors},
            zero_point=dict(self.zeros),
            shift=dict(self.shift),
            adds=dict(self.adds),
            noise=self._noise_around(self.distinct_ties()),
        )


def _first_best(noise: Array) -> Array:
    """Per row the first column within a millionth of the least, to break ties reproducibly."""
    least = noise.min(axis=1, keepdims=True)
    return np.asarray((noise <= least * (1 + 1e-6)).argmax(axis=1))
