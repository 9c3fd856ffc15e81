"""Microcontrollers without accelerators: their cores, and the boards that carry them."""
