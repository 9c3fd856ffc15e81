"""`conversion_kernel`: the kernel of a conversion of layouts at a region's border."""

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
    """The function ``int32_t symbol(const int8_t *in, int8_t *out)`` as a kernel.

    Args:
        tensor: what is converted.
        symbol: C name.
        kind: into the accelerator's layout, or out of it.
        source, target: names of what it reads and writes.
        table: the function of bytes that is applied on the way.
        text: its C.
        cycles: predicted.
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
