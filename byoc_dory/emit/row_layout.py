"""The simplest layout: bytes row by row, channels innermost, no padding.

Tensors of NHWC networks and vectors already have it; for others this module generates the host's
conversions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from byoc_dory.emit.conversion import conversion_kernel
from byoc_dory.emit.symbols import part_name
from byoc_dory.emit.tensor_layout import TensorLayout
from byoc_dory.emit.text import environment
from byoc_dory.layers import Array, Tensor
from byoc_dory.region import BorderMap, Constant, Kernel

__all__ = ["RowLayout", "epilogue", "native", "offsets", "prologue"]

_ENVIRONMENT = environment("byoc_dory.emit")


def native(tensor: Tensor) -> bool:
    """Whether a tensor is stored row by row, channels innermost."""
    if tensor.layout in ("NHWC", "C") or len(tensor.shape) == 1:
        return True
    channels, rows, columns = tensor.shape
    return channels == 1 or rows * columns == 1


def offsets(tensor: Tensor) -> Array:
    """Return the byte offset of each element, in the tensor's shape: rows of channels."""
    places = np.arange(tensor.elements, dtype=np.int64)
    if len(tensor.shape) == 1:
        return places
    channels, rows, columns = tensor.shape
    return places.reshape(rows, columns, channels).transpose(2, 0, 1)


def prologue(
    tensor: Tensor, target: str, symbol: str, mapped: BorderMap | None, byte_cycles: float
) -> Kernel:
    """Return the function that converts a source tensor to rows, applying ``mapped`` if given.

    ``byte_cycles``: host cycles per byte, for the prediction (`HostCost.layout_byte`).
    """
    source = tensor.name if mapped is None else mapped.source
    table = None
    if mapped is not None:
        table = Constant(part_name(symbol, "table"), mapped.table, f"of each byte of {source}")
    return _conversion(tensor, symbol, "prologue", source, target, table, byte_cycles)


def epilogue(tensor: Tensor, source: str, symbol: str, byte_cycles: float) -> Kernel:
    """Return the function that converts a result to the layout of ``tensor``."""
    return _conversion(tensor, symbol, "epilogue", source, tensor.name, None, byte_cycles)


def _conversion(
    tensor: Tensor,
    symbol: str,
    kind: Literal["prologue", "epilogue"],
    source: str,
    target: str,
    table: Constant | None,
    byte_cycles: float,
) -> Kernel:
    signature = f"int32_t {symbol}(const int8_t *in, int8_t *out)"
    moves = not native(tensor)
    planes = tensor.shape[0] if moves else 1

    def value(element: str) -> str:
        return element if table is None else f"(int8_t){table.name}[(uint8_t){element}]"

    text = _ENVIRONMENT.get_template("row_layout.c.jinja").render(
        what=kind,
        tensor=tensor,
        direction=f"{source} to {target}",
        table=table,
        signature=signature,
        planes=planes,
        pixels=tensor.elements // planes,
        inward=kind == "prologue",
        value=value,
    )
    cycles = round(tensor.elements * byte_cycles)
    return conversion_kernel(tensor, symbol, kind, source, target, table, text, cycles)


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
        """Whether a border tensor is already stored row by row."""
        return native(tensor)

    def stored_bytes(self, tensor: Tensor) -> int:
        """Return the bytes of a tensor, without any padding."""
        return tensor.elements

    def offsets(self, tensor: Tensor) -> Array:
        """Return the byte offset of each element, in the tensor's shape."""
        return offsets(tensor)

    def prologue(
        self, tensor: Tensor, target: str, symbol: str, mapped: BorderMap | None = None
    ) -> Kernel:
        """Return the function that converts a source tensor to rows."""
        return prologue(tensor, target, symbol, mapped, self.byte_cycles)

    def epilogue(self, tensor: Tensor, source: str, symbol: str) -> Kernel:
        """Return the function that converts a result to the layout of ``tensor``."""
        return epilogue(tensor, source, symbol, self.byte_cycles)
