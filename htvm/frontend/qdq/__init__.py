"""Reading the operators of a quantize/dequantize (QDQ) Relax module.

In these modules int8 tensors are dequantized, a float operator works on them, and its result is
quantized again.  The numbers are float, but the meaning is integer arithmetic; this reader finds
the operators with their integer weights, and drops the floats.  Any module of this form can be
read, not only those of TVM's own importers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from htvm.frontend.qdq import pointwise, products, quantization, shapes
from htvm.frontend.qdq.reader import Handler, Network, Reader, Value
from htvm.frontend.registration import registered

if TYPE_CHECKING:
    from tvm.ir import IRModule

__all__ = ["HANDLERS", "Network", "read_qdq"]

_HANDLERS: Mapping[str, Handler] = {
    "relax.add": pointwise.add,
    "relax.astype": shapes.astype,
    "relax.clip": pointwise.clip,
    "relax.dequantize": quantization.dequantize,
    "relax.matmul": products.matmul,
    "relax.multiply": shapes.multiply,
    "relax.nn.avg_pool2d": shapes.avg_pool2d,
    "relax.nn.conv2d": products.conv2d,
    "relax.nn.max_pool2d": shapes.max_pool2d,
    "relax.nn.pad": shapes.pad,
    "relax.nn.relu": pointwise.relu,
    "relax.nn.softmax": pointwise.softmax,
    "relax.permute_dims": shapes.permute_dims,
    "relax.quantize": quantization.quantize,
    "relax.reshape": shapes.reshape,
}

HANDLERS = registered("Relax", _HANDLERS, Value)
"""Handlers by Relax operator."""


def read_qdq(module: IRModule) -> Network:
    """Return the operators of a QDQ module.

    Raises:
        UnsupportedError: an operator or a quantization is not supported; the message names the
            variable it is bound to.
        IntegerFormError: there is no function ``main``.
    """
    return Reader(module, HANDLERS).read()
