"""Cycles of single instructions, the same formulas as in ``runtime_c/soc/dla/model/dla_cycles.c``.

A convolution takes one cycle for each position of its window in each output, times the groups of
input channels and the groups of output channels that the PEs work on at a time; everything else one
cycle per PE-wide group of elements (derived, fact sheet of the published accelerator, section 4).
Reading operands from SRAM and writing results hides behind that.
"""

from __future__ import annotations

from byoc_dory.soc.dla.design import Design


def groups(size: int, width: int) -> int:
    """Return how many groups of ``width`` make ``size``."""
    return (size + width - 1) // width


def conv_cycles(design: Design, positions: int, channels: int, outputs: int) -> int:
    """Return the cycles of OP_CONV: ``positions`` is rows * columns * height * width."""
    return positions * groups(channels, design.pes_in) * groups(outputs, design.pes_out)


def depth_cycles(design: Design, positions: int, channels: int) -> int:
    """Return the cycles of OP_DEPTH_CONV and OP_POOL, which have one channel per PE."""
    return positions * groups(channels, design.pes)


def element_cycles(design: Design, elements: int) -> int:
    """Return the cycles of an element-wise instruction."""
    return groups(elements, design.pes)


def dma_cycles(design: Design, rows: int, size: int, contiguous: bool) -> int:
    """Return the cycles of a transfer of ``rows`` rows of ``size`` bytes."""
    if contiguous:
        rows, size = 1, rows * size
    return design.dma_setup + rows * groups(size, design.dma_bytes)
