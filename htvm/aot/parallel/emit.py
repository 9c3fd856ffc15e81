"""C for a kernel that several cores run, on top of ``htvm_parallel.h``; places of its operands."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.definition import Definition
from byoc_dory.emit.text import part_name
from byoc_dory.memory.arena import ALIGNMENT
from byoc_dory.soc.base import round_up
from htvm.aot.codegen_c import About, body_of, c_type_of, definition
from htvm.aot.entry import render
from htvm.aot.parallel.phases import Cores, KernelPart, Phases, cut

if TYPE_CHECKING:
    from htvm.aot.lower import Parameter, PointerFunc


@dataclass(frozen=True)
class SharedKernel:
    """A kernel for several cores.

    Attributes:
        definition: needs `htvm.aot.codegen_c.PARALLEL_HEADER`.
        parameters: parameters of the function, workspaces last.
        workspaces: bytes of the workspaces that the caller provides.
        note: how it is executed, in a few words.
    """

    definition: Definition
    parameters: tuple[Parameter, ...]
    workspaces: tuple[int, ...]
    note: str


def share(lowered: PointerFunc, symbol: str, about: About, cores: Cores) -> SharedKernel | None:
    """Print a lowered kernel for several cores; return None if it would not gain from them.

    Args:
        lowered: function returned by `htvm.aot.lower.lower`.
        symbol: name of the function.
        about: for the comment before the function.
        cores: the available cores.
    """
    phases = cut(lowered, cores)
    if phases is None:
        return None
    lowered, own = _with_own(lowered, phases.private, cores.count)
    places = stage(lowered.parameters, len(lowered.workspaces), phases.traffic, cores.near_bytes)
    if not places and not any(part.counts for part in phases.parts):
        return None
    near = {place.parameter.name for place in places if place.role == "workspace"}
    kept = tuple(parameter for parameter in lowered.parameters if parameter.name not in near)
    spaces = zip(
        lowered.parameters[len(lowered.parameters) - len(lowered.workspaces) :],
        lowered.workspaces,
        strict=True,
    )
    note = _note(phases, places, len(lowered.parameters))
    fields = _fields(lowered, phases, places, own, symbol)
    body = render("parallel.c.jinja", **fields, symbol="${symbol}")
    about = replace(about, lines=(*about.lines, note))
    workspaces = tuple(size for parameter, size in spaces if parameter.name not in near)
    return SharedKernel(definition(about, kept, body), kept, workspaces, note)


def _with_own(
    lowered: PointerFunc, private: Collection[str], cores: int
) -> tuple[PointerFunc, dict[str, int]]:
    """Return a function whose private workspaces have room for all cores, and the elements from a
    core's to the next one's, by name."""
    own: dict[str, int] = {}
    parameters, spaces = list(lowered.parameters), list(lowered.workspaces)
    first = len(parameters) - len(spaces)
    for at, parameter in enumerate(parameters):
        if parameter.name in private:
            size = round_up(spaces[at - first], ALIGNMENT)
            own[parameter.name] = size // np.dtype(parameter.dtype).itemsize
            spaces[at - first] = cores * size
            parameters[at] = replace(parameter, shape=(cores * own[parameter.name],))
    return replace(lowered, parameters=tuple(parameters), workspaces=tuple(spaces)), own


def _fields(
    lowered: PointerFunc,
    phases: Phases,
    places: tuple[StagedOperand, ...],
    own: Mapping[str, int],
    symbol: str,
) -> dict[str, object]:
    offsets = {place.parameter.name: place.offset for place in places}
    operands = {
        parameter.name: {
            "name": parameter.name,
            "type": c_type_of(parameter),
            "const": "const " if parameter.const else "",
            "offset": offsets.get(parameter.name),
            "own": own.get(parameter.name),
        }
        for parameter in (*lowered.parameters, *phases.locals)
    }
    return {
        "operands": list(operands.values()),
        "parts": [
            {
                "operands": [operands[name] for name in part.operands],
                "counts": part.counts,
                "name": part_name("${symbol}", number),
                "body": _inner(part, part_name(symbol, number)),
            }
            for number, part in enumerate(phases.parts)
        ],
        "locals": [
            {"name": local.name, "type": c_type_of(local), "elements": local.shape[0]}
            for local in phases.locals
        ],
        "copies": [
            {"name": place.parameter.name, "bytes": place.bytes, "role": place.role}
            for place in places
        ],
    }


def _inner(part: KernelPart, symbol: str) -> str:
    """Return the statements of a part, without the braces around them."""
    text = body_of(part.func.with_attr("global_symbol", symbol), symbol)
    return text.removeprefix("{\n").removesuffix("}\n")


def _note(phases: Phases, places: tuple[StagedOperand, ...], operands: int) -> str:
    shared = [count for part in phases.parts for count in part.counts]
    if not shared:
        text = "on one core"
    else:
        text = f"{' + '.join(str(count) for count in shared)} iterations shared by the cores"
        if len(phases.parts) > 1:
            text += f" in {len(phases.parts)} parts"
    if not places:
        return f"{text}; operands where they are"
    used = sum(place.bytes for place in places)
    which = (
        "all operands"
        if len(places) == operands
        else ", ".join(place.parameter.name for place in places)
    )
    return f"{text}; {which} in memory close to them ({used} B)"


# ------------------------------------------------------------------------------ operands


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
