"""Writing a Relax module as the ONNX model that it means.

TVM's importers of ONNX and torch write the operators of their sources nearly one by one, so that
they can be written back.  Their modules are then read, or quantized, as ONNX files are: by the same
code, and with the same numbers.  What the importers expand is joined again where its meaning
depends on it: a product and the bias behind it, and loop nests that pad, tile, flip or clip.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from htvm.frontend.relax_onnx import elementwise, layers, shapes
from htvm.frontend.relax_onnx.joined import joined
from htvm.frontend.relax_onnx.writer import Handler, Writer

if TYPE_CHECKING:
    from onnx import ModelProto
    from tvm.ir import IRModule

__all__ = ["HANDLERS", "onnx_of"]

HANDLERS: Mapping[str, Handler] = {
    **elementwise.HANDLERS,
    **layers.HANDLERS,
    **shapes.HANDLERS,
}
"""Handlers by Relax operator; each returns the names of the tensors that it wrote."""


def onnx_of(module: IRModule, *, tflite: bool = False) -> ModelProto:
    """Return the model that function ``main`` of a module means.

    Args:
        module: the module.
        tflite: whether it comes from TVM's TFLite importer.  It may then have what
            `htvm.frontend.onnx.tflite_qdq` reads: zero points of int32, which become those of
            their tensors' types, and maps with channels last, whose nodes are of a domain of
            their own.

    Raises:
        UnsupportedError: an operator, or a form of it, has no counterpart; the message names the
            variable it is bound to.
        IntegerFormError: there is no function ``main``.
    """
    return Writer(module, HANDLERS, joined, tflite=tflite).written()
