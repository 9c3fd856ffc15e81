"""Helper: a report with everything in it, made up, and one with many small steps."""

from __future__ import annotations

from htvm.activity import Interval
from htvm.result import Causes
from htvm.tools.report.data import L1Use, L2Use, LayerRow, SqnrRow, Summary, Unit
from htvm.tools.report.parts import (
    Core,
    Energy,
    MemoryBlock,
    MemoryMap,
    NetworkNode,
    Recipe,
    SocInfo,
)
from htvm.tools.report.types import Report

__all__ = ["WHOLE", "deep"]

_CONV = Causes(
    array=700, weights=100, trigger=50, dma=200, dma_alone=100, host=150, host_alone=50, waiting=850
)
_HOST = Causes(0, 0, 0, 0, 0, 480, 480, 0)
_RUN = Causes(700, 100, 50, 200, 100, 650, 550, 850)

WHOLE = Report(
    Summary(
        network="tiny",
        target="diana",
        platform="rv32",
        clock_hz=260_000_000,
        memory=L2Use(5_000, 80_000, 12_288, 4_096, 512_000, 12_000, 3_000),
        cycles=1_500,
        units=(Unit("host", 650, "CPU kernels", 550), Unit("digital", 850, "16x16 array", 850)),
        notes=("noise of 0.5 steps",),
        causes=_RUN,
        policy="bitwidth",
        schedule="overlapped",
    ),
    (
        LayerRow(
            "conv2d_0", "conv2d", "digital", "3x32x32 -> 16x32x32, 3x3", 256_000, 1_000, 980,
            "16,3,32,32", 24_576, "model/conv;bias", _CONV, 2, True, "input and output", "layer",
            10, 3_072, 16_384, 496, 0.096,
        ),
        LayerRow(
            "softmax_0 <b>\"&'", "softmax", "cpu", cycles=480, predicted_cycles=600, causes=_HOST,
            kind="cpu", start=1_012, l2_read=12, l2_written=12, l2_weights=1_024,
        ),
    ),
    sqnr=(SqnrRow("conv2d_0", 31.5),),
    output_sqnr_db=27.25,
    output_largest=7,
    l1=(L1Use("region_0", 1, 256_000, 24_576, 24_576, ("conv2d_0",), 980, 1_100, 0.01),),
    measured_on="24 inputs",
    same_decision=0.96,
    machine=SocInfo("DIANA", "RV32IMC host", (Core("digital", "16x16 array", 256.0),), 16.0),
    timeline=(
        Interval("dma", 20, 120),
        Interval("waiting", 100, 950),
        Interval("digital", 110, 960),
        Interval("dma", 960, 1_000),
    ),
    maps=(
        MemoryMap("L1", 256_000, 24_576, (MemoryBlock("conv2d_0", 0, 24_576, 0, 0, True),)),
        MemoryMap("L2 arena", 12_288, 12_288, (MemoryBlock("conv2d_0", 0, 12_288, 0, 1),)),
    ),
    graph=(
        NetworkNode("conv2d_0", "conv2d", "digital", ("input",), 256_000),
        NetworkNode("softmax_0 <b>\"&'", "softmax", "cpu", ("conv2d_0",)),
    ),
    energy=Energy(0.096, 1_000, ("digital: 24.96 mW (public code: ODiMO)",)),
    recipe=Recipe(
        "0.1.0", "htvm report tiny.onnx --out report.html", (("target", "diana"),), "tiny.onnx",
        "ab" * 32, "cd" * 32,
    ),
)  # fmt: skip
"""What a build and a run on the rv32 platform leave, with names that need escaping."""


def deep(layers: int, steps: int, bursts: int) -> Report:
    """A transformer on a cluster of nine cores with an accelerator: ``layers * steps`` steps.

    Each step has ``bursts`` intervals of the DMA and of the accelerator or of each core.
    """
    rows, nodes, timeline, blocks = [], [], [], []
    length = 40 * bursts + 20
    for number in range(layers * steps):
        layer, step = divmod(number, steps)
        name, begin = f"layer{layer}_step{step}", number * length
        home = "ita" if step % 3 else "cluster"
        units = ["ita"] if step % 3 else [f"core{i}" for i in range(9)]
        for burst in range(bursts):
            at = begin + 40 * burst
            timeline.append(Interval("dma", at, at + 15))
            timeline += [Interval(unit, at + 10, at + 38) for unit in units]
        timeline.append(Interval("waiting", begin + 10, begin + length - 10))
        busy = 28 * bursts
        causes = Causes(busy, 0, 0, 15 * bursts, 10 * bursts, 20, length - 38 * bursts, length - 20)
        rows.append(
            LayerRow(
                name, "matmul", home, "128x128 -> 128x512", 8_388_608, length, length + step,
                "64,64,64", 40_000, "", causes, 8, True, "", "layer", begin, 16_384, 65_536, 4_096,
            )
        )  # fmt: skip
        before = [f"layer{layer}_step{step - 1}"] if step else []
        if layer and not step:
            before = [f"layer{layer - 1}_step{steps - 1}"]
        nodes.append(NetworkNode(name, "matmul", home, tuple(before), 8_388_608))
        last = min(number + 1, layers * steps - 1)
        blocks.append(MemoryBlock(name, number % 4 * 16_384, 16_384, number, last))
    cycles = layers * steps * length
    memory = L2Use(30_000, 24_000_000, 65_536, 8_192, 32 * 2**20)
    return Report(
        Summary("deep", "cluster", "rv32", 425_000_000, memory, cycles),
        tuple(rows),
        machine=SocInfo("a cluster", "RV32IMA host", (Core("ita", "ITA", 1024.0),), 64.0),
        timeline=tuple(timeline),
        maps=(MemoryMap("L1", 120_000, 65_536, tuple(blocks)),),
        graph=tuple(nodes),
    )
