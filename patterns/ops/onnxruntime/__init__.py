"""Operators with the arithmetic of onnxruntime's CPU kernels."""
