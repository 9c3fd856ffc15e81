"""SoC descriptions: memories, DMA, host and accelerators as data, and the targets."""
