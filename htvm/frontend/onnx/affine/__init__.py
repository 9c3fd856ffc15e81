"""Affine quantization in ONNX files: scales and zero points, as onnxruntime's quantizer has them.

`values` is what a tensor can be while a graph is read, `reader` walks it, and one file for each
kind of operator says what its nodes mean.  `htvm.frontend.onnx.qdq` and
`htvm.frontend.onnx.qoperator` are the readers.
"""
