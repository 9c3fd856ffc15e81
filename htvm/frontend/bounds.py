"""Bounds on what a network asks of the stages after reading.

Stages have no time limits, because a build must not depend on the speed of a machine.  Instead each
is linear in what is bounded here, or counts its own steps (solvers, planners).  The bounds are far
above anything that runs on a 32-bit core: ResNet-50 has 2^32 multiply-accumulates.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import ModelError, UnsupportedError

if TYPE_CHECKING:
    from byoc_dory.soc.base import Target
    from htvm.frontend.operators import Activation, Applied
    from patterns.reading.node import Node

MOST_BYTES = 2**32
"""Bytes of all tensors that one operator reads and writes: what 32-bit addresses reach."""

MOST_MACS = 2**36
"""Multiply-accumulates of a network: about a minute of one core of a host."""

MOST_OPERATORS = 10_000
"""Operators of a network."""

MOST_OPERANDS = 2 * MOST_OPERATORS
"""Tensors that the operators of a network read, together."""

MOST_OFFERED = 2_000
"""Operators of a network that accelerators may take layers of: TVM groups those by sets of all that
is before each operator, which take memory with the square of their number (7 GB for this many)."""


def check_sizes(operators: Sequence[tuple[Applied, Activation]]) -> None:
    """Check operators and their results before anything of their size is created.

    Raises:
        UnsupportedError: there are too many operators, or they read too many tensors, or one has
            tensors that 32-bit addresses cannot reach.
        ModelError: a tensor has no elements.
    """
    if len(operators) > MOST_OPERATORS:
        raise UnsupportedError(
            f"{len(operators):,} operators, the first beyond {MOST_OPERATORS:,} is this one",
            where=operators[MOST_OPERATORS][0].where,
            hint="export a smaller network, or parts of it",
        )
    operands = 0
    for operator, result in operators:
        operands += len(operator.inputs)
        if operands > MOST_OPERANDS:
            raise UnsupportedError(
                f"the operators up to this one read more than {MOST_OPERANDS:,} tensors",
                where=operator.where,
                hint="export a smaller network, or parts of it",
            )
        size = 0
        for tensor in (*operator.inputs, result):
            elements = math.prod(tensor.shape)
            size += elements * np.dtype(tensor.dtype).itemsize
            if elements < 1:
                raise ModelError(
                    f"a tensor of shape {list(tensor.shape)}, which is empty",
                    where=operator.where,
                    hint="check the shapes in the file",
                )
        if size > MOST_BYTES:
            raise UnsupportedError(
                f"tensors of {size:,} B together",
                where=operator.where,
                hint=f"32-bit addresses reach {MOST_BYTES:,} B; check the shapes in the file",
            )


def check_offered(operators: Collection[str], target: Target) -> None:
    """Check how many operators a network has for a target with accelerators.

    Raises:
        UnsupportedError: they are more than `MOST_OFFERED`.
    """
    if target.accelerators and len(operators) > MOST_OFFERED:
        raise UnsupportedError(
            f"{len(operators):,} operators; targets with accelerators take {MOST_OFFERED:,}",
            where=f"target '{target.name}'",
            hint=f"build parts of it, or all of it for '{target.soc.name}.cpu'",
        )


def check_work(nodes: Sequence[Node]) -> None:
    """Check how many multiply-accumulates the layers of a network take.

    Raises:
        UnsupportedError: they are too many; the message names the layer with most.
    """
    macs = {node.name: node.layer.macs for node in nodes if node.layer is not None}
    total = sum(macs.values())
    if total > MOST_MACS:
        largest = max(macs, key=lambda name: macs[name])
        raise UnsupportedError(
            f"{total:,} multiply-accumulates, {macs[largest]:,} of them here",
            where=f"operator '{largest}'",
            hint=f"at most {MOST_MACS:,}: use a smaller input or fewer channels",
        )
