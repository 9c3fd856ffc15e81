"""Operators that change shapes, and move, join, pad or resample elements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from htvm.frontend.torch.writer import Call, Handler

_END = 2**63 - 1


def _reshape(call: Call, *ignored: str) -> str:
    call.ignore(*ignored)  # the result's declared shape says the same
    return call.reshaped(call.tensor(), call.result())


def _same(call: Call, source: str = "self") -> str:
    """Write nothing: the result is the tensor itself."""
    call.ignore("memory_format", "p", "train", "training")
    if call.torch.operator == "aten.dropout" and call.flag("train"):
        raise call.torch.unsupported("a dropout in training mode", "export after module.eval()")
    return call.tensor(source)


def _to(call: Call) -> str:
    call.ignore("device", "layout", "pin_memory", "non_blocking", "copy", "memory_format")
    constant = call.array("self")
    if constant is not None:
        call.ignore("dtype")
        dtype = call.writer.program.tensors[call.torch.outputs[0]].dtype
        if constant.size:
            _check_held(call, dtype, constant.min().item(), constant.max().item())
        return call.constant(constant, dtype)
    if call.text("dtype", "float32") != "float32":
        raise call.torch.unsupported(f"a cast to {call.given('dtype')}", "float32 throughout")
    return call.tensor()


def _permute(call: Call) -> str:
    rank = len(call.shape())
    axes = call.integers("dims")
    if sorted(axis % rank for axis in axes if -rank <= axis < rank) != list(range(rank)):
        raise call.torch.damaged(f"permutation {axes} of {rank} axes")
    return call.same("Transpose", perm=tuple(axis % rank for axis in axes))


def _transpose(call: Call) -> str:
    rank = len(call.shape())
    axes = list(range(rank))
    first, second = call.axis("dim0"), call.axis("dim1")
    axes[first], axes[second] = second, first
    return call.same("Transpose", perm=tuple(axes))


def _turned(call: Call) -> str:
    rank = len(call.shape())
    return call.same("Transpose", perm=tuple(range(rank))[::-1])


def _concat(call: Call) -> str:
    parts = call.tensors()
    return call.node("Concat", parts, axis=call.axis("dim", 0, rank=len(call.result())))


def _stack(call: Call) -> str:
    shape = call.result()
    axis = call.axis("dim", 0, rank=len(shape))
    one = (*shape[:axis], 1, *shape[axis + 1 :])
    parts = [call.reshaped(part, one) for part in call.tensors()]
    return call.node("Concat", parts, axis=axis)


# ------------------------------------------------------------------------------ parts


def _range(call: Call, source: str, axis: int, first: int, end: int, step: int = 1) -> str:
    """Write a slice along one axis."""
    bounds = [call.constant([value], "int64") for value in (first, end, axis, step)]
    return call.node("Slice", [source, *bounds])


def _slice(call: Call) -> str:
    axis = call.axis("dim", 0)
    first, end = call.integer("start", 0), call.integer("end", _END)
    source, step = call.tensor(), call.integer("step", 1)
    if (first, step) == (0, 1) and end >= call.shape()[axis]:
        return source
    return _range(call, source, axis, first, end, step)


def _select(call: Call) -> str:
    axis, index = call.axis("dim"), call.integer("index")
    size = call.shape()[axis]
    if not -size <= index < size:
        raise call.torch.damaged(f"element {index} of an axis of {size}")
    part = _range(call, call.tensor(), axis, index % size, index % size + 1)
    return call.reshaped(part, call.result())


def _narrow(call: Call) -> str:
    axis, first = call.axis("dim"), call.integer("start")
    return _range(call, call.tensor(), axis, first, first + call.integer("length"))


def _split(call: Call) -> Sequence[str]:
    call.ignore("chunks", "split_size", "split_sizes", "sections")
    axis = call.axis("dim", 0)
    sizes = [call.result(at)[axis] for at in range(len(call.torch.outputs))]
    if sum(sizes) != call.shape()[axis]:
        raise call.torch.damaged(f"parts of {sizes} of an axis of {call.shape()[axis]}")
    if len(sizes) == 1:
        return [call.tensor()]
    inputs = [call.tensor(), call.constant(sizes, "int64")]
    return call.nodes("Split", inputs, len(sizes), axis=axis)


def _unbind(call: Call) -> Sequence[str]:
    axis, count = call.axis("dim", 0), len(call.torch.outputs)
    if call.shape()[axis] != count:
        raise call.torch.damaged(f"{count} elements of an axis of {call.shape()[axis]}")
    source = call.tensor()
    parts = [_range(call, source, axis, at, at + 1) for at in range(count)]
    return [call.reshaped(part, call.result(at)) for at, part in enumerate(parts)]


def _roll(call: Call) -> str:
    shifts, axes = call.integers("shifts"), call.integers("dims", default=())
    if len(shifts) != len(axes):
        raise call.torch.unsupported("a roll of the flattened tensor", "give its dims")
    source, rank = call.tensor(), len(call.shape())
    for shift, given in zip(shifts, axes, strict=True):
        axis = given % rank
        size = call.shape()[axis]
        if shift % size:
            cut = size - shift % size
            parts = [_range(call, source, axis, *ends) for ends in ((cut, size), (0, cut))]
            source = call.node("Concat", parts, axis=axis)
    return source


def _flip(call: Call) -> str:
    source, rank = call.tensor(), len(call.shape())
    for axis in call.integers("dims"):
        source = _range(call, source, axis % rank, -1, -_END, -1)
    return source


def _expand(call: Call) -> str:
    call.ignore("size", "implicit")
    return call.node("Expand", [call.tensor(), call.constant(call.result(), "int64")])


def _repeat(call: Call) -> str:
    counts, shape = call.integers("repeats"), call.shape()
    source = call.tensor()
    if len(counts) > len(shape):
        source = call.reshaped(source, (1,) * (len(counts) - len(shape)) + shape)
    return call.node("Tile", [source, call.constant(counts, "int64")])


def _embedding(call: Call) -> str:
    call.ignore("padding_idx", "scale_grad_by_freq", "sparse")
    return call.node("Gather", [call.tensor("weight"), call.tensor("indices")], axis=0)


def _index_select(call: Call) -> str:
    return call.node("Gather", [call.tensor(), call.tensor("index")], axis=call.axis("dim"))


def _pixel_shuffle(call: Call) -> str:
    factor = call.integer("upscale_factor")
    return call.same("DepthToSpace", blocksize=factor, mode="CRD")


# ------------------------------------------------------------------------------ sizes


def _pad(call: Call) -> str:
    widths, rank = call.integers("pad"), len(call.shape())
    mode = call.text("mode", "constant")
    if len(widths) % 2 or len(widths) > 2 * rank:
        raise call.torch.damaged(f"widths {widths} of a tensor of {rank} axes")
    pairs = [(0, 0)] * (rank - len(widths) // 2)
    pairs += [(widths[at], widths[at + 1]) for at in range(len(widths) - 2, -1, -2)]
    source = call.tensor()
    cuts = [axis for axis, pair in enumerate(pairs) if min(pair) < 0]
    for axis in cuts:
        before, after = (max(-width, 0) for width in pairs[axis])
        source = _range(call, source, axis, before, call.shape()[axis] - after)
    pads = [max(pair[side], 0) for side in (0, 1) for pair in pairs]
    if not any(pads):
        return source
    modes = {"replicate": "edge", "circular": "wrap"}
    inputs = [source, call.constant(pads, "int64")]
    if mode == "constant":
        inputs.append(call.constant(call.number("value", 0.0), "float32"))
    else:
        call.ignore("value")
    return call.node("Pad", inputs, mode=modes.get(mode, mode))


def _resize(call: Call, mode: str) -> str:
    call.ignore("output_size", "scale_factors", "scales_h", "scales_w", "scales")
    shape, wanted = call.shape("input") if call.has("input") else call.shape(), call.result()
    corners = call.flag("align_corners")
    source = call.tensor("input" if call.has("input") else "self")
    if len(shape) != 4:
        raise call.torch.unsupported(f"a resize of shape {list(shape)}", "maps of two axes")
    kind = "align_corners" if corners else "asymmetric" if mode == "nearest" else "half_pixel"
    if kind == "half_pixel" and 1 in wanted[2:]:
        kind = "pytorch_half_pixel"
    sizes = call.constant(wanted, "int64")
    rounding = {"nearest_mode": "floor"} if mode == "nearest" else {}
    return call.node(
        "Resize",
        [source, "", "", sizes],
        mode=mode,
        coordinate_transformation_mode=kind,
        **rounding,
    )


# ------------------------------------------------------------------------------ constants


def _made(call: Call) -> tuple[tuple[int, ...], str]:
    """Return shape and type of a result that depends on no other tensor's elements."""
    call.ignore("dtype", "layout", "device", "pin_memory", "memory_format", "size", "self")
    shape, dtype = call.result(), call.writer.program.tensors[call.torch.outputs[0]].dtype
    call.writer.program.budget.spend("folded_elements", math.prod(shape), call.torch.where)
    return shape, dtype


def _check_held(call: Call, dtype: str, *numbers: float) -> None:
    """Check that a type of elements holds numbers.

    Raises:
        ModelError: it does not; torch would not have made such a constant.
    """
    kind = np.dtype(dtype).kind
    if kind == "b":
        return
    limits = np.finfo(dtype) if kind == "f" else np.iinfo(dtype)
    least, most = (end.item() if kind == "f" else int(end) for end in (limits.min, limits.max))
    for number in numbers:
        is_special = kind == "f" and isinstance(number, float) and not math.isfinite(number)
        if not is_special and not least <= number <= most:
            raise call.torch.damaged(f"a constant of type {dtype} beyond its range")


def _full(call: Call, value: float | None = None) -> str:
    shape, dtype = _made(call)
    fill = call.number("fill_value") if value is None else value
    _check_held(call, dtype, fill)
    return call.constant(np.full(shape, fill), dtype)


def _arange(call: Call) -> str:
    shape, dtype = _made(call)
    first, end, step = call.number("start", 0), call.number("end"), call.number("step", 1)
    _check_held(call, dtype, first, end, step)
    count = (end - first) / step if step else math.nan
    if not math.isfinite(count) or shape != (max(math.ceil(count), 0),):
        raise call.torch.damaged(f"a range from {first} to {end} by {step}, of shape {list(shape)}")
    return call.constant(first + step * np.arange(*shape), dtype)


HANDLERS: Mapping[str, Handler] = {
    "aten._unsafe_view": lambda call: _reshape(call, "size"),
    "aten.alias": _same,
    "aten.arange": _arange,
    "aten.cat": _concat,
    "aten.chunk": _split,
    "aten.clone": _same,
    "aten.constant_pad_nd": _pad,
    "aten.contiguous": _same,
    "aten.detach": _same,
    "aten.detach_": _same,
    "aten.dropout": partial(_same, source="input"),
    "aten.dropout_": _same,
    "aten.embedding": _embedding,
    "aten.expand": _expand,
    "aten.feature_dropout": partial(_same, source="input"),
    "aten.flatten": lambda call: _reshape(call, "start_dim", "end_dim"),
    "aten.flip": _flip,
    "aten.full": _full,
    "aten.full_like": _full,
    "aten.index_select": _index_select,
    "aten.lift_fresh_copy": _same,
    "aten.narrow": _narrow,
    "aten.new_full": _full,
    "aten.new_ones": partial(_full, value=1.0),
    "aten.new_zeros": partial(_full, value=0.0),
    "aten.ones": partial(_full, value=1.0),
    "aten.ones_like": partial(_full, value=1.0),
    "aten.pad": _pad,
    "aten.permute": _permute,
    "aten.pixel_shuffle": _pixel_shuffle,
    "aten.repeat": _repeat,
    "aten.reshape": lambda call: _reshape(call, "shape"),
    "aten.roll": _roll,
    "aten.select": _select,
    "aten.slice": _slice,
    "aten.split": _split,
    "aten.split_with_sizes": _split,
    "aten.squeeze": lambda call: _reshape(call, "dim"),
    "aten.stack": _stack,
    "aten.t": _turned,
    "aten.to": _to,
    "aten.transpose": _transpose,
    "aten.unbind": _unbind,
    "aten.unflatten": lambda call: _reshape(call, "dim", "sizes"),
    "aten.unsqueeze": lambda call: _reshape(call, "dim"),
    "aten.upsample_bicubic2d": partial(_resize, mode="cubic"),
    "aten.upsample_bilinear2d": partial(_resize, mode="linear"),
    "aten.upsample_nearest2d": partial(_resize, mode="nearest"),
    "aten.view": lambda call: _reshape(call, "size"),
    "aten.zeros": partial(_full, value=0.0),
    "aten.zeros_like": partial(_full, value=0.0),
}
"""Handlers by operator."""
