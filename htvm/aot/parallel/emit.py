"""C for a kernel that several cores run, on top of ``htvm_parallel.h``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from byoc_dory.definition import Definition
from byoc_dory.emit.text import part_name
from htvm.aot.codegen_c import About, body_of, c_type_of, definition
from htvm.aot.entry import render
from htvm.aot.parallel.phases import KernelPart, Phases, cut
from htvm.aot.parallel.staging import StagedOperand, stage

if TYPE_CHECKING:
    from htvm.aot.lower import Parameter, PointerFunc
    from htvm.aot.parallel.cores import Cores


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
    fields = _fields(lowered, phases, places, symbol)
    body = render("parallel.c.jinja", **fields, symbol="${symbol}")
    about = replace(about, lines=(*about.lines, note))
    workspaces = tuple(size for parameter, size in spaces if parameter.name not in near)
    return SharedKernel(definition(about, kept, body), kept, workspaces, note)


def _fields(
    lowered: PointerFunc, phases: Phases, places: tuple[StagedOperand, ...], symbol: str
) -> dict[str, object]:
    offsets = {place.parameter.name: place.offset for place in places}
    operands = {
        parameter.name: {
            "name": parameter.name,
            "type": c_type_of(parameter),
            "const": "const " if parameter.const else "",
            "offset": offsets.get(parameter.name),
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
