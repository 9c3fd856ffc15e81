"""Our cycles: the command stream of each layer, executed by the accelerator's simulator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.estimators.cases import DMA_BYTES, SRAM, Shape
from byoc_dory.layers import Shift, Tensor, conv2d_layer
from byoc_dory.region import Region
from byoc_dory.soc.dla.assemble import assemble
from byoc_dory.soc.dla.design import Design
from byoc_dory.soc.dla.memory import plan
from byoc_dory.soc.dla.region_file import lower
from byoc_dory.soc.dla.simulator import Simulator
from byoc_dory.soc.registry import resolve
from htvm.sim.native import native_library

__all__ = ["Executed", "executed"]


@dataclass(frozen=True)
class Executed:
    """Cycles of one layer: of instructions that compute, and of transfers."""

    computing: int
    transfers: int


def executed(pes: tuple[int, int], shapes: tuple[Shape, ...]) -> Iterator[Executed]:
    """Yield the cycles of each layer on the design with these PEs."""
    design = Design(*pes, sram=SRAM, dma_bytes=DMA_BYTES)
    simulator = Simulator(native_library(resolve("dla").soc), design)
    rng = np.random.default_rng(0)
    for shape in shapes:
        source = Tensor("x", (shape.C, shape.iy, shape.ix), "int8")
        layer = conv2d_layer(
            "layer",
            source,
            "y",
            rng.integers(-128, 128, (shape.K, shape.C, shape.f, shape.f)).astype(np.int8),
            np.zeros(shape.K, np.int32),
            stride=(shape.stride, shape.stride),
            pad=(0, 0, 0, 0),
            requant=Shift(8),
            clip=(-128, 127),
        )
        region, weights = lower(Region("region", (layer,), (source,), (layer.output,)))
        x = rng.integers(-128, 128, (shape.iy, shape.ix, shape.C)).astype(np.int8)
        stream = assemble(region, design, plan(region, design))
        _, (count,) = simulator.run(region, weights, {"x": x}, stream)
        yield Executed(count.computing, count.cycles["DMA"])
