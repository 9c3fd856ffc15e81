"""`Node`: an operator of the integer form, independent of the compiler's IR."""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.layers import Layer
from patterns.op import Op, Scale

__all__ = ["Node"]


@dataclass(frozen=True, eq=False)
class Node:
    """An operator of the integer form.

    Attributes:
        name: name of the operator, unique in the module; also the name of the tensor it computes.
        op: the operator.
        inputs: names of the tensors it reads: inputs of the model or names of other nodes.
        output: name of the tensor it computes, equal to ``name``.
        input_shapes, output_shape: shapes in the source's layout, with the batch, in elements.
        input_dtypes, output_dtype: numpy names of the element types.
        layer: the layer to offer: of maps and vectors for ``conv2d``, ``depthwise``, ``dense`` and
            ``add``; of matrices for ``linear``, ``accumulate``, functions of rows (softmax, norms
            and GELU in integers) and a ``convert`` that is a table of bytes.
    """

    name: str
    op: Op
    inputs: tuple[str, ...]
    output: str
    input_shapes: tuple[tuple[int, ...], ...]
    output_shape: tuple[int, ...]
    layer: Layer | None = None
    input_dtypes: tuple[str, ...] = ("int8",)
    output_dtype: str = "int8"

    @property
    def kind(self) -> str:
        """Name of the kind of operator."""
        return self.op.kind

    @property
    def scaled(self) -> Layer | None:
        """The layer of maps and vectors, which retargeting rewrites in a core's number scheme."""
        return self.layer if self.op.scale is Scale.FREE else None
