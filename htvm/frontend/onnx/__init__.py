"""ONNX files: common code that checks them, and one reader for each dialect.

`file` reads and checks the protobuf, `graph` is the form that readers see, `dialect` has the
readers and recognises which one a file needs, `loader` makes a `Model` from a reader's result.

A `dialect.DialectReader` says which nodes only its dialect has (none: not its file), and reads a
graph as a `dialect.Network` of operators of `patterns.ops` (`htvm.frontend.operators.Applied`).
Enter it in `dialect.READERS`; nothing else has to know it.  What attributes say is read alike by
all (`forms`, `windows`).  Errors name the node with ``node.where``, and are `UnsupportedError`
where the file is sound.
"""

from __future__ import annotations

from htvm.frontend.onnx.loader import load_onnx

__all__ = ["load_onnx"]
