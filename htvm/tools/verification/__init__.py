"""Comparing the simulated SoC's results with the reference, step by step."""
