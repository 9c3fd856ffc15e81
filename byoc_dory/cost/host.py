"""Rough estimates of cycles on the host, for verdicts and plans; runs measure the real ones."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from byoc_dory.layers import (
    Add,
    CachedAttention,
    Combination,
    Convolution,
    Dense,
    Layer,
    Matmul,
    Rows,
)
from byoc_dory.layers.rowwise import ItaGelu, TableMap
from byoc_dory.soc.base import Soc
from byoc_dory.work import Work

Basis: TypeAlias = Literal["predicted", "measured", "estimated"]
"""An accelerator's cost model; the code itself, simulated; or sizes, where neither is there."""


class HostEstimates:
    """Estimated cycles on one core of a SoC's host.

    Args:
        soc: description of the SoC.
    """

    basis: ClassVar[Basis] = "estimated"
    """Of all answers."""

    def __init__(self, soc: Soc) -> None:
        self._cost = soc.host.cost

    def layer(self, layer: Layer) -> int:
        """Return the cycles of a layer."""
        cost = self._cost
        if isinstance(layer, CachedAttention):
            # Besides two products: softmax, and four other steps from a product to a weight.
            each = cost.softmax_element + 4 * cost.move_element
            return round(layer.macs * cost.pointwise_mac + layer.macs // (2 * layer.C) * each)
        match layer:
            case Add():
                each, elements = cost.add_element, layer.output.elements * (len(layer.inputs) - 1)
            case Rows(function=TableMap() | ItaGelu()):
                each, elements = cost.move_element, layer.output.elements
            case Rows():
                each, elements = cost.softmax_element, layer.output.elements
            case Combination():
                steps = 1 + sum(table is not None for table in layer.tables)
                each, elements = steps * cost.move_element, layer.output.elements
            case Dense() | Matmul():
                each, elements = cost.dense_mac, layer.macs
            case Convolution(depthwise=True):
                each, elements = cost.depthwise_mac, layer.macs
            case Convolution() if (layer.fy, layer.fx) != (1, 1):
                each, elements = cost.conv_mac, layer.macs
            case _:
                each, elements = cost.pointwise_mac, layer.macs
        return round(each * elements)

    def operator(self, work: Work, read: int, written: int) -> int | None:
        """Return the cycles of an operator without a `Layer`; ``None`` if unknown.

        Args:
            work: kind of work of the operator.
            read: number of elements read, counting repeated reads.
            written: number of elements of its result.
        """
        cost = self._cost
        each, elements = {
            Work.NOTHING: (0.0, 0),
            Work.MOVE: (cost.move_element, written),
            Work.SUM: (cost.add_element, written),
            Work.WINDOW: (cost.pool_element, read),
            Work.SOFTMAX: (cost.softmax_element, written),
            Work.REAL: (cost.real_element, max(read, written)),
        }.get(work, (None, 0))
        return None if each is None else round(each * elements)

    def conversion(self, size: int) -> int:
        """Return the cycles of converting ``size`` bytes to or from an accelerator's layout."""
        return round(self._cost.layout_byte * size)
