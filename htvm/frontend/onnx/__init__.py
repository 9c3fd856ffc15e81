"""ONNX files: one core that checks them, and one reader for each dialect.

`file` reads and checks the protobuf, `graph` is what readers see of it, `dialect` knows the readers
and recognises which one a file is for, `loader` makes a `Model` of what a reader returns.

A reader is a module with two functions: ``marks(graph, options)`` returns the nodes only its
dialect has (none: not its file), and ``read(graph, options)`` returns a `network.Network` of
operators of `patterns.ops` (`htvm.frontend.operators.Applied`).  Enter it in `dialect.READERS`;
nothing else has to know it.  What attributes say is read alike by all (`forms`, `windows`).  Errors
name the node with ``node.where``, and are `UnsupportedError` where the file is sound.
"""

from __future__ import annotations

from htvm.frontend.onnx.loader import load_onnx

__all__ = ["load_onnx"]
