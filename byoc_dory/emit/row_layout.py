"""The simplest layout: bytes row by row, channels innermost, no padding.

Tensors of NHWC networks and vectors already have it; for others this module generates the host's
conversions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from byoc_dory.emit.conversion import Conversion
from byoc_dory.emit.tensor_layout import TensorLayout
from byoc_dory.emit.text import environment
from byoc_dory.layers import Array, Tensor
from byoc_dory.region import Kernel

_ENVIRONMENT = environment("byoc_dory.emit")


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
        return tensor.elements

    def offsets(self, tensor: Tensor) -> Array:
        """Return the byte offset of each element, in the tensor's shape: rows of channels."""
        places = np.arange(tensor.elements, dtype=np.int64)
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

        text = _ENVIRONMENT.get_template("row_layout.c.jinja").render(
            what=conversion.kind,
            tensor=tensor,
            direction=f"{conversion.source} to {conversion.target}",
            signature=conversion.signature,
            planes=planes,
            pixels=tensor.elements // planes,
            inward=conversion.inward,
            value=value,
        )
        return conversion.kernel(text, round(tensor.elements * self.byte_cycles))
