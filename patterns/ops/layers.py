"""Layers of rows and of sums of tensors, in any arithmetic.

A tensor of any rank with C as its last axis is a matrix whose rows have C elements, stored row by
row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import (
    Add,
    Convolution,
    Elementwise,
    Pool,
    Requant,
    Rows,
    Tensor,
    matrix,
    rows_layer,
)

if TYPE_CHECKING:
    from byoc_dory.layers.rowwise import RowFunction
    from patterns.op import Operands, TensorType


_Elementwise = TypeVar("_Elementwise", bound=Elementwise)


def matrix_of(name: str, kind: TensorType) -> Tensor:
    """Return a tensor of this name and type as one matrix: all axes but the last are rows."""
    columns = kind.shape[-1] if kind.shape else 1
    return matrix(name, prod(kind.shape[:-1]), columns, kind.dtype)


def row_layer(
    name: str, source: tuple[str, TensorType], output: TensorType, function: RowFunction
) -> Rows:
    """Return the layer that applies ``function`` to each row of a tensor.

    Args:
        name: name of the operator, and of its result.
        source: name and type of the tensor it reads.
        output: type of its result.
        function: function of one row.
    """
    return rows_layer(name, matrix_of(*source), function, output.dtype)


def map_of(name: str, kind: TensorType, layout: str) -> Tensor | None:
    """Return a tensor with four axes and a batch of one as a map ``(C, y, x)``; else None."""
    if len(kind.shape) != 4 or kind.shape[0] != 1:
        return None
    _, *rest = kind.shape
    if layout == "NHWC":
        y, x, channels = rest
        return Tensor(name, (channels, y, x), kind.dtype, "NHWC")
    return Tensor(name, tuple(rest), kind.dtype, "NCHW")


def stored(name: str, kind: TensorType) -> Tensor | None:
    """Return a tensor of two to four axes, the last of which are channels; None of a batch."""
    if kind.shape[:1] != (1,) or not 2 <= len(kind.shape) <= 4:
        return None
    *sizes, channels = kind.shape[1:]
    if not sizes:
        return Tensor(name, (channels,), kind.dtype, "C")
    y, x = (*sizes, 1)[:2]
    return Tensor(name, (channels, y, x), kind.dtype, "NHWC")


def of_stored(values: Sequence[int]) -> tuple[int, ...]:
    """Return numbers of a tensor's axes in the order of `stored`; of an axis that it adds, 0."""
    *sizes, channels = values[1:]
    return (channels, *(*sizes, 0)[:2]) if sizes else (channels,)


def pool_layer(
    name: str,
    source: tuple[str, TensorType],
    output: TensorType,
    function: Literal["average", "max"],
    layout: str,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    pad: tuple[int, int, int, int],
    clip: tuple[int, int] | None = None,
) -> Pool | None:
    """Return a pool as a layer, by default not clipped; None if its tensors are no integer maps."""
    maps = [map_of(*source, layout), map_of(name, output, layout)]
    if maps[0] is None or maps[1] is None or "int" not in output.dtype:
        return None
    return Pool(
        name=name, inputs=(maps[0],), output=maps[1], function=function, kernel=kernel,
        stride=stride, pad=pad, clip=clip or _whole(output.dtype),
    )  # fmt: skip


def mean_layer(
    name: str,
    source: tuple[str, TensorType],
    axes: Sequence[int],
    requant: Requant,
    layout: str = "NHWC",
    clip: tuple[int, int] | None = None,
) -> Convolution | None:
    """Return a sum over axes of a map as a product with ones; None of other tensors.

    Args:
        name: name of the operator, and of its result.
        source: name and type of the tensor it reads.
        axes: axes to sum over, counted from 0; without any, each element is requantized.
        requant: requantization of the sums.
        layout: layout of a tensor with four axes; with fewer, the last are channels.
        clip: inclusive range of the result; by default all of its type.
    """
    rank = len(source[1].shape)
    tensor = map_of(*source, layout) if rank == 4 else stored(*source)
    if tensor is None or 0 in axes:
        return None
    if rank == 2:
        tensor = replace(tensor, shape=(*tensor.shape, 1, 1), layout="NHWC")
    order = (1, 2, 3) if rank == 4 and layout == "NCHW" else (rank - 1, *range(1, rank - 1))
    sums = [axis in axes for axis in order] + [False] * (3 - len(order))
    channels, *kernel = (
        size if summed else 1 for size, summed in zip(tensor.shape, sums, strict=True)
    )
    left = (1 if summed else size for size, summed in zip(tensor.shape, sums, strict=True))
    groups = 1 if sums[0] else tensor.shape[0]
    whole = _whole(tensor.dtype)
    return Convolution(
        name=name, inputs=(tensor,), output=replace(tensor, name=name, shape=tuple(left)),
        weight=np.ones((groups, channels, *kernel), np.int8), groups=groups, requant=requant,
        clip=clip or whole, input_range=whole,
    )  # fmt: skip


def _whole(dtype: str) -> tuple[int, int]:
    """Return the least and the largest number of a type."""
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def sum_layer(
    name: str,
    inputs: Operands,
    output: TensorType,
    requant: Requant,
    clip: tuple[int, int],
) -> Add:
    """Return the sum as a layer; arguments and errors as for `elementwise_layer`."""
    return elementwise_layer(Add, name, inputs, output, requant, clip)


def elementwise_layer(
    kind: type[_Elementwise],
    name: str,
    inputs: Operands,
    output: TensorType,
    requant: Requant,
    clip: tuple[int, int],
) -> _Elementwise:
    """Return a function of two tensors, or more, as a layer.

    Four axes are maps, read as NHWC until `patterns.reading.building` infers the layout; several
    rows are a matrix; everything else is a vector.  Operands of one element along an axis count for
    all of the result's.

    Args:
        kind: class of the layer.
        name: name of the operator, and of its result.
        inputs: name and type of each operand.
        output: type of the result.
        requant, clip: requantization and clip of the layer.

    Raises:
        IntegerFormError: the batch is not 1.
    """
    shape = output.shape
    if len(shape) == 4 and shape[0] != 1:
        raise IntegerFormError(
            f"batch size {shape[0]}", where=f"operator '{name}'", hint="only 1 is supported"
        )

    def tensor(tensor_name: str, own: TensorType) -> Tensor:
        sizes = (1,) * (len(shape) - len(own.shape)) + own.shape
        if len(shape) == 4:
            return Tensor(tensor_name, (sizes[3], sizes[1], sizes[2]), own.dtype, "NHWC")
        if prod(shape[:-1]) > 1:
            return matrix(tensor_name, prod(sizes[:-1]), sizes[-1], own.dtype)
        return Tensor(tensor_name, (prod(sizes),), own.dtype, "C")

    operands = tuple(tensor(*operand) for operand in inputs)
    result = tensor(name, output)
    return kind(name=name, inputs=operands, output=result, requant=requant, clip=clip)
