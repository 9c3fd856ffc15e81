"""Functions of single elements, sums and products of tensors, and quantization."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from tvm import relax

from htvm.frontend.onnx.windows import CHANNELS_LAST
from htvm.frontend.relax_onnx.writer import Handler, Writer
from patterns.primitive import dtype_of, shape_of

if TYPE_CHECKING:
    from tvm.relax import Call


_SAME = {
    "relax.abs": "Abs",
    "relax.bitwise_and": "BitwiseAnd",
    "relax.bitwise_or": "BitwiseOr",
    "relax.bitwise_xor": "BitwiseXor",
    "relax.ceil": "Ceil",
    "relax.cos": "Cos",
    "relax.divide": "Div",
    "relax.equal": "Equal",
    "relax.erf": "Erf",
    "relax.exp": "Exp",
    "relax.floor": "Floor",
    "relax.floor_mod": "Mod",
    "relax.greater": "Greater",
    "relax.greater_equal": "GreaterOrEqual",
    "relax.isinf": "IsInf",
    "relax.isnan": "IsNaN",
    "relax.less": "Less",
    "relax.less_equal": "LessOrEqual",
    "relax.log": "Log",
    "relax.logical_and": "And",
    "relax.logical_not": "Not",
    "relax.logical_or": "Or",
    "relax.logical_xor": "Xor",
    "relax.maximum": "Max",
    "relax.minimum": "Min",
    "relax.multiply": "Mul",
    "relax.negative": "Neg",
    "relax.nn.relu": "Relu",
    "relax.power": "Pow",
    "relax.round": "Round",
    "relax.sigmoid": "Sigmoid",
    "relax.sign": "Sign",
    "relax.sin": "Sin",
    "relax.sqrt": "Sqrt",
    "relax.subtract": "Sub",
    "relax.tanh": "Tanh",
    "relax.where": "Where",
}


def _add(writer: Writer, call: Call) -> str:
    """Write a sum, or the bias of the product before it, which the importers write apart."""
    for product, bias in (call.args, reversed(call.args)):
        made = writer.sole_maker(product, "Conv", "ConvTranspose", "MatMul", "Gemm", "Transpose")
        turned = None
        if made is not None and made.op_type == "Transpose":  # maps with channels last
            turned, made = made, writer.maker(made.input[0], "Conv", "ConvTranspose")
        if made is None or len(made.input) != 2 or shape_of(product) != shape_of(call):
            continue
        shape = shape_of(product)
        dense = made.op_type in ("MatMul", "Gemm")
        if dense and len(shape) != 2:
            continue
        last = dense or turned is not None or made.domain == CHANNELS_LAST
        axis = -1 if last else 1 - len(shape)
        vector = writer.vector(bias, shape[axis], axis)
        if vector:
            op = "Gemm" if dense else made.op_type
            result = writer.replace(made, op, [*made.input, vector])
            return result if turned is None else writer.replace(turned, "Transpose", [result])
    return writer.same(call, "Add")


def _astype(writer: Writer, call: Call) -> str:
    from onnx import helper

    if dtype_of(call) == "int8":
        pool = writer.sole_maker(call.args[0], "AveragePool")
        wide = None if pool is None else writer.maker(pool.input[0], "Cast")
        if pool is not None and wide is not None:
            # TVM's TFLite importer averages int8 as int32.
            return writer.replace(pool, "AveragePool", [wide.input[0]])
    dtype = helper.np_dtype_to_tensor_dtype(np.dtype(dtype_of(call)))
    return writer.node("Cast", [writer.name(call.args[0])], to=dtype)


def _clip(writer: Writer, call: Call, *bounds: float) -> str:
    dtype = dtype_of(call)
    limits = [
        writer.constant(bound, dtype) for bound in bounds or map(writer.number, call.args[1:])
    ]
    return writer.node("Clip", [writer.name(call.args[0]), *limits])


def _times(writer: Writer, call: Call, op: str = "") -> str:
    """Write a tensor times itself, or times a function of it."""
    source = writer.name(call.args[0])
    return writer.node("Mul", [source, writer.node(op, [source]) if op else source])


def _softplus(writer: Writer, call: Call) -> str:
    if float(call.attrs.beta) != 1:
        raise writer.unsupported(f"a softplus with beta {call.attrs.beta}")
    return writer.same(call, "Softplus")


def _isfinite(writer: Writer, call: Call) -> str:
    checks = [writer.same(call, op) for op in ("IsNaN", "IsInf")]
    return writer.node("Not", [writer.node("Or", checks)])


def _prelu(writer: Writer, call: Call) -> str:
    rank, slope = len(shape_of(call)), writer.name(call.args[1])
    axis = int(call.attrs.axis) % rank
    behind = (-1,) + (1,) * (rank - 1 - axis)
    shaped = writer.node("Reshape", [slope, writer.constant(behind, "int64")])
    return writer.node("PRelu", [writer.name(call.args[0]), shaped])


def _full(writer: Writer, call: Call) -> str:
    value = call.args[1] if len(call.args) > 1 else None
    fill = 1.0 if call.op.name.startswith("relax.ones") else 0.0
    if value is not None:
        if not hasattr(value, "value") or shape_of(value) != ():
            raise writer.unsupported("a filling that is computed at run time")
        fill = float(value.value.numpy())
    return writer.constant(np.full(shape_of(call), fill), dtype_of(call))


def _quantize(op: str, writer: Writer, call: Call) -> str:
    """Write a quantization or dequantization; zero points are like their tensor and scales."""
    source, scale, zero = call.args
    quantized = dtype_of(call) if op == "QuantizeLinear" else dtype_of(source)
    names = [writer.name(arg) for arg in call.args]
    per_axis = isinstance(scale.ty, relax.TensorType) and np.prod(shape_of(scale)) > 1
    if writer.tflite:
        names[2] = _narrowed(writer, names[2], quantized, shape_of(scale) if per_axis else ())
    elif dtype_of(zero) != quantized:
        raise writer.unsupported(
            f"a zero point of type {dtype_of(zero)} of a tensor of type {quantized}",
            "a module from TFLite is quantized already: give it to htvm.load",
        )
    more = {"axis": int(call.attrs.axis)} if per_axis else {}
    return writer.node(op, names, **more)


def _narrowed(writer: Writer, name: str, dtype: str, shape: tuple[int, ...]) -> str:
    """Write the zero points of TVM's TFLite importer, int32 and one for all, as ONNX has them."""
    zeros = writer.value(name)
    if zeros is None:
        raise writer.unsupported("its zero point is computed at run time", "make it constant")
    if dtype not in ("int8", "uint8", "int16", "int32"):
        raise writer.unsupported(f"a quantized tensor of type {dtype}", "use int8")
    limits = np.iinfo(dtype)
    if zeros.min(initial=0) < limits.min or zeros.max(initial=0) > limits.max:
        raise writer.unsupported(f"a zero point beyond {dtype}: {zeros.reshape(-1)[:8].tolist()}")
    return writer.constant(np.full(shape, zeros) if zeros.size == 1 else zeros, dtype)


HANDLERS: Mapping[str, Handler] = {
    **{name: partial(Writer.same, op=op) for name, op in _SAME.items()},
    "relax.add": _add,
    "relax.astype": _astype,
    "relax.clip": _clip,
    "relax.dequantize": partial(_quantize, "DequantizeLinear"),
    "relax.full": _full,
    "relax.full_like": _full,
    "relax.isfinite": _isfinite,
    "relax.nn.dropout": lambda writer, call: (writer.name(call.args[0]),) * 2,
    "relax.nn.gelu": partial(Writer.same, op="Gelu", approximate="none"),
    "relax.nn.gelu_tanh": partial(Writer.same, op="Gelu", approximate="tanh"),
    "relax.nn.leakyrelu": partial(Writer.same, op="LeakyRelu", alpha=float),
    "relax.nn.prelu": _prelu,
    "relax.nn.relu6": lambda writer, call: _clip(writer, call, 0, 6),
    "relax.nn.silu": lambda writer, call: _times(writer, call, "Sigmoid"),
    "relax.nn.softplus": _softplus,
    "relax.ones": _full,
    "relax.ones_like": _full,
    "relax.quantize": partial(_quantize, "QuantizeLinear"),
    "relax.rsqrt": lambda writer, call: writer.node("Reciprocal", [writer.same(call, "Sqrt")]),
    "relax.square": _times,
    "relax.zeros": _full,
    "relax.zeros_like": _full,
}
