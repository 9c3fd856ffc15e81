"""Choosing the operands of a kernel that are copied to the memory close to the cores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from byoc_dory.memory.arena import ALIGNMENT
from byoc_dory.soc.base import round_up
from htvm.aot.lower import Parameter


@dataclass(frozen=True)
class StagedOperand:
    """The place of an operand while the kernel runs.

    Attributes:
        parameter: parameter of the operand.
        offset: offset in the near memory, in bytes.
        bytes: size of the operand in bytes.
        role: ``"in"``: copied there before; ``"out"``: copied back after; ``"workspace"``: not
            copied.
    """

    parameter: Parameter
    offset: int
    bytes: int
    role: str


def stage(
    parameters: Sequence[Parameter],
    workspaces: int,
    traffic: Mapping[str, int],
    near_bytes: int,
) -> tuple[StagedOperand, ...]:
    """Choose the operands to copy: those with the most accesses per byte, as far as they fit.

    Args:
        parameters: parameters of the kernel, the last ``workspaces`` of them workspaces.
        workspaces: number of workspaces.
        traffic: number of accesses to each, by name; operands with less than one access per four
            bytes are not worth moving.
        near_bytes: bytes available.
    """
    sizes = {
        parameter.name: math.prod(parameter.shape) * np.dtype(parameter.dtype).itemsize
        for parameter in parameters
    }
    order = sorted(
        range(len(parameters)),
        key=lambda i: -traffic.get(parameters[i].name, 0) / sizes[parameters[i].name],
    )
    chosen, used = {}, 0
    for index in order:
        parameter = parameters[index]
        size = sizes[parameter.name]
        if used + size > near_bytes or traffic.get(parameter.name, 0) * 4 < size:
            continue
        role = "in" if parameter.const else "out"
        if index >= len(parameters) - workspaces:
            role = "workspace"
        chosen[index] = StagedOperand(parameter, used, size, role)
        used += round_up(size, ALIGNMENT)
    return tuple(chosen[index] for index in sorted(chosen))
