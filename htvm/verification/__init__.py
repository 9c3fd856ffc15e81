"""Holding what the simulated SoC computed against the reference, step by step."""
