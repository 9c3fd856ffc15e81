"""SoC descriptions: memories, DMA, host and accelerators as data, and what each target may use."""
