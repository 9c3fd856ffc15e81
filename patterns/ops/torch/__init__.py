"""Operators with the arithmetic of quantized programs of torch."""
