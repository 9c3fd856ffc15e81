"""`TensorLayout`: the layout of tensors in a family of accelerators, and conversions to it."""

from __future__ import annotations

from abc import ABC, abstractmethod

from byoc_dory.emit.conversion import Conversion
from byoc_dory.emit.symbols import part_name
from byoc_dory.layers import Array, Tensor
from byoc_dory.region import BorderMap, Constant, Kernel


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

    @abstractmethod
    def convert(self, conversion: Conversion) -> Kernel:
        """Return the function that converts a tensor into this layout, or out of it."""

    def table_comment(self, tensor: Tensor, source: str) -> str:
        """Return the comment of a table that is applied to the bytes of ``source`` on the way."""
        return f"of each byte of {source}"

    def prologue(
        self, tensor: Tensor, target: str, symbol: str, mapped: BorderMap | None = None
    ) -> Kernel:
        """Return the function that converts a region's input into this layout.

        Args:
            tensor: the input, in the outside's layout.
            target: name of the buffer to fill.
            symbol: C name.
            mapped: a function of bytes to apply on the way.
        """
        source, table = tensor.name, None
        if mapped is not None:
            source = mapped.source
            comment = self.table_comment(tensor, source)
            table = Constant(part_name(symbol, "table"), mapped.table, comment)
        return self.convert(Conversion(tensor, symbol, "prologue", source, target, table))

    def epilogue(self, tensor: Tensor, source: str, symbol: str) -> Kernel:
        """Return the function that converts a result to its layout outside of the region."""
        return self.convert(Conversion(tensor, symbol, "epilogue", source, tensor.name))
