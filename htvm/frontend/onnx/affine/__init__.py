"""Affine quantization in ONNX files: scales and zero points, as written by onnxruntime's quantizer.

`values` has the values that tensors can stand for while a graph is read, `reader` walks the graph,
and one file for each kind of operator handles its nodes.  `htvm.frontend.onnx.quantized` and
`htvm.frontend.onnx.quantized` are the readers.
"""
