"""Cycles of host code in the published runs of DIANA, fitted to Table I (HTVM, DAC 2023).

They are for the chip's own host (with SIMD instructions, hardware loops and DORY's templates), not
for the simulated one.  They only serve to compare a simulated run with the published figures;
neither the cost model nor the simulator uses them.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PUBLISHED_HOST", "PublishedHost"]


@dataclass(frozen=True)
class PublishedHost:
    """Cycles of host code, all derived (fitted).

    Attributes:
        layout_byte: cycles per byte converted at a border between host and cores; adds have no
            cost.
        pool_element, pool_element_pow2: cycles per input element of average pooling; the second for
            maps whose sides are powers of two, whose index arithmetic is presumably cheaper.
        softmax: cycles per softmax.
        add_element: cycles per element of an add that no core takes.
        depthwise_mac: cycles per multiply-accumulate of a depthwise convolution that no core takes.
        layer: cycles per call of a layer on a core, in addition to the driver calls.
    """

    layout_byte: float
    pool_element: float
    pool_element_pow2: float
    softmax: float
    add_element: float
    depthwise_mac: float
    layer: float


PUBLISHED_HOST = PublishedHost(
    layout_byte=6.0,
    pool_element=16.3,
    pool_element_pow2=9.5,
    softmax=3_000.0,
    add_element=7.8,
    depthwise_mac=10.75,
    layer=400.0,
)
