"""Kinds of operators, as retargeting tells them apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import Weighted
from htvm.quantization.islands import SOFTMAXES, Island
from patterns.op import Range, Scale
from patterns.ops.convert import Convert
from patterns.ops.tflite.averages import AveragePool

if TYPE_CHECKING:
    from patterns.reading.node import Node


def is_kept(node: Node) -> bool:
    """Whether it computes on in the source's own quantization, on the host."""
    return isinstance(node.op, Island)


def is_end(node: Node) -> bool:
    """Whether it is known as the last operator of a network only; it is not computed here."""
    return isinstance(node.op, SOFTMAXES)


def is_padded(node: Node) -> bool:
    """Whether it is a layer with weights that reads outside its input."""
    return isinstance(node.scaled, Weighted) and any(node.scaled.pad)


def passes(node: Node) -> bool:
    """Whether the output has the scale and zero point of the input."""
    return node.op.scale is Scale.PASSES


def computes(node: Node) -> bool:
    """Whether it rounds and clips numbers of its own, which a report measures."""
    return node.scaled is not None or isinstance(node.op, AveragePool)


def range_of(node: Node, inputs: Sequence[Range]) -> Range:
    """Return inclusive bounds of the output, given those of each input.

    Those of layers are their clips: weights are still to be rounded.
    """
    if node.scaled is not None:
        return node.scaled.clip
    if isinstance(node.op, Convert):  # which is monotonic
        low, high = node.op.compute([np.array(inputs[0])])
        return int(low), int(high)
    return node.op.range(inputs)
