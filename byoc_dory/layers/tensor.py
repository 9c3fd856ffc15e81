"""`Tensor`: a named activation, its shape, and the layout of its bytes in L2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from byoc_dory.errors import ModelError

Array: TypeAlias = npt.NDArray[Any]
Layout: TypeAlias = Literal["CHW", "NHWC", "NCHW", "C"]

_LAYOUTS = get_args(Layout)


@dataclass(frozen=True)
class Tensor:
    """A named activation without its batch axis.

    Attributes:
        name: unique name within the model.
        shape: size in elements, ``(C, y, x)``, or ``(C,)`` for a vector; always in this order.
        dtype: numpy name of the element type.
        layout: order of the bytes in L2.  ``"CHW"`` is the accelerator's own layout (used inside a
            region); ``"NHWC"``, ``"NCHW"`` and ``"C"`` (a vector) are the source's layouts, which
            occur only at the border of a region.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str = "int8"
    layout: Layout = "CHW"

    def __post_init__(self) -> None:
        where = f"tensor '{self.name}'"
        if not self.name:
            raise ModelError("a tensor has no name", where=f"shape {self.shape}")
        if len(self.shape) not in (1, 3):
            raise ModelError(
                f"shape {self.shape} has {len(self.shape)} dimensions",
                where=where,
                hint="give (C, y, x) or (C,), without the batch axis",
            )
        if any(size < 1 for size in self.shape):
            raise ModelError(f"shape {self.shape} has an empty dimension", where=where)
        if self.layout not in _LAYOUTS:
            raise ModelError(
                f"unknown layout '{self.layout}'", where=where, hint=f"one of {_LAYOUTS}"
            )

    @property
    def elements(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape))


def matrix(name: str, rows: int, columns: int, dtype: str = "int8") -> Tensor:
    """Return a matrix as a tensor ``(columns, rows, 1)``, stored row by row."""
    return Tensor(name, (columns, rows, 1), dtype, "NHWC")
