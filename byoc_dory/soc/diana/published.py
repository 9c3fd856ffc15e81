"""What host code cost in the published runs of DIANA, by the fit to Table I (HTVM, DAC 2023).

These stand for the chip's own host (with SIMD instructions, hardware loops and DORY's templates),
which is not the simulated one.  They serve to compare a simulated run with the published figures,
and nothing else: not the cost model, not the simulator.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PUBLISHED_HOST", "PublishedHost"]


@dataclass(frozen=True)
class PublishedHost:
    """Cycles of host code, all derived (fitted).

    Attributes:
        layout_byte: converting a byte at a border between host and cores; adds are neutral.
        pool_element, pool_element_pow2: average pooling, an input element; the second where the
            map's sides are powers of two, whose index arithmetic is suspected to be cheaper.
        softmax: one softmax.
        add_element: adding an element, where no core does.
        depthwise_mac: a multiply-accumulate of a depthwise convolution, where no core does.
        layer: beside the driver calls of a layer on a core, each time it is called.
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
