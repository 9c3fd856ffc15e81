"""Attention, GELU and layer norm in ITA's integers, which `htvm.torch` writes as its own operators.

A program holds the numbers of each as a constant: scales, multipliers and shifts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from byoc_dory.layers.rowwise import ItaGelu, ItaSoftmax, LayerNorm
from htvm.frontend.onnx.affine.reader import Handler, NodeReader
from htvm.frontend.onnx.affine.values import Constant, Pending, Value, View
from htvm.frontend.operators import Activation, Clip, Quantization
from htvm.frontend.torch.writer import Call
from htvm.frontend.torch.writer import Handler as Writing
from patterns.op import INT8
from patterns.ops.integer.combine import IntegerMatmul
from patterns.ops.integer.limits import INT32_MAX
from patterns.ops.integer.rescale import Rescale
from patterns.ops.pulp.ita import ItaActivation, ItaMax
from patterns.ops.pulp.norm import PulpLayerNorm

_LARGEST_SHIFT = 31


def _written(call: Call, op: str, *tensors: str, **attributes: int) -> str:
    return call.node(op, [call.tensor(name) for name in (*tensors, "numbers")], **attributes)


def _write_attention(call: Call) -> str:
    call.ignore("scale")  # of the reals that training has gradients of
    group, step_bits, numerator = call.integers("softmax", 3)
    return _written(
        call, "ItaAttention", "query", "key", "value",
        group=group, step_bits=step_bits, numerator=numerator,
    )  # fmt: skip


def _write_gelu(call: Call) -> str:
    return _written(call, "ItaGelu", "x")


def _write_norm(call: Call) -> str:
    call.ignore("eps")  # likewise
    return _written(call, "IntegerLayerNorm", "x", "weight", "bias")


WRITTEN: Mapping[str, Writing] = {
    "htvm.integer_layer_norm": _write_norm,
    "htvm.ita_attention": _write_attention,
    "htvm.ita_gelu": _write_gelu,
}
"""Handlers by operator of torch."""


# ------------------------------------------------------------------------------ reading them


def _operands(node: NodeReader, roles: Sequence[str]) -> list[View]:
    return [node.view(index, role) for index, role in enumerate(roles)]


def _numbers(node: NodeReader, read: Sequence[View], count: int) -> tuple[float, list[int]]:
    """Return the scale of the result, and the ``count`` integers behind it.

    Raises:
        ModelError: there are others, or an operand has another quantization than they say.
    """
    found = node.array(len(node.inputs) - 1, "numbers").reshape(-1).astype("float64")
    scales, others = found[: len(read) + 1].tolist(), found[len(read) + 1 :]
    if len(others) != count or not np.isfinite(found).all() or min(scales) <= 0:
        raise node.damaged(f"numbers {found.tolist()}")
    if (others != np.rint(others)).any() or np.abs(others).max(initial=0) > 1 << 16:
        raise node.damaged(f"numbers {others.tolist()}, which must be integers of 16 bits")
    for view, scale in zip(read, scales, strict=False):
        if view.dtype != "int8" or view.step != Quantization(scale, 0):
            raise node.damaged(
                f"an operand of {view.dtype} with scale {view.step.scale} and zero point "
                f"{view.step.zero_point}, where the numbers say {scale}"
            )
    return scales[-1], [int(number) for number in others.tolist()]


def _pending(
    node: NodeReader, shape: tuple[int, ...], scale: float, write: Callable[[], Activation]
) -> Pending:
    """Return a result that must be quantized as its numbers say."""

    def finish(step: Quantization, clip: Clip, bias: Constant | None) -> Activation:
        if step != Quantization(scale, 0) or clip != INT8 or bias is not None:
            raise node.unsupported(
                f"a result that is quantized with scale {step.scale}, zero point "
                f"{step.zero_point} and bounds {clip}, where its numbers say {scale}",
                "quantize what htvm.torch.Quantizer wrote as it does",
            )
        made = write()
        node.reader.steps[made] = step
        return made

    return Pending(shape, finish)


def _rescale(node: NodeReader, mul: int, shift: int, bound: int) -> Rescale:
    """Return ``clip((x * mul + half) >> shift)``."""
    if not (0 <= mul < 256 and 0 <= shift <= _LARGEST_SHIFT):
        raise node.damaged(f"a multiplier of {mul} and a shift of {shift}")
    half = np.full((), (1 << shift) >> 1, "int32")
    return Rescale(np.full((), mul, "int32"), half, shift, INT8, bound=bound)


def _attention(node: NodeReader) -> Value:
    read = query, key, value = _operands(node, ("query", "key", "value"))
    scale, numbers = _numbers(node, read, 4)
    *batch, rows, size = query.shape
    keys = key.shape[-2] if len(key.shape) > 1 else 0
    if key.shape != (*batch, keys, size) or value.shape[:-1] != (*batch, keys) or not batch:
        raise node.damaged(f"attention of {[view.shape for view in read]}")
    names = ("group", "step_bits", "numerator")
    softmax = ItaMax(ItaSoftmax(*(node.integer(name) for name in names)))
    scores = _rescale(node, numbers[0], numbers[1], size * 128 * 128)
    context = _rescale(node, numbers[2], numbers[3], keys * 255 * 128)

    def write() -> Activation:
        products = node.write(
            IntegerMatmul(transpose_b=True), query.activation, key.activation, stem="similarity"
        )
        weights = node.write(softmax, node.write(scores, products, stem="scores"))
        mixture = node.write(IntegerMatmul(), weights, value.activation, stem="mixture")
        return node.write(context, mixture, stem="context")

    return _pending(node, (*batch, rows, value.shape[-1]), scale, write)


def _gelu(node: NodeReader) -> Value:
    (read,) = _operands(node, ("operand",))
    scale, (b, c, mul, shift) = _numbers(node, [read], 4)
    op = ItaActivation(ItaGelu(b, c, mul, shift, 0))
    return _pending(node, read.shape, scale, lambda: node.write(op, read.activation))


def _norm(node: NodeReader) -> Value:
    (read,) = _operands(node, ("operand",))
    scale, (shift,) = _numbers(node, [read], 1)
    factors = [node.vector(at, read.shape[-1], role) for at, role in ((1, "weight"), (2, "bias"))]
    if not 0 <= shift <= _LARGEST_SHIFT:
        raise node.damaged(f"a shift of {shift}")
    weight, bias = (np.rint(np.ldexp(part.astype("float64"), shift) / scale) for part in factors)
    bias = bias + ((1 << shift) >> 1)
    if max(np.abs(weight).max(), np.abs(bias).max()) > INT32_MAX:
        raise node.unsupported("factors of a norm that leave 32 bits", "a coarser result")
    op = PulpLayerNorm(LayerNorm(weight.astype("int32"), bias.astype("int32"), shift))
    return _pending(node, read.shape, scale, lambda: node.write(op, read.activation))


READ: Mapping[str, Handler] = {
    "IntegerLayerNorm": _norm,
    "ItaAttention": _attention,
    "ItaGelu": _gelu,
}
"""Handlers by operator of the graph."""
