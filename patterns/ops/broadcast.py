"""Operands that are broadcast like in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import IntegerFormError
from patterns.primitive import Argument, Inputs, PrimitiveOp

if TYPE_CHECKING:
    from byoc_dory.layers import Array


def broadcast(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of the result for operands of these shapes.

    Raises:
        IntegerFormError: the shapes do not fit.
    """
    try:
        return tuple(int(size) for size in np.broadcast_shapes(*map(tuple, shapes)))
    except ValueError as error:
        named = " and ".join(str(tuple(shape)) for shape in shapes)
        raise IntegerFormError(f"operands of shapes {named} cannot be broadcast") from error


@dataclass(frozen=True, eq=False)
class PairOp(PrimitiveOp):
    """Base of functions of two tensors; in a field ``a`` or ``b``, an operand is constant."""

    @property
    def constant_shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of operands that are constant."""
        constants = (getattr(self, name, None) for name in ("a", "b"))
        return tuple(each.shape for each in constants if each is not None)

    def operands(self, inputs: Inputs) -> Sequence[Argument]:
        """See `PrimitiveOp.operands`: both, with a constant one in its place."""
        return pair(inputs, getattr(self, "a", None), getattr(self, "b", None))


def pair(inputs: Inputs, a: Array | None = None, b: Array | None = None) -> tuple[Argument, ...]:
    """Return two operands as arguments ``a`` and ``b``, with a constant one in its place.

    A single tensor, if none is constant, is both of them.
    """
    given = iter([*inputs, *inputs])
    return tuple(
        Argument(name, next(given)) if value is None else Argument(name, value, name)
        for name, value in (("a", a), ("b", b))
    )


def broadcast_load(source: te.Tensor, index: Sequence[Any]) -> Any:
    """Return the operand's element that numpy's broadcasting assigns to ``index`` of the result."""
    rank = len(source.shape)
    own = index[len(index) - rank :]
    return source(
        *(
            tirx.const(0, "int64") if int(size) == 1 else place
            for size, place in zip(source.shape, own, strict=True)
        )
    )
