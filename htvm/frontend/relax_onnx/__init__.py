"""Writing a Relax module as the ONNX model that it means.

TVM's importers of ONNX and torch write the operators of their sources nearly one by one, so that
they can be written back.  Their modules are then read, or quantized, as ONNX files are: by the same
code, and with the same numbers.  What the importers expand is joined again where its meaning
depends on it: a product and the bias behind it, and loop nests that pad, tile, flip or clip.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from htvm.frontend.relax_onnx import elementwise, layers, shapes
from htvm.frontend.relax_onnx.writer import Handler, Writer

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto
    from tvm.ir import IRModule

    from htvm.frontend.relax_onnx.writer import Writer

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


# Operator and operands: a pattern, a number, the name of a tensor, or "number:" and its name.
_CLIPPED = ("Clip", ("Add", "x", 3.0), 0.0, 6.0)
_HARD_SWISH = (
    ("Mul", "x", ("Div", _CLIPPED, 6.0)),
    ("Div", ("Mul", "x", _CLIPPED), 6.0),  # from TFLite; torch's rounds as it is written
)
_HARD_SIGMOID = ("Clip", ("Add", ("Mul", "number:alpha", "x"), "number:beta"), 0.0, 1.0)
_ELU = (
    "Add",
    ("Mul", "number:minus_alpha", ("Relu", ("Sub", 1.0, ("Exp", "x")))),
    ("Relu", "x"),
)
_PRELU = ("Where", ("Greater", "x", 0.0), "x", ("Mul", "slope", "x"))
_SOFTPLUS = (
    ("Where", ("Greater", "x", 20.0), "x", ("Log", ("Add", ("Exp", "x"), 1.0))),
    ("Add", ("Max", "x", 0.0), ("Log", ("Add", 1.0, ("Exp", ("Neg", ("Abs", "x")))))),
)
_WRAPPED = ("Where", ("Less", "x", 0.0), ("Add", "x", "size"), "x")
# A cast of reals to integers: what is not finite becomes 0, what is too large wraps around.
_FINITE = ("Where", ("Not", ("Not", ("Or", ("IsNaN", "x"), ("IsInf", "x")))), 0.0, "x")
_SIGNED = ("Where", ("GreaterOrEqual", "bits", "half"), ("Sub", "bits", "span"), "bits")
# torch's softmax in attention: rows whose scores are all masked become zeros.
_GUARDED = (
    "Where",
    ("Not", ("Cast", ("ReduceMax", ("Cast", ("Not", ("Equal", "scores", -np.inf))), "axis"))),
    "zeros",
    "result",
)
_REVERSED = ("Slice", "x", -1.0, "end", "axis", -1.0)
# torch's quantization, as `htvm.relax.torch_converters` writes it.
_QUANTIZED = (
    "Clip",
    ("Add", ("Round", ("Mul", "x", ("Cast", ("Div", 1.0, "number:scale")))), "number:zero"),
    "number:low",
    "number:high",
)


def joined(writer: Writer, name: str) -> str:
    """Return the result of one operator in place of what it was expanded to, or the name itself."""
    if found := _match(writer, name, _HARD_SWISH[writer.tflite]):
        return writer.node("HardSwish", [found["x"]])
    if found := _match(writer, name, _HARD_SIGMOID):
        return writer.node("HardSigmoid", [found["x"]], alpha=found["alpha"], beta=found["beta"])
    if found := _match(writer, name, _ELU):
        return writer.node("Elu", [found["x"]], alpha=-found["minus_alpha"])
    if found := _match(writer, name, _PRELU):
        return writer.node("PRelu", [found["x"], found["slope"]])
    for pattern in _SOFTPLUS:
        if found := _match(writer, name, pattern):
            return writer.node("Softplus", [found["x"]])
    if (found := _match(writer, name, _GUARDED)) and _is_product(writer, found["scores"]):
        return str(found["result"])
    if found := _match(writer, name, _WRAPPED):
        return str(found["x"])  # ONNX counts negative indices from the end itself
    cast = writer.maker(name, "Cast")
    if cast is not None and (quantized := _quantized(writer, cast)):
        return quantized
    if cast is not None and (source := _cast_from(writer, cast.input[0])):
        return writer.node("Cast", [source], to=cast.attribute[0].i)
    if found := _match(writer, name, ("Sub", "last", "index")):
        if chosen := writer.maker(found["index"], "ArgMax", "ArgMin"):
            if turned := _match(writer, chosen.input[0], _REVERSED):
                more = {item.name: item.i for item in chosen.attribute}
                return writer.node(chosen.op_type, [turned["x"]], select_last_index=1, **more)
    return name


def _is_product(writer: Writer, name: str) -> bool:
    """Whether a tensor is a product of matrices, which no constant could have masked."""
    made = writer.maker(name)
    while made is not None and made.op_type == "Reshape":
        made = writer.maker(made.input[0])
    return made is not None and made.op_type == "MatMul"


def _quantized(writer: Writer, cast: NodeProto) -> str:
    """Return what torch's quantization, which a cast ends, quantizes to, or nothing."""
    from onnx import helper

    found = _match(writer, cast.input[0], _QUANTIZED)
    dtype = helper.tensor_dtype_to_np_dtype(cast.attribute[0].i)
    if not found or dtype.name not in ("int8", "uint8", "int16"):
        return ""
    source, scale, zero = found["x"], np.float32(found["scale"]), found["zero"]
    limits = np.iinfo(dtype)
    bounds = found["low"], found["high"]
    if bounds != (limits.min, limits.max):
        # Bounds on the grid, so that what they cut off is the same.
        grid = [writer.constant(scale * (bound - zero), "float32") for bound in bounds]
        source = writer.node("Clip", [source, *grid])
    return writer.node(
        "QuantizeLinear", [source, writer.constant(scale), writer.constant(zero, dtype.name)]
    )


def _cast_from(writer: Writer, name: str) -> str:
    """Return the reals that a tensor holds as integers of a type, or nothing."""
    if found := _match(writer, name, _SIGNED):
        name = found["bits"]
    for pattern in (_FINITE, *((op, ("Cast", "x"), "mask") for op in ("BitwiseAnd", "Mod"))):
        if found := _match(writer, name, pattern):
            return str(found["x"])
    return ""


def _match(writer: Writer, name: str, pattern: Any) -> dict[str, Any]:
    """Return what the names in a pattern stand for, or nothing if a tensor is not of its form."""
    found: dict[str, Any] = {}
    return found if _matches(writer, name, pattern, found) else {}


def _matches(writer: Writer, name: str, pattern: Any, found: dict[str, Any]) -> bool:
    if isinstance(pattern, tuple):
        made = writer.maker(name, pattern[0])
        if made is None or len(made.input) != len(pattern) - 1:
            return False
        pairs = zip(made.input, pattern[1:], strict=True)
        return all(_matches(writer, item, part, found) for item, part in pairs)
    if isinstance(pattern, float) or pattern.startswith("number:"):
        value = writer.value(name)
        if value is None or value.size != 1:
            return False
        number = float(np.reshape(value, ()))
        if isinstance(pattern, float):
            return number == pattern
        found[pattern.removeprefix("number:")] = number
        return True
    return bool(found.setdefault(pattern, name) == name)
