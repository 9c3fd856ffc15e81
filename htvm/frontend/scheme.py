"""The requantization that the layers of a network use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from byoc_dory.layers import AnalogRequant, MulShift, OnnxRequant, Shift, TfliteRequant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patterns.reading.read import Node

__all__ = ["scheme_of"]


def scheme_of(nodes: Sequence[Node]) -> str:
    """The requantization that the layers use: one of the schemes of `Model`, or ``"mixed"``."""
    names = {
        Shift: "shift",
        MulShift: "mul_shift",
        TfliteRequant: "tflite",
        OnnxRequant: "onnx",
        AnalogRequant: "ternary",
    }
    found = {names[type(node.scaled.requant)] for node in nodes if node.scaled is not None}
    if len(found) > 1:
        return "mixed"
    return found.pop() if found else "tflite"
