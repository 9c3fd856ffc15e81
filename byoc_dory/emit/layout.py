"""The layout of tensors in a family of accelerators, and conversions to it at a region's border.

`RowLayout` is the simplest one: bytes row by row, channels innermost, no padding.

Tensors of NHWC networks and vectors already have it; for others this module generates the host's
conversions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np

from byoc_dory.definition import Definition
from byoc_dory.emit.text import part_name, rendered
from byoc_dory.layers import Array, MapRows, Tensor
from byoc_dory.region import BorderMap, Constant, Kernel


@dataclass(frozen=True)
class Conversion:
    """The function ``int32_t symbol(const int8_t *in, int8_t *out)`` that converts a tensor.

    Attributes:
        tensor: the tensor to convert.
        symbol: C name of the function.
        kind: into the accelerator's layout, or out of it.
        source, target: names of the buffers that it reads and writes.
        table: function of bytes that is applied during the conversion.
        rows: which rows of the tensor to convert, if not all (`TensorLayout.has_rows_apart`).
    """

    tensor: Tensor
    symbol: str
    kind: Literal["prologue", "epilogue"]
    source: str
    target: str
    table: Constant | None = None
    rows: MapRows | None = None

    @property
    def inward(self) -> bool:
        """Whether it converts into the accelerator's layout."""
        return self.kind == "prologue"

    @property
    def signature(self) -> str:
        """The function's C declaration, without a semicolon."""
        return f"int32_t {self.symbol}(const int8_t *in, int8_t *out)"

    def kernel(self, text: str, cycles: int, definition: Definition | None = None) -> Kernel:
        """Return the kernel with the function's C text and predicted cycles."""
        return Kernel(
            symbol=self.symbol,
            layer_name=self.tensor.name if self.rows is None else self.rows.name,
            kind=self.kind,
            source=text,
            prototype=f"{self.signature};",
            inputs=(self.source,),
            outputs=(self.target,),
            constants=() if self.table is None else (self.table,),
            layer=None,
            plan=None,
            program=None,
            predicted_cycles=cycles,
            accelerator="cpu",
            definition=definition,
        )


@dataclass(frozen=True)
class Average:
    """An average of each map of a tensor, rounded half away from zero: one int8 for each channel.

    Attributes:
        name: name of the operator, and of its result.
        tensor: the tensor, int8 ``[C, y, x]``.
        symbol: C name of its function, ``int32_t symbol(const int8_t *in, int8_t *out)``.
        source: name of the buffer with the tensor in the accelerator's layout.
        clip: inclusive range of the result.
        least: no element is below it.
    """

    name: str
    tensor: Tensor
    symbol: str
    source: str
    clip: tuple[int, int]
    least: int

    @property
    def result(self) -> Tensor:
        """The tensor of averages."""
        return Tensor(self.name, (self.tensor.shape[0], 1, 1), layout=self.tensor.layout)

    @property
    def signature(self) -> str:
        """The function's C declaration, without a semicolon."""
        return f"int32_t {self.symbol}(const int8_t *in, int8_t *out)"

    def kernel(self, text: str, cycles: int) -> Kernel:
        """Return the kernel with the function's C text and predicted cycles."""
        return Kernel(
            symbol=self.symbol,
            layer_name=self.name,
            kind="cpu",
            source=text,
            prototype=f"{self.signature};",
            inputs=(self.source,),
            outputs=(self.name,),
            constants=(),
            layer=None,
            plan=None,
            program=None,
            predicted_cycles=cycles,
            accelerator="cpu",
        )


class TensorLayout(ABC):
    """The layout of tensors inside the regions of one family of accelerators."""

    @property
    def keeps_rows(self) -> bool:
        """Whether matrices are stored row by row.

        Otherwise a sum of matrices, which does not depend on the layout, is offered as a sum of
        vectors.
        """
        return False

    @abstractmethod
    def native(self, tensor: Tensor) -> bool:
        """Whether a border tensor already has this layout, so that it can be used in place."""

    @abstractmethod
    def stored_bytes(self, tensor: Tensor) -> int:
        """Return the bytes of L2 that a tensor takes."""

    @abstractmethod
    def offsets(self, tensor: Tensor) -> Array:
        """Return the byte offset of each element from the tensor's first byte.

        Returns:
            int64 ``[C, y, x]`` or ``[C]``, as the tensor's shape.
        """

    def has_rows_apart(self, tensor: Tensor) -> bool:
        """Return whether rows of a border tensor can be converted by themselves."""
        return False

    @abstractmethod
    def convert(self, conversion: Conversion) -> Kernel:
        """Return the function that converts a tensor into this layout, or out of it."""

    def average(self, average: Average) -> Kernel | None:
        """Return the function that averages maps in this layout; None if there is none.

        Then the host converts the tensor, and averages it in its own layout.
        """
        return None

    def table_comment(self, tensor: Tensor, source: str) -> str:
        """Return the comment of a table that is applied to the bytes of ``source`` on the way."""
        return f"of each byte of {source}"

    def prologue(
        self,
        tensor: Tensor,
        target: str,
        symbol: str,
        border_map: BorderMap | None = None,
        rows: MapRows | None = None,
    ) -> Kernel:
        """Return the function that converts a region's input into this layout.

        Args:
            tensor: the input, in the outside's layout.
            target: name of the buffer to fill.
            symbol: C name.
            border_map: a function of bytes to apply on the way.
            rows: which rows to convert, if not all.
        """
        source, table = tensor.name, None
        if border_map is not None:
            source = border_map.source
            comment = self.table_comment(tensor, source)
            table = Constant(part_name(symbol, "table"), border_map.table, comment)
        return self.convert(Conversion(tensor, symbol, "prologue", source, target, table, rows))

    def epilogue(self, tensor: Tensor, source: str, symbol: str) -> Kernel:
        """Return the function that converts a result to its layout outside of the region."""
        return self.convert(Conversion(tensor, symbol, "epilogue", source, tensor.name))


@dataclass(frozen=True)
class RowLayout(TensorLayout):
    """The default layout of accelerators: rows of channels without padding.

    Attributes:
        byte_cycles: host cycles for converting a byte, for predictions (`HostCost.layout_byte`).
    """

    byte_cycles: float

    @property
    def keeps_rows(self) -> bool:
        """True: matrices are stored row by row."""
        return True

    def native(self, tensor: Tensor) -> bool:
        """Whether a border tensor is already stored row by row, channels innermost."""
        if tensor.layout in ("NHWC", "C") or len(tensor.shape) == 1:
            return True
        channels, rows, columns = tensor.shape
        return channels == 1 or rows * columns == 1

    def stored_bytes(self, tensor: Tensor) -> int:
        """Return the bytes of a tensor, without any padding."""
        return tensor.elements * int(np.dtype(tensor.dtype).itemsize)

    def offsets(self, tensor: Tensor) -> Array:
        """Return the byte offset of each element, in the tensor's shape: rows of channels."""
        places = np.arange(tensor.elements, dtype=np.int64) * np.dtype(tensor.dtype).itemsize
        if len(tensor.shape) == 1:
            return places
        channels, rows, columns = tensor.shape
        return places.reshape(rows, columns, channels).transpose(2, 0, 1)

    def convert(self, conversion: Conversion) -> Kernel:
        """Return the host's function that converts a tensor to rows, or back."""
        tensor, table = conversion.tensor, conversion.table
        planes = 1 if self.native(tensor) else tensor.shape[0]

        def value(element: str) -> str:
            return element if table is None else f"(int8_t){table.name}[(uint8_t){element}]"

        text = rendered(
            "byoc_dory.emit",
            "row_layout.c.jinja",
            what=conversion.kind,
            tensor=tensor,
            direction=f"{conversion.source} to {conversion.target}",
            signature=conversion.signature,
            planes=planes,
            pixels=tensor.elements // planes,
            size=np.dtype(tensor.dtype).itemsize,
            inward=conversion.inward,
            value=value,
        )
        return conversion.kernel(text, round(self.stored_bytes(tensor) * self.byte_cycles))
