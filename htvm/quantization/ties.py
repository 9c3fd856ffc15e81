"""Tensors that share a scale, and how adds, which tie them, are executed.

The digital core computes ``(sum w x + b) >> m`` and ``(a + b) >> s``.  A layer with weights leaves
the scales of its input and output free, because its weights absorb any ratio.  An add ties its
operands and its output by powers of two; pools and reshapes pass the scale of their input through.
Tensors tied in this way form a *tie*; the steps of all its members are derived from one number per
lane, the tie's unit.  A lane is a channel if every layer around can tell the channels apart, else
the whole tensor.

Which tensors are tied, and their lanes, does not depend on how the adds are executed; the right
shift of an add only doubles the steps on one side of it.  It decides zero points, too: the core
pads with 0, so the input of a padded convolution has zero point 0, and all other consumers accept
any, because it goes into the bias.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import INT8, Add, Array, Weighted
from htvm.quantization.annotated import Annotated, passes
from htvm.quantization.effects import lanes, operand_factors, ratio
from patterns.reading.node import Node


@dataclass(frozen=True)
class AddChoice:
    """How an add is executed: ``(a + b) >> shift`` with these zero points."""

    shift: int
    operands: tuple[int, int]
    output: int


def zero_points(net: Annotated, choices: Mapping[str, AddChoice]) -> dict[str, int]:
    """Return the zero point of every tensor, given how the adds are executed.

    A rectified tensor that is not padded has -128: the ReLU becomes saturation, and all 256 values
    are used instead of 128.
    """
    result: dict[str, int] = {}
    for name in net.tensors:
        node = net.producer(name)
        if node is not None and passes(node):
            result[name] = result[node.inputs[0]]
        elif name in net.symmetric:
            result[name] = 0
        elif name in net.anchors or not net.rectified(name):
            result[name] = net.zeros[name]
        else:
            result[name] = -128
    for add in net.adds:
        if add.name in choices:
            result |= zero_points_of(net, add, choices[add.name])
    return result


def zero_points_of(net: Annotated, node: Node, choice: AddChoice) -> dict[str, int]:
    """Return the zero points that an add decides: of operands, output, and what passes it on.

    No two adds decide about one tensor differently: an operand that others read has zero point 0.
    """
    result = dict(zip(node.inputs, choice.operands, strict=True))
    to_visit = [node.name]
    while to_visit:
        name = to_visit.pop()
        result[name] = choice.output
        to_visit += [reader.name for reader in net.graph.read_by(name) if passes(reader)]
    return result


def add_choices(net: Annotated, node: Node) -> tuple[AddChoice, ...]:
    """Return the ways to execute an add, the simplest first.

    With ``(a + b) >> s`` the zero points satisfy ``za + zb = zo * 2**s``; an additional half step
    on one operand makes the floor round, which requires an operand that only this add reads.
    """
    free = node.name not in net.symmetric
    if free and node.name in net.anchors:
        # If the source's zero point is not available, a conversion follows.
        direct = _choices_for(net, node, (net.zeros[node.name],))
        return direct or _choices_for(net, node, (0,))
    if free:
        return _choices_for(net, node, (0, -128) if net.rectifies(node) else (0, -32, 32))
    return _choices_for(net, node, (0,))


def _choices_for(net: Annotated, node: Node, outputs: tuple[int, ...]) -> tuple[AddChoice, ...]:
    choices: dict[AddChoice, None] = {}
    # If the output cannot be clipped to fewer bits, operands that already have as few are halved.
    shifts = (1,) if net.needs_fewer_bits(node.name) and not net.clips_freely(node) else (0, 1)
    for shift in shifts:
        half = (1 << shift) >> 1
        for output in outputs:
            total = output << shift
            for first, second in _zero_point_pairs(total, half):
                if _allows_zero(net, node, 0, first) and _allows_zero(net, node, 1, second):
                    choices[AddChoice(shift, (first, second), output)] = None
    return tuple(choices)


def _zero_point_pairs(total: int, half: int) -> tuple[tuple[int, int], ...]:
    low, high = total // 2, total - total // 2
    pairs = [
        (total, half), (half, total), (low + half, high), (low, high + half), (total, 0),
        (low - 32, high + half + 32), (low + half + 32, high - 32),
    ]  # fmt: skip
    return tuple((a, b) for a, b in pairs if -128 <= a <= 127 and -128 <= b <= 127)


def _allows_zero(net: Annotated, node: Node, operand: int, zero: int) -> bool:
    name = node.inputs[operand]
    if zero == 0:
        return True
    if zero != INT8[0] and net.rectified(name):
        return False  # only at these two does saturation, or a core's ReLU, rectify
    producer = net.producer(name)
    # A zero point that an add or the network itself requires cannot be changed.
    movable = producer is not None and isinstance(producer.scaled, Weighted)
    return movable and len(net.graph.read_by(name)) == 1 and not net.graph.is_result(name)


@dataclass(frozen=True, eq=False)
class Tie:
    """Tensors whose steps are derived from common units.

    The step of channel c of a member, in steps of the source tensor, is
    ``unit[lanes[c]] * factor``.  If an anchor has the source's own zero point, it also has the
    source's step: factors are relative to it, and the unit is 1.

    Attributes:
        members: tensor -> lane of each of its channels.
        lanes: number of lanes.
        anchors: members that are needed in the source's own quantization.
        factors: [M], factors of the members in order, if the shift of every add is 0.
        doublings: add -> int8 [M], how often one shift more of it doubles each of the factors.
    """

    members: Mapping[str, Array]
    lanes: int
    anchors: tuple[str, ...]
    factors: Array
    doublings: Mapping[str, Array]

    @cached_property
    def place(self) -> Mapping[str, int]:
        """Tensor -> its place among the members."""
        return {name: place for place, name in enumerate(self.members)}

    def octaves(self, choices: Mapping[str, AddChoice]) -> Array:
        """How often the adds' shifts double each factor, [M]."""
        result = np.zeros(len(self.members), np.int64)
        for name, doubled in self.doublings.items():
            result += choices[name].shift * doubled
        return result

    def anchor(self, net: Annotated, zeros: Mapping[str, int]) -> str | None:
        """The member with the source's own step and zero point, given all zero points."""
        # An anchor that cannot have its own zero point gets a conversion, and any step.
        return next((name for name in self.anchors if zeros[name] == net.zeros[name]), None)


@dataclass(frozen=True, eq=False)
class _Cycle:
    """Two ways in which tensors are tied, whose ratios must be equal.

    Attributes:
        tensors: the two that are tied twice.
        ratios: both, if the shift of every add is 0.
        doublings: int8 [2, adds], how often one shift more of each of the network's adds doubles
            each of them.
    """

    tensors: tuple[str, str]
    ratios: tuple[float, float]
    doublings: Array


@dataclass(frozen=True, eq=False)
class Ties:
    """All ties of a network.

    Attributes:
        tie_of: tensor -> its tie.
        adds: names of the network's adds.
        cycles: what the shifts of the adds must not contradict.
    """

    tie_of: Mapping[str, Tie]
    adds: tuple[str, ...]
    cycles: tuple[_Cycle, ...]

    @cached_property
    def distinct(self) -> tuple[Tie, ...]:
        """Every tie once, in execution order."""
        return tuple({id(tie): tie for tie in self.tie_of.values()}.values())

    def check(self, choices: Mapping[str, AddChoice]) -> None:
        """Check that adds can be executed in this way together.

        Raises:
            UnsupportedError: two tensors are tied by two different ratios.
        """
        if not self.cycles:
            return
        shifts = np.array([choices[name].shift for name in self.adds])
        for cycle in self.cycles:
            one, other = np.array(cycle.ratios) * 2.0 ** (cycle.doublings @ shifts)
            if not np.isclose(one, other, rtol=1e-6):
                first, second = cycle.tensors
                raise UnsupportedError(
                    "an add ties two tensors by two different ratios",
                    where=f"tensors '{first}' and '{second}'",
                    hint="the shift scheme cannot execute this; keep the network on the CPU",
                )


def find_ties(net: Annotated, *, per_channel: bool = True) -> Ties:
    """Return the ties of a network.

    Args:
        net: the source.
        per_channel: whether channels may have different steps.
    """
    joining = _Joining(net)
    for node in net.nodes:
        if passes(node):
            for operand, through in zip(node.inputs, lanes(net, node), strict=True):
                if len(node.inputs) == 1:
                    joining.join(operand, node.name, ratio(node), through)
                else:
                    joining.join(node.name, operand, ratio(node), through)
        elif isinstance(node.scaled, Add):
            for operand, factor in zip(node.inputs, operand_factors(node), strict=True):
                # step_out = 2**shift * factor * step_operand
                joining.join(operand, node.name, float(factor[0]), None, node.name)
    return Ties(joining.ties(per_channel), tuple(joining.adds), tuple(joining.cycles))


_MIXED: Array = np.zeros(0, np.int64)
"""Lanes of a tensor whose channels cannot be told apart; then the tie has one lane."""


@dataclass(frozen=True, eq=False)
class _Member:
    """A tensor in a group: factor without shifts, doublings int8 [adds], lanes."""

    factor: float
    doublings: Array
    lanes: Array


class _Joining:
    """Groups of tensors, which are joined one after the other."""

    def __init__(self, net: Annotated) -> None:
        self.net = net
        self.adds = {node.name: place for place, node in enumerate(net.adds)}
        self.groups: dict[str, dict[str, _Member]] = {}
        self.home: dict[str, str] = {}
        self.lanes: dict[str, int] = {}  # group -> number of its lanes
        self.cycles: list[_Cycle] = []
        none = np.zeros(len(self.adds), np.int8)
        for name in net.tensors:
            self.lanes[name] = net.channels(name)
            lanes = np.arange(self.lanes[name])
            self.groups[name], self.home[name] = {name: _Member(1.0, none, lanes)}, name

    def join(
        self, first: str, second: str, ratio: float, through: Array | None, add: str | None = None
    ) -> None:
        """Tie ``second`` to ``first``: its step is ``ratio`` times that of ``first``.

        Args:
            first, second: tensors.
            ratio: of their steps; the shift of ``add``, if any, doubles it.
            through: the channel of ``first`` for each of ``second``; see `effects.lanes`.
            add: the add that ties them.
        """
        target, other = self.home[first], self.home[second]
        one, two = self.groups[target][first], self.groups[other][second]
        doublings = one.doublings
        if add is not None:
            doublings = doublings.copy()
            doublings[self.adds[add]] += 1
        told_apart = one.lanes.size and two.lanes.size and (through is None or through.size)
        reached = one.lanes if through is None or not told_apart else one.lanes[through]
        if target == other:
            ratios = one.factor * ratio, two.factor
            both = np.stack([doublings, two.doublings])
            self.cycles.append(_Cycle((first, second), ratios, both))
            if not told_apart or not np.array_equal(reached, two.lanes):
                # A channel depends on another one of the same tie, as after a shuffle.
                self.groups[target][first] = _Member(one.factor, one.doublings, _MIXED)
            return
        into = self._into(target, other, reached, two.lanes) if told_apart else None
        moved = self.groups.pop(other)
        scale, doublings = one.factor * ratio / two.factor, doublings - two.doublings
        for name, member in moved.items():
            distinct = into is not None and member.lanes.size
            self.groups[target][name] = _Member(
                member.factor * scale,
                member.doublings + doublings,
                into[member.lanes] if distinct else _MIXED,  # type: ignore[index]
            )
            self.home[name] = target

    def _into(self, kept: str, moved: str, reached: Array, own: Array) -> Array | None:
        """Return the lane of the kept group for each lane of the moved one.

        ``reached[c]`` and ``own[c]`` are the lanes of the tensor that ties the groups.  Lanes of
        the moved group that it does not have, because it is only a part, get new numbers; ``None``
        if one lane would have to be two.
        """
        into = np.full(self.lanes[moved], -1, np.int64)
        into[own] = reached
        if not np.array_equal(into[own], reached):
            return None
        missing = into < 0
        into[missing] = self.lanes[kept] + np.arange(int(missing.sum()))
        self.lanes[kept] += int(missing.sum())
        return into

    def ties(self, per_channel: bool) -> dict[str, Tie]:
        """Return the tie of every tensor."""
        anchors: dict[str, list[str]] = {}
        for name in self.net.anchors:
            anchors.setdefault(self.home[name], []).append(name)
        result: dict[str, Tie] = {}
        for group, members in self.groups.items():
            tie = self._tie(members, tuple(anchors.get(group, ())), per_channel)
            result |= dict.fromkeys(members, tie)
        return result

    def _tie(
        self, members: Mapping[str, _Member], anchors: tuple[str, ...], per_channel: bool
    ) -> Tie:
        net = self.net
        border = bool(anchors) or any(name in net.source_quantized for name in members)
        # Ternary weights cannot absorb scales of their input channels.
        read = (node for name in members for node in net.graph.read_by(name))
        border = border or any(net.core(node) is not None for node in read)
        producers = (net.producer(name) for name in members)
        border = border or any(node is not None and net.needs_one_step(node) for node in producers)
        mixed = any(member.lanes.size == 0 for member in members.values())
        if per_channel and not border and not mixed:
            lanes = {name: member.lanes for name, member in members.items()}
            count = max(int(lane.max()) for lane in lanes.values()) + 1
        else:
            lanes = {name: np.zeros(net.channels(name), np.int64) for name in members}
            count = 1
        doublings = np.stack([member.doublings for member in members.values()], axis=1)
        return Tie(
            members=lanes,
            lanes=count,
            anchors=anchors,
            factors=np.array([member.factor for member in members.values()]),
            doublings={n: doublings[self.adds[n]] for n in members if n in self.adds},
        )
