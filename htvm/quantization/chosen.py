"""What the search for scales has chosen so far: complete and consistent at any time."""

from __future__ import annotations

import math

import numpy as np

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import Array
from htvm.quantization.annotated import Annotated
from htvm.quantization.ties import (
    AddChoice,
    Tie,
    add_choices,
    find_ties,
    zero_points,
    zero_points_of,
)
from patterns.ops.tflite.averages import AveragePool
from patterns.reading.node import Node

STEPS_PER_OCTAVE = 4
FINEST, COARSEST = -16, 12
"""Exponents of units: quarter octaves around the step that covers the source's range."""


class Chosen:
    """Steps, zero points, shifts, and how each add is executed.

    Args:
        net: the source.
        per_channel: whether channels may have different steps.

    Attributes:
        ties: the ties of the network.
        adds: add -> how it is executed.
        zeros: tensor -> its new zero point.
        exponent: tie -> [lanes]; the unit of a lane is the tie's base times 2**(exponent / 4).
            Arrays are replaced, never written to.
        shift: layer with 8-bit weights -> its right shift.
        input_shift: tensor that is given in the source's quantization -> right shift of the
            conversion that brings it in.

    Raises:
        UnsupportedError: the network's adds cannot be tied by powers of two.
    """

    def __init__(self, net: Annotated, per_channel: bool) -> None:
        self.net = net
        self.ties = find_ties(net, per_channel=per_channel)
        self.adds = self._consistent()
        self.zeros = zero_points(net, self.adds)
        self._octaves = {tie: tie.octaves(self.adds) for tie in self.ties.distinct}
        self._anchor = {tie: tie.anchor(net, self.zeros) for tie in self.ties.distinct}
        self.input_shift = {name: self._needed_input_shift(name) for name in net.source_quantized}
        self._base = {tie: self._covering_unit(tie) for tie in self.ties.distinct}
        self.exponent = {tie: np.zeros(tie.lanes, np.int64) for tie in self.ties.distinct}
        self.shift: dict[str, float] = {}

    def _consistent(self) -> dict[str, AddChoice]:
        """Return for each add the first choice that does not contradict the others."""
        possible = {node.name: add_choices(self.net, node) for node in self.net.adds}
        chosen = {name: choices[0] for name, choices in possible.items()}
        for name, choices in possible.items():
            error: UnsupportedError | None = None
            for choice in choices:
                chosen[name] = choice
                try:
                    self.ties.check(chosen)
                except UnsupportedError as problem:
                    error = problem
                else:
                    break
            else:
                assert error is not None
                raise error
        return chosen

    def choose(self, node: Node, choice: AddChoice) -> bool:
        """Execute an add in this way; return whether the others allow it (if not, nothing changes).

        The zero points and steps that it decides about change, units do not.
        """
        previous = self.adds[node.name]
        self.adds[node.name] = choice
        try:
            self.ties.check(self.adds)
        except UnsupportedError:
            self.adds[node.name] = previous
            return False
        tie = self.ties.tie_of[node.name]
        if choice.shift != previous.shift:
            doubled = tie.doublings[node.name].astype(np.int64)
            self._octaves[tie] = self._octaves[tie] + (choice.shift - previous.shift) * doubled
        self.zeros |= zero_points_of(self.net, node, choice)
        self._anchor[tie] = tie.anchor(self.net, self.zeros)
        return True

    def balance(self, tie: Tie) -> None:
        """Let the steps of a tie follow what its tensors reach, one add after the other.

        From shifts of 0, steps drift away from that by a part of an octave with every add; after
        dozens of them the search, which moves one add at a time, cannot make up for it.
        """
        reach = {name: self._reach(name) for name in tie.members}
        first = next(name for name in self.net.tensors if name in tie.members)

        def drift(name: str) -> float:
            wanted = reach[name] / reach[first]
            return abs(math.log2(self.factor(name) / self.factor(first) / wanted))

        for node in self.net.adds:
            if node.name not in tie.members:
                continue
            found = {choice.shift: choice for choice in reversed(add_choices(self.net, node))}
            outcomes = []
            for choice in (self.adds[node.name], *found.values()):
                if self.choose(node, choice):
                    outcomes.append((drift(node.name), choice))
            self.choose(node, min(outcomes, key=lambda outcome: outcome[0])[1])
        self._base[tie] = self._covering_unit(tie)

    # -------------------------------------------------------------------- steps

    def factor(self, name: str) -> float:
        """Return a tensor's step relative to the unit of its tie."""
        tie = self.ties.tie_of[name]
        anchor = self._anchor[tie]
        factor = self._plain_factor(tie, name)
        return factor if anchor is None else factor / self._plain_factor(tie, anchor)

    def _plain_factor(self, tie: Tie, name: str) -> float:
        place = tie.place[name]
        return float(tie.factors[place]) * 2.0 ** int(self._octaves[tie][place])

    def step(self, name: str, exponent: Array | None = None) -> Array:
        """Return steps ``[C]`` (or ``[C, G]`` for candidates ``[L, G]``) of a tensor."""
        tie = self.ties.tie_of[name]
        chosen = (self.exponent[tie] if exponent is None else exponent)[tie.members[name]]
        unit = self._base[tie] * self.factor(name)
        return np.asarray(unit * 2.0 ** (chosen / STEPS_PER_OCTAVE))

    def bounds(self, name: str) -> tuple[int, int]:
        """Return inclusive bounds of a tensor relative to its zero point, in its steps."""
        zero = self.zeros[name]
        low, high = self.net.limits(name)
        if zero == 0 and self.net.rectified(name):
            low = 0
        return low - zero, high - zero

    def fixed(self, tie: Tie) -> bool:
        """Whether the unit of a tie cannot be chosen."""
        lonely_input = (
            any(n in self.net.source_quantized for n in tie.members) and len(tie.members) == 1
        )
        return self._anchor[tie] is not None or lonely_input

    def _needed_input_shift(self, name: str) -> int:
        """Return the smallest power of two with which the input's range fits its new zero point."""
        low, high = self.bounds(name)
        zero, (least, most) = self.net.zeros[name], self.net.clip(name)
        shift = 0
        while (least - zero) < low << shift or (most - zero) > ((high + 1) << shift) - 1:
            shift += 1
        return shift

    def _reach(self, name: str) -> float:
        """Return the step with which a tensor holds all of the source's values."""
        low, high = self.bounds(name)
        zero, clip = self.net.zeros[name], self.net.clip(name)
        ends = zip(clip, (low, high), strict=True)
        # A zero point at an end leaves no values on its other side.
        return max((end - zero) / bound for end, bound in ends if bound)

    def _covering_unit(self, tie: Tie) -> float:
        """Return the unit with which all steps hold all of the source's values."""
        if self._anchor[tie] is not None:
            return 1.0
        factors = {name: self.factor(name) for name in tie.members}
        need = 1e-6
        for name, factor in factors.items():
            if name in self.net.source_quantized:
                need = max(need, 2.0 ** self.input_shift[name] / factor)
                continue
            need = max(need, self._reach(name) / factor)
        for name, factor in factors.items():
            if self.net.graph.made_by(name, AveragePool):
                # An average benefits from the source's grid: let step 1 be on ours.
                return 2.0 ** math.ceil(math.log2(need * factor) - 0.1) / factor
        return need
