"""Ahead of time: CPU kernels, the L2 plan, the entry function."""
