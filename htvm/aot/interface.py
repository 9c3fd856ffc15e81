"""What the templates say of a program's inputs and outputs: types, shapes, quantization."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from htvm.aot.literals import c_float, c_type
from htvm.model import TensorInfo

if TYPE_CHECKING:
    from htvm.aot.program import Program
    from htvm.aot.steps import TensorLike

_CONVERTED = ("int8", "uint8", "int16", "uint16")
"""Types of tensors that functions in the header convert: float32 has all of their numbers."""


def described_tensors(program: Program) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return inputs and outputs as the templates need them."""
    groups = []
    places = {f"input_{number}": f"{address:#010x}u" for number, address in program.places}
    for kind, infos in (("input", program.inputs), ("output", program.outputs)):
        groups.append(
            [
                {
                    "parameter": f"{kind}_{index}",
                    "name": info.name,
                    "shape": _shape(tuple(info.shape)),
                    "sizes": ", ".join(str(size) for size in info.shape),
                    "axes": len(info.shape),
                    "elements": math.prod(info.shape),
                    "dtype": info.dtype,
                    "type": c_type(info.dtype),
                    "known": _known(info),
                    # Address of its place outside of L2; empty without one.
                    "place": places.get(f"{kind}_{index}", ""),
                }
                for index, info in enumerate(infos)
            ]
        )
    return groups[0], groups[1]


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(str(size) for size in shape)


def _known(info: TensorLike) -> dict[str, Any]:
    """Return what is known of a tensor's axes and numbers; what is not is ``None``."""
    if not isinstance(info, TensorInfo):
        return {"layout": None, "scale": None, "converted": False}
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
