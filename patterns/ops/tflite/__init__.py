"""Operators with the arithmetic of TFLite Micro's reference kernels."""
