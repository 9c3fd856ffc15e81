"""Dialects of research flows: tensors declared as reals that hold integers, and plain reals.

`values` is what a tensor can be while it is read, `reader` walks a graph, `products`, `movement`
and `chains` handle standard operators in integers; `pulp`, `quantlib`, `diana` and `real` are the
readers (see `htvm.frontend.onnx`).
"""
