"""`Conversion`: a layout conversion at a region's border, and its kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from byoc_dory.layers import Tensor
from byoc_dory.region import Constant, Kernel


@dataclass(frozen=True)
class Conversion:
    """The function ``int32_t symbol(const int8_t *in, int8_t *out)`` that converts a tensor.

    Attributes:
        tensor: the tensor to convert.
        symbol: C name of the function.
        kind: into the accelerator's layout, or out of it.
        source, target: names of the buffers that it reads and writes.
        table: function of bytes that is applied during the conversion.
    """

    tensor: Tensor
    symbol: str
    kind: Literal["prologue", "epilogue"]
    source: str
    target: str
    table: Constant | None = None

    @property
    def inward(self) -> bool:
        """Whether it converts into the accelerator's layout."""
        return self.kind == "prologue"

    @property
    def signature(self) -> str:
        """The function's C declaration, without a semicolon."""
        return f"int32_t {self.symbol}(const int8_t *in, int8_t *out)"

    def kernel(self, text: str, cycles: int) -> Kernel:
        """Return the kernel with the function's C text and predicted cycles."""
        return Kernel(
            symbol=self.symbol,
            layer_name=self.tensor.name,
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
        )
