"""How adds are executed, and the zero points of all tensors that follow.

The core pads with 0, so the input of a padded convolution has zero point 0.  All other consumers
accept any, because it goes into the bias.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from htvm.quantization.graph import Net
from htvm.quantization.operators import INT8, AddOperator
from htvm.quantization.products import ProductOperator

__all__ = ["AddChoice", "add_choices", "zero_points", "zero_points_of"]


@dataclass(frozen=True)
class AddChoice:
    """How an add is executed: ``(a + b) >> shift`` with these zero points."""

    shift: int
    operands: tuple[int, int]
    output: int


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
        elif name in net.symmetric:
            result[name] = 0
        elif name in net.anchors or not net.rectified(name):
            result[name] = net.zero_point(name)
        else:
            result[name] = -128
    for add in net.adds:
        if add.name in choices:
            result |= zero_points_of(net, add, choices[add.name])
    return result


def zero_points_of(net: Net, op: AddOperator, choice: AddChoice) -> dict[str, int]:
    """Return the zero points that an add decides: of operands, output, and what passes it on.

    No two adds decide about one tensor differently: an operand that others read has zero point 0.
    """
    result = dict(zip(op.inputs, choice.operands, strict=True))
    waiting = [op.name]
    while waiting:
        name = waiting.pop()
        result[name] = choice.output
        waiting += [reader.name for reader in net.consumers(name) if reader.passes]
    return result


def add_choices(net: Net, op: AddOperator) -> tuple[AddChoice, ...]:
    """Return the ways to execute an add, the simplest first.

    With ``(a + b) >> s`` the zero points satisfy ``za + zb = zo * 2**s``; an additional half step
    on one operand makes the floor round, which requires an operand that only this add reads.
    """
    free = op.name not in net.symmetric
    if free and op.name in net.anchors:
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
