"""Layers with weights, products of matrices, pools, normalizations and attention."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import numpy as np

from htvm.frontend.torch.writer import Call, Handler


def _conv(call: Call, axes: int) -> str:
    kernel = call.shape("weight")[2:]
    if len(call.shape("input")) != axes + 2:
        raise call.torch.unsupported(
            f"an input of shape {list(call.shape('input'))}", "with a batch axis, of size 1"
        )
    dilation = call.integers("dilation", axes, (1,) * axes)
    inputs = [call.tensor("input"), call.tensor("weight")]
    if call.has("bias"):
        inputs.append(call.tensor("bias"))
    return call.node(
        "Conv",
        inputs,
        strides=call.integers("stride", axes, (1,) * axes),
        pads=_pads(call, kernel, dilation),
        dilations=dilation,
        group=call.integer("groups", 1),
    )


def _pads(call: Call, kernel: tuple[int, ...], dilation: tuple[int, ...]) -> tuple[int, ...]:
    """Return the padding before and behind each axis."""
    given = call.given("padding")
    if given == "valid":
        return (0,) * 2 * len(kernel)
    if given == "same":
        total = [step * (size - 1) for step, size in zip(dilation, kernel, strict=True)]
        before = [size // 2 for size in total]
        return (*before, *(size - first for size, first in zip(total, before, strict=True)))
    return call.integers("padding", len(kernel), (0,) * len(kernel)) * 2


def _conv_transpose(call: Call, axes: int) -> str:
    inputs = [call.tensor("input"), call.tensor("weight")]
    if call.has("bias"):
        inputs.append(call.tensor("bias"))
    zeros, ones = (0,) * axes, (1,) * axes
    return call.node(
        "ConvTranspose",
        inputs,
        strides=call.integers("stride", axes, ones),
        pads=call.integers("padding", axes, zeros) * 2,
        output_padding=call.integers("output_padding", axes, zeros),
        dilations=call.integers("dilation", axes, ones),
        group=call.integer("groups", 1),
    )


def _linear(call: Call) -> str:
    source, weight = call.tensor("input"), call.tensor("weight")
    bias = [call.tensor("bias")] if call.has("bias") else []
    if len(call.shape("input")) == 2:
        return call.node("Gemm", [source, weight, *bias], transB=1)
    turned = call.node("Transpose", [weight], perm=(1, 0))
    made = call.node("MatMul", [source, turned])
    return call.node("Add", [made, *bias]) if bias else made


def _addmm(call: Call) -> str:
    inputs = [call.tensor("mat1"), call.tensor("mat2"), call.tensor("self")]
    numbers = {name: float(call.number(name, 1.0)) for name in ("alpha", "beta")}
    return call.node("Gemm", inputs, **numbers)


def _matmul(call: Call, second: str) -> str:
    return call.node("MatMul", [call.tensor(), call.tensor(second)])


# ------------------------------------------------------------------------------ pools


def _max_pool(call: Call, axes: int) -> str:
    kernel = call.integers("kernel_size", axes)
    made = call.node(
        "MaxPool",
        [_batched(call, axes)],
        kernel_shape=kernel,
        strides=call.integers("stride", axes, kernel),
        pads=call.integers("padding", axes, (0,) * axes) * 2,
        dilations=call.integers("dilation", axes, (1,) * axes),
        ceil_mode=int(call.flag("ceil_mode")),
    )
    if len(call.torch.outputs) > 1:
        call.writer.shapes.pop(call.torch.outputs[1], None)
    return made


def _average_pool(call: Call, axes: int) -> str:
    if call.given("divisor_override") is not None:
        raise call.torch.unsupported("argument 'divisor_override'")
    kernel = call.integers("kernel_size", axes)
    return call.node(
        "AveragePool",
        [_batched(call, axes)],
        kernel_shape=kernel,
        strides=call.integers("stride", axes, kernel),
        pads=call.integers("padding", axes, (0,) * axes) * 2,
        ceil_mode=int(call.flag("ceil_mode")),
        count_include_pad=int(call.flag("count_include_pad", default=True)),
    )


def _batched(call: Call, axes: int) -> str:
    if len(call.shape()) != axes + 2:
        raise call.torch.unsupported(
            f"an input of shape {list(call.shape())}", "with a batch axis, of size 1"
        )
    return call.tensor()


def _adaptive_pool(call: Call, axes: int, *, maximum: bool = False) -> str:
    source, sizes = _batched(call, axes), call.shape()[2:]
    call.ignore("output_size")
    wanted = call.result()[2:]  # a size that is not given stays
    if len(wanted) != axes or min(wanted) < 1:
        raise call.torch.damaged(f"a pool of {list(sizes)} to {list(wanted)}")
    if set(wanted) == {1}:
        if maximum:
            return call.node("GlobalMaxPool", [source])
        return call.mean("GlobalAveragePool", [source])
    if any(size % made for size, made in zip(sizes, wanted, strict=True)):
        raise call.torch.unsupported(
            f"an adaptive pool from {list(sizes)} to {list(wanted)}, whose windows differ in size",
            "sizes that divide the input's",
        )
    kernel = tuple(size // made for size, made in zip(sizes, wanted, strict=True))
    op = "MaxPool" if maximum else "AveragePool"
    return call.node(op, [source], kernel_shape=kernel, strides=kernel)


# ------------------------------------------------------------------------------ normalizations


def _affine(call: Call, channels: int) -> list[str]:
    """Return weight and bias, or ones and zeros."""
    weight = (
        call.tensor("weight") if call.has("weight") else call.constant(np.ones(channels), "float32")
    )
    bias = call.tensor("bias") if call.has("bias") else call.constant(np.zeros(channels), "float32")
    return [weight, bias]


def _layer_norm(call: Call) -> str:
    sizes = call.integers("normalized_shape")
    call.ignore("cudnn_enable")
    source, (weight, bias) = call.tensor("input"), _affine_of(call, sizes)
    epsilon = float(call.number("eps", 1e-5))
    return call.node(
        "LayerNormalization", [source, weight, bias], axis=-len(sizes), epsilon=epsilon
    )


def _affine_of(call: Call, sizes: tuple[int, ...]) -> list[str]:
    weight, bias = call.has("weight"), call.has("bias")
    return [
        call.tensor("weight") if weight else call.constant(np.ones(sizes), "float32"),
        call.tensor("bias") if bias else call.constant(np.zeros(sizes), "float32"),
    ]


def _rms_norm(call: Call) -> str:
    sizes, source = call.integers("normalized_shape"), call.tensor("input")
    weight = (
        call.tensor("weight") if call.has("weight") else call.constant(np.ones(sizes), "float32")
    )
    epsilon = float(call.number("eps", float(np.finfo("float32").eps)))
    return call.node("RMSNormalization", [source, weight], axis=-len(sizes), epsilon=epsilon)


def _group_norm(call: Call) -> str:
    call.ignore("cudnn_enabled")
    channels, groups = call.shape("input")[1], call.integer("num_groups")
    inputs = [call.tensor("input"), *_affine(call, channels)]
    epsilon = float(call.number("eps", 1e-5))
    return call.node("GroupNormalization", inputs, num_groups=groups, epsilon=epsilon)


def _batch_norm(call: Call) -> str:
    call.ignore("momentum", "cudnn_enabled")
    if call.flag("training"):
        raise call.torch.unsupported("a batch norm in training mode", "export after module.eval()")
    channels = call.shape("input")[1]
    inputs = [call.tensor("input"), *_affine(call, channels)]
    inputs += [call.tensor("running_mean"), call.tensor("running_var")]
    return call.node("BatchNormalization", inputs, epsilon=float(call.number("eps", 1e-5)))


# ------------------------------------------------------------------------------ attention


def _attention(call: Call) -> str:
    """Write scaled dot-product attention as its products and softmax."""
    if call.number("dropout_p", 0.0):
        raise call.torch.unsupported(
            "attention that drops out at random, as exported for training",
            "make the attention with dropout=0 before exporting it for training",
        )
    if call.flag("enable_gqa"):
        raise call.torch.unsupported("attention with grouped queries", "as many keys as queries")
    rank = len(call.shape("query"))
    perm = (*range(rank - 2), rank - 1, rank - 2)
    scale = call.number("scale", 1 / math.sqrt(call.shape("query")[-1]))
    keys = call.node("Transpose", [call.tensor("key")], perm=perm)
    scores = call.node("MatMul", [call.tensor("query"), keys])
    scaled = call.node("Mul", [scores, call.constant(scale, "float32")])
    weights = call.node("Softmax", [_masked(call, scaled)], axis=-1)
    return call.node("MatMul", [weights, call.tensor("value")])


def _masked(call: Call, scores: str) -> str:
    """Write what a mask adds to scores: -inf to those that are left out."""
    rows, columns = call.shape("query")[-2], call.shape("key")[-2]
    left = np.ones((rows, columns), bool)
    if call.flag("is_causal"):
        left = np.tril(left)
    if call.has("attn_mask"):
        mask = call.array("attn_mask")
        if mask is None:
            if call.dtype("attn_mask") == "bool":
                raise call.torch.unsupported(
                    "a mask of booleans that is computed", "a constant one, or one of reals"
                )
            scores = call.node("Add", [scores, call.tensor("attn_mask")])
        elif mask.dtype == bool:
            left = left & mask
        else:
            left = left & ~np.isneginf(mask)
            if (added := np.where(np.isneginf(mask), 0, mask)).any():
                scores = call.node("Add", [scores, call.constant(added, "float32")])
    if left.all():
        return scores
    if not left.any(-1).all():
        raise call.torch.unsupported(
            "a mask that leaves nothing to a query", "at least one key for each"
        )
    nothing = call.constant(-np.inf, "float32")
    return call.node("Where", [call.constant(left), scores, nothing])


HANDLERS: Mapping[str, Handler] = {
    "aten.adaptive_avg_pool1d": partial(_adaptive_pool, axes=1),
    "aten.adaptive_avg_pool2d": partial(_adaptive_pool, axes=2),
    "aten.addmm": _addmm,
    "aten.avg_pool1d": partial(_average_pool, axes=1),
    "aten.avg_pool2d": partial(_average_pool, axes=2),
    "aten.batch_norm": _batch_norm,
    "aten.bmm": partial(_matmul, second="mat2"),
    "aten.conv1d": partial(_conv, axes=1),
    "aten.conv2d": partial(_conv, axes=2),
    "aten.conv_transpose1d": partial(_conv_transpose, axes=1),
    "aten.conv_transpose2d": partial(_conv_transpose, axes=2),
    "aten.group_norm": _group_norm,
    "aten.layer_norm": _layer_norm,
    "aten.linear": _linear,
    "aten.matmul": partial(_matmul, second="other"),
    "aten.max_pool1d": partial(_max_pool, axes=1),
    "aten.max_pool2d": partial(_max_pool, axes=2),
    "aten.mm": partial(_matmul, second="mat2"),
    "aten.rms_norm": _rms_norm,
    "aten.scaled_dot_product_attention": _attention,
}
"""Handlers by operator."""
