"""Quantization and dequantization: ``quantized_decomposed`` and torchao's operators."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from htvm.frontend.torch.program import Ref
from htvm.frontend.torch.writer import Call, Handler

_TYPES = ("int8", "uint8", "int16")
_WEIGHTS = ("int8", "uint8", "int16", "int32")  # those of biases among them


def _step(call: Call, dtype: str) -> tuple[str, str]:
    """Return the names of the scale, which stays in double precision, and of the zero point."""
    zero, limits = call.integer("zero_point"), np.iinfo(dtype)
    if not limits.min <= zero <= limits.max:
        raise call.torch.unsupported(f"zero point {zero} of {dtype}", "one that the type holds")
    return call.constant(call.number("scale"), "float64"), call.constant(zero, dtype)


def _bounds(call: Call, dtype: str) -> tuple[int, int]:
    limits = np.iinfo(dtype)
    low = call.integer("quant_min", int(limits.min))
    high = call.integer("quant_max", int(limits.max))
    if not limits.min <= low <= high <= limits.max:
        raise call.torch.unsupported(f"bounds {low} and {high} of {dtype}")
    return low, high


def _quantize(call: Call) -> str:
    source, dtype = call.tensor("input"), call.text("dtype", "")
    if dtype not in _TYPES:
        raise call.torch.unsupported(
            f"activations of type {dtype}", f"{' and '.join(_TYPES)} are supported"
        )
    limits = np.iinfo(dtype)
    scale, zero = call.number("scale"), call.integer("zero_point")
    bounds = _bounds(call, dtype)
    if bounds != (limits.min, limits.max) and not _holds_already(call):
        if source in {item.name for item in call.writer.program.inputs}:
            # Reals that are given are integers before they are cut off, so that their range is
            # that of an operator.
            whole = call.node("QuantizeLinear", [source, *_step(call, dtype)])
            source = call.node("DequantizeLinear", [whole, *_step(call, dtype)])
        # Bounds on the grid, so that what they cut off is the same.
        ends = [call.constant(np.float32(scale) * (bound - zero), "float32") for bound in bounds]
        source = call.node("Clip", [source, *ends])
    return call.node("QuantizeLinear", [source, *_step(call, dtype)])


_MOVES = frozenset(
    f"aten.{name}"
    for name in (
        "clone", "contiguous", "dropout", "expand", "flatten", "max_pool1d", "max_pool2d",
        "permute", "relu", "reshape", "select", "slice", "squeeze", "transpose", "unflatten",
        "unsqueeze", "view",
    )
)  # fmt: skip
"""Operators whose results lie where what they read does, or at zero."""


def _holds_already(call: Call) -> bool:
    """Whether what is quantized was quantized alike before, and only moved since."""
    made = {node.outputs[0]: node for node in call.writer.program.nodes}
    source, node = call.given("input"), None
    while isinstance(source, Ref) and (node := made.get(source.name)) is not None:
        if node.operator not in _MOVES:
            break
        source = node.arguments.get("self")
    if node is None or node.operator != "quantized_decomposed.dequantize_per_tensor":
        return False
    keys = ("scale", "zero_point", "quant_min", "quant_max", "dtype")
    return all(node.arguments.get(key) == call.given(key) for key in keys)


def _dequantize(call: Call) -> str:
    dtype = call.text("dtype", "")
    call.ignore("quant_min", "quant_max")  # of the integers, which hold already
    _check_result(call)
    constant = call.array("input")
    if constant is not None and constant.dtype.name != dtype:
        raise call.torch.damaged(f"{constant.dtype} dequantized as {dtype}")
    _check_type(call, dtype)
    return call.node("DequantizeLinear", [call.tensor("input"), *_step(call, dtype)])


def _dequantize_per_channel(call: Call) -> str:
    dtype, data = call.text("dtype", ""), call.array("input")
    call.ignore("quant_min", "quant_max")
    _check_result(call)
    _check_type(call, dtype)
    if data is None:
        raise call.torch.unsupported(
            "an activation with a scale for each channel", "per channel is for weights"
        )
    scales, zeros = call.array("scales"), call.array("zero_points")
    if scales is None or (zeros is None and call.has("zero_points")):
        raise call.torch.unsupported("scales that are computed at run time", "quantize statically")
    if zeros is None:
        zeros = np.zeros(scales.size, dtype)
    limits = np.iinfo(dtype)
    if zeros.size and not limits.min <= zeros.min() <= zeros.max() <= limits.max:
        raise call.torch.unsupported("zero points that the type does not hold", "smaller ones")
    parts = [call.constant(scales.reshape(-1), "float64")]
    parts.append(call.constant(zeros.reshape(-1).astype("int64"), dtype))
    axis = call.axis("axis", rank=data.ndim)
    return call.node("DequantizeLinear", [call.tensor("input"), *parts], axis=axis)


def _check_type(call: Call, dtype: str) -> None:
    if dtype not in _WEIGHTS:
        raise call.torch.unsupported(f"a quantized tensor of type {dtype}", "int8 or uint8")


def _check_result(call: Call) -> None:
    made = call.text("out_dtype", "float32")
    if made != "float32":
        raise call.torch.unsupported(f"a result of type {made}", "float32 is supported")


def _dynamic(call: Call) -> str:
    raise call.torch.unsupported(
        "dynamic quantization: scales are chosen at run time",
        "quantize statically, with a quantizer whose is_dynamic is false, and calibrate",
    )


# ------------------------------------------------------------------------------ torchao's forms


def _parameters(call: Call, dtype: str) -> tuple[list[str], int | None]:
    """Return the names of scales and zero points, and their axis; ``None`` if there is one.

    Blocks as large as the tensor have one scale; blocks of one element along one axis, a scale for
    each of its channels.
    """
    shape, block = call.shape("input"), call.integers("block_size")
    scales, zeros = call.array("scale"), call.array("zero_point")
    if scales is None or (zeros is None and call.has("zero_point")):
        raise call.torch.unsupported("scales that are computed at run time", "quantize statically")
    zeros = np.zeros(scales.size, "int64") if zeros is None else zeros.astype("int64")
    parted = [axis for axis, pair in enumerate(zip(shape, block, strict=False)) if len({*pair}) > 1]
    if len(block) != len(shape) or len(parted) > 1 or any(block[axis] != 1 for axis in parted):
        raise call.torch.unsupported(
            f"blocks of {list(block)} of a tensor of {list(shape)}",
            "one scale, or one for each channel",
        )
    count, limits = (shape[parted[0]] if parted else 1), np.iinfo(dtype)
    if scales.size != count or zeros.size != count:
        raise call.torch.damaged(f"{scales.size} scales and {zeros.size} zero points for {count}")
    if not limits.min <= zeros.min() <= zeros.max() <= limits.max:
        raise call.torch.unsupported("zero points that the type does not hold", "smaller ones")
    sizes = (count,) if parted else ()
    parts = call.constant(scales.reshape(sizes), "float64"), zeros.reshape(sizes)
    return [parts[0], call.constant(parts[1], dtype)], parted[0] if parted else None


def _quantize_affine(call: Call) -> str:
    dtype = call.text("output_dtype", "")
    if dtype not in _TYPES:
        raise call.torch.unsupported(f"activations of type {dtype}", " or ".join(_TYPES))
    limits = np.iinfo(dtype)
    if _bounds(call, dtype) != (limits.min, limits.max):
        raise call.torch.unsupported("activations of fewer bits than their type", "the whole type")
    parameters, axis = _parameters(call, dtype)
    if axis is not None:
        raise call.torch.unsupported("an activation with several scales", "one")
    return call.node("QuantizeLinear", [call.tensor("input"), *parameters])


def _dequantize_affine(call: Call) -> str:
    dtype = call.text("input_dtype", "")
    call.ignore("quant_min", "quant_max")
    _check_type(call, dtype)
    if call.text("output_dtype", "float32") != "float32":
        raise call.torch.unsupported(f"a result of type {call.given('output_dtype')}", "float32")
    parameters, axis = _parameters(call, dtype)
    if axis is not None and call.array("input") is None:
        raise call.torch.unsupported("an activation with several scales", "one")
    more = {} if axis is None else {"axis": axis}
    return call.node("DequantizeLinear", [call.tensor("input"), *parameters], **more)


HANDLERS: Mapping[str, Handler] = {
    "quantized_decomposed.choose_qparams": _dynamic,
    "quantized_decomposed.choose_qparams_per_token": _dynamic,
    "quantized_decomposed.choose_qparams_per_token_asymmetric": _dynamic,
    "quantized_decomposed.choose_qparams_symmetric": _dynamic,
    "quantized_decomposed.dequantize_per_channel": _dequantize_per_channel,
    "quantized_decomposed.dequantize_per_tensor": _dequantize,
    "quantized_decomposed.quantize_per_tensor": _quantize,
    "torchao.choose_qparams_affine": _dynamic,
    "torchao.dequantize_affine": _dequantize_affine,
    "torchao.quantize_affine": _quantize_affine,
}
"""Handlers by operator."""
