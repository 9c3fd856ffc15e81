"""Dialects of research flows: tensors declared as reals that hold integers, and plain reals.

`values` has the values that tensors can stand for while a graph is read, `reader` walks a graph,
`standard` and `chains` handle standard operators in integers; `chains`, `pulp` and
`real` have the readers (see `htvm.frontend.onnx`).
"""
