"""What the templates say of a program's tensors: inputs and outputs, and the parts of its arena."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from byoc_dory.errors import DefectError
from byoc_dory.memory.arena import ALIGNMENT
from htvm.aot.literals import c_float, c_type, shape_text
from htvm.aot.steps import parameter_types

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from htvm.aot.program import Program
    from htvm.model import TensorInfo

_CONVERTED = ("int8", "uint8", "int16", "uint16")
"""Types of tensors that functions in the header convert: float32 has all of their numbers."""


def described_tensors(program: Program) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return inputs and outputs as the templates need them."""
    groups = []
    places = {f"input_{number}": f"{address:#010x}u" for number, address in program.places}
    overwritten = {f"input_{number}": buffer for number, buffer in program.overwritten}
    row = 0 if program.streamed is None else math.prod(program.l2_inputs[0].shape)
    for kind, infos in (("input", program.inputs), ("output", program.outputs)):
        groups.append(
            [
                {
                    "parameter": f"{kind}_{index}",
                    "name": info.name,
                    "shape": shape_text(info.shape),
                    "sizes": ", ".join(str(size) for size in info.shape),
                    "axes": len(info.shape),
                    "elements": math.prod(info.shape),
                    "dtype": info.dtype,
                    "type": c_type(info.dtype),
                    "known": _known(info),
                    # Address of its place outside of L2; empty without one.
                    "place": places.get(f"{kind}_{index}", ""),
                    # Elements of a row, if it comes row by row.
                    "row": row if kind == "input" else 0,
                    # The buffer of the arena where it lies; empty without one.
                    "buffer": overwritten.get(f"{kind}_{index}", ""),
                }
                for index, info in enumerate(infos)
            ]
        )
    return groups[0], groups[1]


def _known(info: TensorInfo) -> dict[str, Any]:
    """Return what is known of a tensor's axes and numbers; what is not is ``None``."""
    known: dict[str, Any] = {"layout": info.layout, "scale": None, "converted": False}
    if info.scale is None:
        return known
    zero_point = info.zero_point or 0
    steps = f"(q {'-' if zero_point > 0 else '+'} {abs(zero_point)})" if zero_point else "q"
    known |= {
        "scale": c_float(info.scale),
        "zero_point": zero_point,
        "formula": f"real value = {np.float32(info.scale)!s} * {steps}",
        "converted": info.dtype in _CONVERTED,
    }
    if known["converted"]:
        limits = np.iinfo(info.dtype)
        known |= {
            "even": info.halves_to_even,
            # The real numbers of the type's ends, in steps from zero.
            "low": int(limits.min) - zero_point,
            "high": int(limits.max) - zero_point,
        }
    return known


# Member and bytes of each type of elements.
_MEMBERS = {
    "int8_t": ("i8", 1),
    "uint8_t": ("u8", 1),
    "int16_t": ("i16", 2),
    "uint16_t": ("u16", 2),
    "int32_t": ("i32", 4),
    "uint32_t": ("u32", 4),
    "int64_t": ("i64", 8),
    "uint64_t": ("u64", 8),
    "float": ("f32", 4),
    "double": ("f64", 8),
    "bool": ("b8", 1),
}


def passed_types(program: Program) -> list[tuple[str, ...]]:
    """Return the C types of the pointers that each step passes; a copy takes any."""
    known = {
        re.split(r"\s*\(", prototype, maxsplit=1)[0].split()[-1].lstrip("*"): prototype
        for prototype in program.prototypes
    }
    return [
        ("const void *", "void *")
        if step.kind == "copy"
        else parameter_types(known[step.function], values=len(step.values))
        for step in program.steps
    ]


class ArenaType:
    """The C type of the arena: a union of arrays, one for each type of elements in it.

    An object that is declared as bytes must not be accessed as words (C11 6.5p7).  In a union whose
    members are as long as the union itself, every buffer is a part of the array of its own type, so
    each access has the type that the object is declared with, and a store leaves no byte of another
    buffer unspecified (6.2.6.1p7).

    Raises:
        DefectError: two steps access a buffer as different types, of which none is of characters.
    """

    def __init__(self, program: Program, passed: Sequence[tuple[str, ...]]) -> None:
        self._bytes = program.plan.peak or ALIGNMENT
        self._offsets = dict(program.plan.offsets)
        accessed: dict[str, set[str]] = {use.name: set() for use in program.buffers}
        for step, types in zip(program.steps, passed, strict=True):
            for operand, parameter in zip(step.args, types, strict=True):
                if operand.kind == "buffer":
                    accessed[operand.name].add(parameter.removeprefix("const ").rstrip(" *"))
        self.elements: Mapping[str, str] = {
            name: _element(name, found - {"void"}) for name, found in accessed.items()
        }

    @property
    def members(self) -> list[dict[str, Any]]:
        """The union's members: name, type and number of elements; each has all of its bytes."""
        used = [element for element in _MEMBERS if element in self.elements.values()]
        return [
            {"name": _MEMBERS[element][0], "type": element, "elements": self._bytes // size}
            for element, size in ((each, _MEMBERS[each][1]) for each in used or ["int8_t"])
        ]

    def place(self, name: str) -> dict[str, Any]:
        """Return the type of a buffer's elements, the first of them, and its offset in bytes."""
        member, size = _MEMBERS[self.elements[name]]
        offset = self._offsets[name]
        start = f"{member}[{offset // size}]"
        return {"type": self.elements[name], "start": start, "offset": offset}


def _element(name: str, types: set[str]) -> str:
    """Return the type of a buffer's elements; characters may access those of any other type."""
    wide = sorted(types - {"int8_t", "uint8_t"})
    # The signed type of a width may be accessed as the unsigned one, and the other way round.
    if len({element.removeprefix("u") for element in wide}) > 1:
        raise DefectError(
            f"its elements are accessed as {' and as '.join(wide)}", where=f"buffer '{name}'"
        )
    return wide[0] if wide else min(types, default="uint8_t")
