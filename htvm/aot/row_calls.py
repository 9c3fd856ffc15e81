"""`RowCalls`: the calls by which a kernel computes its operators row by row, and what each leaves.

Rows live as long as somebody reads them, so whoever compares them must know when and where.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RowMaker:
    """A function that makes rows of a tensor.

    Attributes:
        layer: name of the operator; "copy_" and the tensor's if it only copies.
        function: its name in C.
        tensor: name of the tensor.
        parameter: the kernel's parameter in which the rows lie, by its number.
        start: bytes from there to the first pixel of the first place.
        pitch: bytes from one place to the next.
        pixel: bytes from one pixel to the next.
    """

    layer: str
    function: str
    tensor: str
    parameter: int
    start: int
    pitch: int
    pixel: int


@dataclass(frozen=True)
class RowCalls:
    """The calls of a kernel in their order.

    Attributes:
        makers: the functions.
        calls: for each call the number of its function, the first row that it makes, the place of
            that row, and how many rows it makes; rows outside of the tensor are padding.
    """

    makers: tuple[RowMaker, ...]
    calls: tuple[tuple[int, int, int, int], ...]
