"""C for conversions between a source model's layout and rows of channels, done by the cluster.

A tensor is loaded into L1 in ranges of pixels, transposed there by the cores, and stored.  At a
region's border nothing else is in L1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from byoc_dory.emit.layout import Conversion, RowLayout
from byoc_dory.region import Kernel
from byoc_dory.soc.base import Soc
from byoc_dory.soc.cluster import simd_work, work
from byoc_dory.soc.cluster.core import ClusterCores
from byoc_dory.soc.cluster.emit import ENVIRONMENT
from byoc_dory.soc.cluster.rows import transfer_cycles
from byoc_dory.soc.cluster.work import slowest

_TABLE = 256
_BEHIND = 4  # bytes behind a range that kernels may read
_PIXELS = 4  # a range's pixels are a multiple of this, which the kernel computes at once


@dataclass(frozen=True)
class ClusterLayout(RowLayout):
    """Rows of channels; the cluster converts tensors whose parts fit L1, the host all others.

    Attributes:
        soc: the SoC of the cluster.
    """

    soc: Soc

    def convert(self, conversion: Conversion) -> Kernel:
        """Return the cluster's conversion; the host's if the channels of a few pixels exceed L1."""
        tensor, table = conversion.tensor, conversion.table
        planes = 1 if self.native(tensor) else tensor.shape[0]
        pixels = tensor.elements // planes
        room = self.soc.memory("L1").size - _TABLE - _BEHIND
        most = room // (2 * planes) // _PIXELS * _PIXELS
        if most == 0:
            return super().convert(conversion)
        step = min(most, pixels)
        text = ENVIRONMENT.get_template("border.c.jinja").render(
            what=conversion.kind,
            tensor=tensor,
            direction=f"{conversion.source} to {conversion.target}",
            table=table,
            signature=conversion.signature,
            planes=planes,
            pixels=pixels,
            step=step,
            inward=conversion.inward,
            second=_TABLE + -(-step * planes // _PIXELS) * _PIXELS,
        )
        cycles = _cycles(self.soc, planes, pixels, step, conversion.inward, table is not None)
        return conversion.kernel(text, cycles)


def _cycles(soc: Soc, planes: int, pixels: int, step: int, inward: bool, has_table: bool) -> int:
    """Return the cycles of each range's transfers and kernels, one after another.

    The DMA stores the previous range, and then loads this one.
    """
    assert soc.dma is not None
    (core,) = (found for found in soc.accelerators if isinstance(found, ClusterCores))
    kernels = simd_work if core.simd else work
    dma, host, free = soc.dma, core.call_cycles, 0

    def order(row_bytes: int, rows: int) -> None:
        nonlocal host, free
        host += core.order_cycles
        free = max(host + core.latency_cycles, free) + transfer_cycles(row_bytes, rows, dma)

    if has_table:
        order(_TABLE, 1)
    for begin in range(0, pixels, step):
        count = min(step, pixels - begin)
        order(*((count, planes) if inward else (count * planes, 1)))
        host = max(host, free) + core.wait_cycles
        if has_table:
            host += core.fork_cycles + ceil(
                slowest(kernels.elementwise(count * planes, core.cores), core.map)
            )
        if planes > 1:
            rows, columns = (planes, count) if inward else (count, planes)
            host += core.fork_cycles + ceil(
                slowest(kernels.transposition(rows, columns, core.cores), core.transpose)
            )
        order(*((count * planes, 1) if inward else (count, planes)))
    return max(host, free) + core.wait_cycles
