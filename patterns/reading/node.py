"""`Node`: an operator of the integer form, independent of the compiler's IR."""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.layers import Layer
from patterns.names import located
from patterns.op import Op, Operands, Scale, TensorType


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

    @property
    def read(self) -> tuple[tuple[str, TensorType], ...]:
        """Name and type of each tensor that it reads."""
        types = map(TensorType, self.input_shapes, self.input_dtypes)
        return tuple(zip(self.inputs, types, strict=True))

    @property
    def result(self) -> TensorType:
        """Type of the tensor that it computes."""
        return TensorType(self.output_shape, self.output_dtype)


def node_of(name: str, op: Op, read: Operands, result: TensorType) -> Node:
    """Return the node of an operator, with the layer that accelerators see of it.

    Args:
        name: its name.
        op: the operator.
        read: name and type of each tensor that it reads.
        result: type of the tensor that it computes.

    Raises:
        IntegerFormError: accelerators could not be offered it, as of a batch other than 1.
    """
    with located(name):
        layer = op.layer(name, read, result)
    if layer is not None and len(layer.inputs) == 2 and len(read) == 1:
        read = (*read, *read)  # a tensor added to itself
    return Node(
        name=name,
        op=op,
        inputs=tuple(tensor for tensor, _ in read),
        output=name,
        input_shapes=tuple(kind.shape for _, kind in read),
        output_shape=result.shape,
        layer=layer,
        input_dtypes=tuple(kind.dtype for _, kind in read),
        output_dtype=result.dtype,
    )
