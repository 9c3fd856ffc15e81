"""`conversion_kernel`: the kernel of a layout conversion at a region's border."""

from __future__ import annotations

from typing import Literal

from byoc_dory.layers import Tensor
from byoc_dory.region import Constant, Kernel

__all__ = ["conversion_kernel"]


def conversion_kernel(
    tensor: Tensor,
    symbol: str,
    kind: Literal["prologue", "epilogue"],
    source: str,
    target: str,
    table: Constant | None,
    text: str,
    cycles: int,
) -> Kernel:
    """Return the function ``int32_t symbol(const int8_t *in, int8_t *out)`` as a kernel.

    Args:
        tensor: the tensor to convert.
        symbol: C name of the function.
        kind: into the accelerator's layout, or out of it.
        source, target: names of the buffers that it reads and writes.
        table: function of bytes that is applied during the conversion.
        text: C text of the function.
        cycles: predicted cycles.
    """
    return Kernel(
        symbol=symbol,
        layer_name=tensor.name,
        kind=kind,
        source=text,
        prototype=f"int32_t {symbol}(const int8_t *in, int8_t *out);",
        inputs=(source,),
        outputs=(target,),
        constants=() if table is None else (table,),
        layer=None,
        plan=None,
        program=None,
        predicted_cycles=cycles,
        accelerator="cpu",
    )
