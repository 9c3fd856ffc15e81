"""Tensors that share a scale, and the zero points that each may have.

The digital core computes ``(sum w x + b) >> m`` and ``(a + b) >> s``.  A layer with weights leaves
the scales of its input and output free, because its weights absorb any ratio.  An add ties its
operands and its output by powers of two; pools and reshapes pass the scale of their input through.
Tensors tied in this way form a *tie*; the steps of all its members are derived from one number per
lane, the tie's unit.  A lane is a channel if every layer around can tell the channels apart, else
the whole tensor.

Zero points: the core pads with 0, so the input of a padded convolution has zero point 0.  All other
consumers accept any, because it goes into the bias.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import Array
from htvm.quantization.graph import Net
from htvm.quantization.operators import INT8, AddOperator
from htvm.quantization.products import ProductOperator

__all__ = [
    "AddChoice",
    "Tie",
    "add_choices",
    "anchors",
    "ends",
    "find_ties",
    "must_be_symmetric",
    "zero_points",
]


@dataclass(frozen=True)
class AddChoice:
    """How an add is executed: ``(a + b) >> shift`` with these zero points."""

    shift: int
    operands: tuple[int, int]
    output: int


@dataclass(frozen=True, eq=False)
class Tie:
    """Tensors whose steps are derived from common units.

    Attributes:
        members: tensor -> (factor, lanes): step of channel c in steps of the source tensor =
            ``unit[lanes[c]] * factor``.
        lanes: number of lanes.
        anchor: tensor with the source's own step and zero point, or ``None``.
    """

    members: Mapping[str, tuple[float, Array]]
    lanes: int
    anchor: str | None


def ends(net: Net) -> tuple[str, ...]:
    """Return where results are compared: computed outputs, and the inputs of softmaxes."""
    names = [name for op in net.operators if op.ends for name in op.inputs]
    for name in net.outputs:
        op = net.producer(name)
        if op is not None and not op.ends:
            names.append(name)
    return tuple(dict.fromkeys(names))


def anchors(net: Net) -> tuple[str, ...]:
    """Return tensors needed in the source's own quantization.

    They leave the network or a kept operator reads them; those that are given have it anyway.
    """
    names = [name for op in net.operators if op.kept for name in op.inputs]
    return tuple(name for name in dict.fromkeys((*ends(net), *names)) if name not in net.given)


def must_be_symmetric(net: Net, tensor: str) -> bool:
    """Whether a consumer needs zero point 0, directly or through pools and reshapes.

    A padded convolution does, and so does a ternary core, whose converters see the sums directly;
    an add has alternatives (see `add_choices`), but only if it is the tensor's only reader.
    Concatenated tensors share a zero point, which is 0.
    """
    for op in net.consumers(tensor):
        if op.wants_symmetric or (op.passes and must_be_symmetric(net, op.name)):
            return True
    return False


# ------------------------------------------------------------------------------ zero points


def zero_points(net: Net, choices: Mapping[str, AddChoice]) -> dict[str, int]:
    """Return the zero point of every tensor, given how the adds are executed.

    A rectified tensor that is not padded has -128: the ReLU becomes saturation, and all 256 values
    are used instead of 128.
    """
    result: dict[str, int] = {}
    for name in net.tensors:
        op = net.producer(name)
        if op is not None and op.passes:
            result[name] = result[op.inputs[0]]
        elif must_be_symmetric(net, name):
            result[name] = 0
        elif name in anchors(net) or not net.rectified(name):
            result[name] = net.zero_point(name)
        else:
            result[name] = -128
    for add in net.adds:
        if add.name in choices:
            choice = choices[add.name]
            for operand, zero in zip(add.inputs, choice.operands, strict=True):
                result[operand] = zero
            _hand_on(net, add.name, choice.output, result)
    return result


def _hand_on(net: Net, tensor: str, zero: int, result: dict[str, int]) -> None:
    result[tensor] = zero
    for op in net.consumers(tensor):
        if op.passes:
            _hand_on(net, op.name, zero, result)


def add_choices(net: Net, op: AddOperator) -> tuple[AddChoice, ...]:
    """Return the ways to execute an add, the simplest first.

    With ``(a + b) >> s`` the zero points satisfy ``za + zb = zo * 2**s``; an additional half step
    on one operand makes the floor round, which requires an operand that only this add reads.
    """
    free = not must_be_symmetric(net, op.name)
    if free and op.name in anchors(net):
        # If the source's zero point is not available, a conversion follows.
        direct = _choices_for(net, op, (net.zero_point(op.name),))
        return direct or _choices_for(net, op, (0,))
    if free:
        return _choices_for(net, op, (0, -128) if op.rectifies else (0, -32, 32))
    return _choices_for(net, op, (0,))


def _choices_for(net: Net, op: AddOperator, outputs: tuple[int, ...]) -> tuple[AddChoice, ...]:
    found: dict[AddChoice, None] = {}
    # If the output cannot be clipped to fewer bits, operands that already have as few are halved.
    shifts = (1,) if net.narrow(op.name) and not op.clips_freely else (0, 1)
    for shift in shifts:
        half = (1 << shift) >> 1
        for output in outputs:
            total = output << shift
            for first, second in _splits(total, half):
                if _may_have(net, op, 0, first) and _may_have(net, op, 1, second):
                    found[AddChoice(shift, (first, second), output)] = None
    return tuple(found)


def _splits(total: int, half: int) -> tuple[tuple[int, int], ...]:
    near, far = total // 2, total - total // 2
    pairs = [
        (total, half), (half, total), (near + half, far), (near, far + half), (total, 0),
        (near - 32, far + half + 32), (near + half + 32, far - 32),
    ]  # fmt: skip
    return tuple((a, b) for a, b in pairs if -128 <= a <= 127 and -128 <= b <= 127)


def _may_have(net: Net, op: AddOperator, operand: int, zero: int) -> bool:
    name = op.inputs[operand]
    if zero == 0:
        return True
    if zero != INT8[0] and net.rectified(name):
        return False  # only at these two does saturation, or a core's ReLU, rectify
    producer = net.producer(name)
    # A zero point that an add or the network itself requires cannot be changed.
    movable = isinstance(producer, ProductOperator)
    return movable and len(net.consumers(name)) == 1 and name not in net.outputs


# ------------------------------------------------------------------------------ ties


def find_ties(
    net: Net, choices: Mapping[str, AddChoice], *, per_channel: bool = True
) -> dict[str, Tie]:
    """Return the tie of every tensor, given how the adds are executed.

    Args:
        net: the source.
        choices: how each add is executed.
        per_channel: whether channels may have different steps.
    """
    groups: dict[str, dict[str, tuple[float, Array]]] = {}
    home: dict[str, str] = {}
    for name in net.tensors:
        lanes = np.arange(net.channels(name))
        groups[name], home[name] = {name: (1.0, lanes)}, name
    for op in net.operators:
        if op.passes:
            for operand, lanes in zip(op.inputs, op.lanes(net.shapes(op)), strict=True):
                if len(op.inputs) == 1:
                    _join(groups, home, operand, op.name, op.ratio(), lanes)
                else:
                    _join(groups, home, op.name, operand, op.ratio(), lanes)
        elif isinstance(op, AddOperator):
            up = 2.0 ** choices[op.name].shift
            for operand, factor in zip(op.inputs, op.factors(), strict=True):
                # step_out = up * factor * step_operand
                _join(groups, home, operand, op.name, up * float(factor[0]), None)
    zeros = zero_points(net, choices)
    result: dict[str, Tie] = {}
    for members in groups.values():
        tie = _finish(net, members, per_channel, zeros)
        result.update(dict.fromkeys(members, tie))
    return result


def _join(
    groups: dict[str, dict[str, tuple[float, Array]]],
    home: dict[str, str],
    first: str,
    second: str,
    ratio: float,
    through: Array | None,
) -> None:
    """Tie ``second`` to ``first``: its step is ``ratio`` times the step of ``first``."""
    target, other = home[first], home[second]
    factor, lanes = groups[target][first]
    own_factor, own_lanes = groups[other][second]
    told_apart = lanes.size and own_lanes.size and (through is None or through.size)
    reached = lanes if through is None or not told_apart else lanes[through]
    if target == other:
        if not np.isclose(factor * ratio, own_factor, rtol=1e-6):
            raise UnsupportedError(
                "an add ties two tensors by two different ratios",
                where=f"tensors '{first}' and '{second}'",
                hint="the shift scheme cannot execute this; keep the network on the CPU",
            )
        if not told_apart or not np.array_equal(reached, own_lanes):
            # A channel depends on another one of the same tie, as after a shuffle.
            groups[target][first] = (factor, _MIXED)
        return
    moved = groups.pop(other)
    scale = factor * ratio / own_factor
    into = _into(groups[target], moved, reached, own_lanes) if told_apart else None
    for name, (value, value_lanes) in moved.items():
        distinct = into is not None and value_lanes.size
        groups[target][name] = (value * scale, into[value_lanes] if distinct else _MIXED)  # type: ignore[index]
        home[name] = target


_MIXED: Array = np.zeros(0, np.int64)
"""Lanes of a tensor whose channels cannot be told apart; then the tie has one lane."""


def _into(
    kept: Mapping[str, tuple[float, Array]],
    moved: Mapping[str, tuple[float, Array]],
    reached: Array,
    own: Array,
) -> Array | None:
    """Return the lane of the kept group for each lane of the moved one.

    ``reached[c]`` and ``own[c]`` are the lanes of the tensor that ties the groups.  Lanes of the
    moved group that it does not have, because it is only a part, get new numbers; ``None`` if one
    lane would have to be two.
    """
    last = max((int(lanes.max()) for _, lanes in moved.values() if lanes.size), default=-1)
    into = np.full(last + 1, -1, np.int64)
    into[own] = reached
    if not np.array_equal(into[own], reached):
        return None
    fresh = max((int(lanes.max()) for _, lanes in kept.values() if lanes.size), default=-1) + 1
    missing = into < 0
    into[missing] = fresh + np.arange(int(missing.sum()))
    return into


def _finish(
    net: Net,
    members: dict[str, tuple[float, Array]],
    per_channel: bool,
    zeros: Mapping[str, int],
) -> Tie:
    # An anchor that cannot have its own zero point gets a conversion, and any step.
    anchored = [name for name in anchors(net) if name in members]
    anchor = next((name for name in anchored if zeros[name] == net.zero_point(name)), None)
    border = bool(anchored) or any(name in net.given for name in members)
    # Ternary weights cannot absorb scales of their input channels.
    border = border or any(op.core is not None for name in members for op in net.consumers(name))
    producers = (net.producer(name) for name in members)
    border = border or any(op is not None and op.needs_one_step for op in producers)
    mixed = any(lanes.size == 0 for _, lanes in members.values())
    if per_channel and not border and not mixed:
        lanes = max(int(lane.max()) for _, lane in members.values()) + 1
        return Tie(members, lanes, None)
    one = {
        name: (factor, np.zeros(net.channels(name), np.int64))
        for name, (factor, _) in members.items()
    }
    if anchor is not None:
        scale = one[anchor][0]
        one = {name: (factor / scale, lanes) for name, (factor, lanes) in one.items()}
    return Tie(one, 1, anchor)
