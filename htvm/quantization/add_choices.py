"""How adds are executed, and the zero points of all tensors that follow.

The core pads with 0, so the input of a padded convolution has zero point 0.  All other consumers
accept any, because it goes into the bias.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from byoc_dory.layers import INT8, Weighted
from htvm.quantization.annotated import Annotated
from htvm.quantization.kinds import passes
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
    waiting = [node.name]
    while waiting:
        name = waiting.pop()
        result[name] = choice.output
        waiting += [reader.name for reader in net.graph.read_by(name) if passes(reader)]
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
    found: dict[AddChoice, None] = {}
    # If the output cannot be clipped to fewer bits, operands that already have as few are halved.
    shifts = (1,) if net.narrow(node.name) and not net.clips_freely(node) else (0, 1)
    for shift in shifts:
        half = (1 << shift) >> 1
        for output in outputs:
            total = output << shift
            for first, second in _splits(total, half):
                if _may_have(net, node, 0, first) and _may_have(net, node, 1, second):
                    found[AddChoice(shift, (first, second), output)] = None
    return tuple(found)


def _splits(total: int, half: int) -> tuple[tuple[int, int], ...]:
    near, far = total // 2, total - total // 2
    pairs = [
        (total, half), (half, total), (near + half, far), (near, far + half), (total, 0),
        (near - 32, far + half + 32), (near + half + 32, far - 32),
    ]  # fmt: skip
    return tuple((a, b) for a, b in pairs if -128 <= a <= 127 and -128 <= b <= 127)


def _may_have(net: Annotated, node: Node, operand: int, zero: int) -> bool:
    name = node.inputs[operand]
    if zero == 0:
        return True
    if zero != INT8[0] and net.rectified(name):
        return False  # only at these two does saturation, or a core's ReLU, rectify
    producer = net.producer(name)
    # A zero point that an add or the network itself requires cannot be changed.
    movable = producer is not None and isinstance(producer.scaled, Weighted)
    return movable and len(net.graph.read_by(name)) == 1 and not net.graph.is_result(name)
