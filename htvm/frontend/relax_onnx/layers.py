"""Convolutions, products, pools, sizes of images, normalizations, softmax and reductions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from htvm.frontend.onnx.windows import CHANNELS_LAST, ROUNDINGS
from htvm.frontend.relax_onnx.writer import Handler, Writer
from patterns.primitive import shape_of

if TYPE_CHECKING:
    from tvm.relax import Call


_SPATIAL = {3: "W", 4: "HW", 5: "DHW"}


def _convolution(op: str, writer: Writer, call: Call) -> str:
    attrs, rank = call.attrs, len(shape_of(call))
    kernel = ("OI" if op == "Conv" else "IO") + _SPATIAL[rank]
    source, weight = (writer.name(arg) for arg in call.args)
    found, sizes = str(attrs.kernel_layout), shape_of(call.args[1])
    if sorted(found) != sorted(kernel):
        _check_layout(writer, found, kernel)
    axes = [found.index(letter) for letter in kernel]
    if found != kernel:
        weight = writer.node("Transpose", [weight], perm=axes)
    more = {**_windows(attrs), "group": int(attrs.groups)}
    if op == "ConvTranspose":
        more["output_padding"] = _integers(attrs.output_padding)
    more["kernel_shape"] = [sizes[axis] for axis in axes[2:]]
    return _on_maps(writer, call, attrs.data_layout, op, [source, weight], **more)


def _matmul(writer: Writer, call: Call) -> str:
    """Write a product of matrices; a Gemm, if operands were scaled or transposed for it."""
    names, more = [writer.name(arg) for arg in call.args], dict[str, Any]()
    if all(len(shape_of(arg)) == 2 for arg in call.args):
        for index, key in enumerate(("transA", "transB")):
            turned = writer.maker(names[index], "Transpose")
            if turned is not None and _integers(turned.attribute[0].ints) == [1, 0]:
                names[index], more[key] = turned.input[0], 1
        names[0], factor = writer.scaled(names[0])
        if factor != 1:
            more["alpha"] = factor
    return writer.node("Gemm" if more else "MatMul", names, **more)


def _pool(op: str, writer: Writer, call: Call) -> str:
    attrs = call.attrs
    more = {**_windows(attrs), "kernel_shape": _integers(attrs.pool_size)}
    more["ceil_mode"] = int(attrs.ceil_mode)
    if op == "AveragePool":
        more["count_include_pad"] = int(attrs.count_include_pad)
    return _on_maps(writer, call, attrs.layout, op, [writer.name(call.args[0])], **more)


def _windows(attrs: Any) -> dict[str, Any]:
    """Return the attributes that convolutions and pools have in common."""
    return {
        "strides": _integers(attrs.strides),
        "pads": _integers(attrs.padding),
        "dilations": _integers(attrs.dilation),
    }


def _adaptive(writer: Writer, call: Call) -> str:
    """Write an average of parts of an image, which must be equally large."""
    shape, found = shape_of(call.args[0])[2:], shape_of(call)[2:]
    _check_layout(writer, call.attrs.layout, "NC" + _SPATIAL[len(shape) + 2])
    if set(found) == {1}:
        return writer.same(call, "GlobalAveragePool")
    if any(size % parts for size, parts in zip(shape, found, strict=True)):
        raise writer.unsupported(
            f"an average of {shape} to {found}", "windows of different sizes are not supported"
        )
    kernel = [size // parts for size, parts in zip(shape, found, strict=True)]
    return writer.same(call, "AveragePool", kernel_shape=kernel, strides=kernel)


def _resize(writer: Writer, call: Call) -> str:
    attrs = call.attrs
    modes = {"nearest_neighbor": "nearest", "linear": "linear", "cubic": "cubic"}
    method, mode = str(attrs.method), str(attrs.coordinate_transformation_mode)
    # As TVM chooses if there is none.
    rounding = str(attrs.rounding_method) or ("round" if mode == "align_corners" else "floor")
    nearest = "round_prefer_floor" if rounding == "round" else rounding
    if method not in modes or nearest not in ROUNDINGS:
        raise writer.unsupported(f"a resize by method '{method}', rounding '{rounding}'")
    more: dict[str, Any] = {}
    if method == "cubic":
        more = {
            "cubic_coeff_a": float(attrs.cubic_alpha),
            "exclude_outside": int(attrs.cubic_exclude),
        }
    shape = shape_of(call)
    if str(attrs.layout) == "NHWC":
        shape = (shape[0], shape[3], *shape[1:3])
    return _on_maps(
        writer,
        call,
        attrs.layout,
        "Resize",
        [writer.name(call.args[0]), "", "", writer.constant(shape, "int64")],
        mode=modes[method],
        coordinate_transformation_mode=mode,
        nearest_mode=nearest,
        **more,
    )


def _on_maps(
    writer: Writer, call: Call, layout: Any, op: str, inputs: list[str], **attributes: Any
) -> str:
    """Write an operator on maps, the first input.

    Those with channels last are turned for it, or the node is of the domain that has them.
    """
    rank = len(shape_of(call))
    last = str(layout) == "N" + _SPATIAL[rank] + "C"
    if not last:
        _check_layout(writer, layout, "NC" + _SPATIAL[rank])
    out_layout = getattr(call.attrs, "out_layout", "")
    if str(out_layout):
        _check_layout(writer, out_layout, str(layout))
    if not last or (writer.tflite and rank == 4):
        domain = CHANNELS_LAST if last else ""
        return writer.node(op, inputs, domain=domain, **attributes)
    turned = writer.node("Transpose", inputs[:1], perm=[0, rank - 1, *range(1, rank - 1)])
    made = writer.node(op, [turned, *inputs[1:]], **attributes)
    return writer.node("Transpose", [made], perm=[0, *range(2, rank), 1])


def _check_layout(writer: Writer, found: Any, wanted: str) -> None:
    if str(found) != wanted:
        raise writer.unsupported(f"layout {found}", f"write it in {wanted}, as ONNX does")


def _integers(values: Any) -> list[int]:
    return [int(value) for value in values]


def _layer_norm(writer: Writer, call: Call) -> str:
    rank = len(shape_of(call))
    axes = sorted(int(axis) % rank for axis in call.attrs.axes)
    if axes != list(range(axes[0], rank)):
        raise writer.unsupported(f"a layer norm over axes {axes}", "use the last ones")
    return writer.same(call, "LayerNormalization", axis=axes[0] - rank, epsilon=float)


def _channel_norm(writer: Writer, call: Call, op: str, **attributes: Any) -> str:
    shape = shape_of(call)
    rank = len(shape)
    axes = sorted(int(axis) % rank for axis in call.attrs.axes)
    if axes and axes[0] == 0 and shape[0] == 1:
        axes = axes[1:]  # a batch of one
    if int(call.attrs.channel_axis) % rank != 1 or axes != list(range(2, rank)):
        raise writer.unsupported(f"a norm over axes {axes}", "channels must be the second axis")
    return writer.same(call, op, epsilon=float, **attributes)


def _batch_norm(writer: Writer, call: Call) -> tuple[str, ...]:
    """Write a batch norm of inference; the statistics that it returns stay as they are."""
    if int(call.attrs.axis) % len(shape_of(call.args[0])) != 1:
        raise writer.unsupported(f"a batch norm over axis {call.attrs.axis}", "use the second")
    result = writer.same(call, "BatchNormalization", epsilon=float)
    return (result, *(writer.name(arg) for arg in call.args[3:]))


def _reduced(call: Call) -> list[int]:
    rank, axes = len(shape_of(call.args[0])), call.attrs.axis
    return [*range(rank)] if axes is None else [int(axis) % rank for axis in axes]


def _reduce(op: str, writer: Writer, call: Call) -> str:
    rank, axes = len(shape_of(call.args[0])), sorted(_reduced(call))
    source, keep = writer.name(call.args[0]), int(call.attrs.keepdims)
    parts = _stacked(writer, source) if axes == [0] and not keep else []
    if parts and op in ("ReduceMax", "ReduceMin"):
        return writer.node(op.removeprefix("Reduce"), parts)
    if op == "ReduceMean" and keep and axes == list(range(2, rank)) and rank > 2:
        return writer.node("GlobalAveragePool", [source])
    return writer.node(op, [source, writer.constant(axes, "int64")], keepdims=keep)


def _stacked(writer: Writer, source: str) -> list[str]:
    """Return the tensors that were stacked along a new first axis, if a tensor is of these.

    TVM's ONNX importer writes extremes of several tensors in this way.
    """
    rows = writer.maker(source, "Concat")
    parts = [] if rows is None else [writer.maker(name, "Unsqueeze") for name in rows.input]
    return [str(part.input[0]) for part in parts if part is not None]


def _variance(writer: Writer, call: Call) -> str:
    source, along = writer.name(call.args[0]), writer.constant(_reduced(call), "int64")
    mean = writer.node("ReduceMean", [source, along], keepdims=1)
    away = writer.node("Sub", [source, mean])
    squares = writer.node("Mul", [away, away])
    return writer.node("ReduceMean", [squares, along], keepdims=int(call.attrs.keepdims))


def _extreme(op: str, writer: Writer, call: Call) -> str:
    if call.attrs.axis is None:
        raise writer.unsupported("an index into all of a tensor", "give an axis")
    return writer.same(call, op, axis=int, keepdims=int)


HANDLERS: Mapping[str, Handler] = {
    "relax.image.resize2d": _resize,
    "relax.matmul": _matmul,
    "relax.nn.adaptive_avg_pool1d": _adaptive,
    "relax.nn.adaptive_avg_pool2d": _adaptive,
    "relax.nn.avg_pool1d": partial(_pool, "AveragePool"),
    "relax.nn.avg_pool2d": partial(_pool, "AveragePool"),
    "relax.nn.conv1d": partial(_convolution, "Conv"),
    "relax.nn.conv1d_transpose": partial(_convolution, "ConvTranspose"),
    "relax.nn.conv2d": partial(_convolution, "Conv"),
    "relax.nn.conv2d_transpose": partial(_convolution, "ConvTranspose"),
    "relax.nn.max_pool1d": partial(_pool, "MaxPool"),
    "relax.nn.max_pool2d": partial(_pool, "MaxPool"),
    "relax.argmax": partial(_extreme, "ArgMax"),
    "relax.argmin": partial(_extreme, "ArgMin"),
    "relax.max": partial(_reduce, "ReduceMax"),
    "relax.mean": partial(_reduce, "ReduceMean"),
    "relax.min": partial(_reduce, "ReduceMin"),
    "relax.nn.batch_norm": _batch_norm,
    "relax.nn.group_norm": partial(_channel_norm, op="GroupNormalization", num_groups=int),
    "relax.nn.instance_norm": partial(_channel_norm, op="InstanceNormalization"),
    "relax.nn.layer_norm": _layer_norm,
    "relax.nn.log_softmax": partial(Writer.same, op="LogSoftmax", axis=int),
    "relax.nn.softmax": partial(Writer.same, op="Softmax", axis=int),
    "relax.prod": partial(_reduce, "ReduceProd"),
    "relax.sum": partial(_reduce, "ReduceSum"),
    "relax.variance": _variance,
}
