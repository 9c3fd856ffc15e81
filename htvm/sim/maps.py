"""Memory maps of L1 and of the arena in L2, over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from htvm.activity import MemoryBlock, MemoryMap

if TYPE_CHECKING:
    from byoc_dory.region import RegionCode
    from htvm.compiled import Compiled


def memory_maps(compiled: Compiled) -> tuple[MemoryMap, ...]:
    """Return a map for each memory that regions plan, followed by that of the arena."""
    return (*_l1_maps(compiled), _arena_map(compiled))


def _l1_maps(compiled: Compiled) -> tuple[MemoryMap, ...]:
    """Return one map per L1; regions run one after another, so their blocks follow each other."""
    soc = compiled.target.soc
    number = {step.symbol: index for index, step in enumerate(compiled.program.steps)}
    found: dict[str, list[MemoryBlock]] = {}
    peaks: dict[str, int] = {}
    for code in compiled.regions.values():
        if code.plan is None or not code.plan.l1_map:
            continue
        memory = soc.accelerator(code.plan.layers[0].accelerator).l1
        found.setdefault(memory, []).extend(_region_blocks(code, number))
        # Beyond the last block are the bytes that a layer overwrites behind its result.
        peaks[memory] = max(peaks.get(memory, 0), code.plan.l1_peak)
    maps = []
    for memory, blocks in found.items():
        blocks.sort(key=lambda block: (block.first, block.offset))
        maps.append(MemoryMap(memory, soc.memory(memory).size, peaks[memory], tuple(blocks)))
    return tuple(maps)


def _region_blocks(code: RegionCode, number: dict[str, int]) -> list[MemoryBlock]:
    assert code.plan is not None
    steps = [number[kernel.symbol] for kernel in code.kernels if kernel.kind == "layer"]
    return [
        MemoryBlock(
            buffer.tensor,
            buffer.offset,
            buffer.bytes,
            steps[buffer.first],
            steps[buffer.last],
            buffer.resident,
        )
        for buffer in code.plan.l1_map
        if buffer.bytes
    ]


def _arena_map(compiled: Compiled) -> MemoryMap:
    program = compiled.program
    offsets = dict(program.plan.offsets)
    blocks = [
        MemoryBlock(buffer.name, offsets[buffer.name], buffer.bytes, buffer.first, buffer.last)
        for buffer in program.buffers
        if buffer.bytes
    ]
    blocks.sort(key=lambda block: (block.first, block.offset))
    return MemoryMap("L2 arena", program.plan.peak, program.plan.peak, tuple(blocks))
