"""`Node`: an operator of the integer form as it is read, without the compiler's IR."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from byoc_dory.layers import Layer, Requant

__all__ = ["Attribute", "Node"]

_SCALED = ("conv2d", "depthwise", "dense", "add")

Attribute: TypeAlias = "int | str | tuple[int, ...] | Requant"


@dataclass(frozen=True, eq=False)
class Node:
    """An operator of the integer form.

    Attributes:
        name: unique in the module; also the name of the tensor it computes.
        kind: ``conv2d``, ``depthwise``, ``dense``, ``add``, ``convert``, ``average_pool``,
            ``max_pool``, ``softmax``, ``reshape``, ``pad``, ``linear`` (a product with a constant
            matrix, of several rows), ``conv2d_sums`` and ``linear_sums`` (without requantization:
            int32), or what another file of this package lists.
        inputs: names of the tensors it reads: inputs of the model or names of other nodes.
        output: name of the tensor it computes, equal to ``name``.
        input_shapes, output_shape: in the source's layout, batch included, in elements.
        input_dtypes, output_dtype: numpy names of the element types.
        layer: of maps and vectors for ``conv2d``, ``depthwise``, ``dense`` and ``add``; of matrices
            for ``linear``, ``accumulate``, functions of rows (softmax, norms and GELU in integers)
            and a ``convert`` that is a table of bytes.
        attrs: what a layer does not tell, or for kinds without layer everything:
            ``add`` in TFLite's arithmetic: ``multipliers``, ``shifts``, ``zero_points`` (first
            operand, second, output), ``clip``; ``convert``: ``offset``, ``requant``, ``clip``,
            ``input_dtype``, ``output_dtype``;
            pools: ``kernel``, ``strides``, ``padding`` (top, left, bottom, right), ``layout``, and
            of the average ``clip``; ``softmax``: ``multiplier``, ``left_shift`` of the input's
            scale; ``reshape``: ``shape``; ``pad``: ``padding``, ``value``, ``layout``; others: the
            parameters of their PrimFunc.
    """

    name: str
    kind: str
    inputs: tuple[str, ...]
    output: str
    input_shapes: tuple[tuple[int, ...], ...]
    output_shape: tuple[int, ...]
    layer: Layer | None = None
    attrs: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])
    input_dtypes: tuple[str, ...] = ("int8",)
    output_dtype: str = "int8"

    @property
    def scaled(self) -> Layer | None:
        """The layer of maps and vectors, which retargeting writes in a core's number scheme."""
        return self.layer if self.kind in _SCALED else None
