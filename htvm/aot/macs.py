"""Which CPU kernel does a layer's multiply-accumulates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from byoc_dory.layer import Layer
from htvm.aot.cpu import CpuKernel
from htvm.aot.steps import Alias, Call

__all__ = ["with_macs"]


def with_macs(
    calls: Sequence[Call | Alias], kernels: Sequence[CpuKernel], layers: Mapping[str, Layer]
) -> tuple[Call | Alias, ...]:
    """Return the calls with their multiply-accumulates, each layer counted once.

    A layer may be spread over kernels (a padding apart from its convolution); the last one that
    names it does the arithmetic.
    """
    by_symbol = {kernel.symbol: kernel for kernel in kernels}
    last: dict[str, int] = {}
    for index, call in enumerate(calls):
        if isinstance(call, Call) and call.target in by_symbol:
            last.update({name: index for name in by_symbol[call.target].layers})
    macs = [0] * len(calls)
    for name, index in last.items():
        macs[index] += layers[name].macs if name in layers else 0
    return tuple(
        replace(call, macs=amount) if isinstance(call, Call) else call
        for call, amount in zip(calls, macs, strict=True)
    )
