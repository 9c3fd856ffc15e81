"""The supported TFLite operators and their readers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from htvm.frontend.tflite import (
    activations,
    arithmetic,
    functions,
    pools,
    products,
    rearranging,
    shapes,
)
from htvm.frontend.tflite.reader import Handler

HANDLERS: Mapping[str, Handler] = {
    "ABS": functions.absolute,
    "ADD": arithmetic.add,
    "ARG_MAX": partial(pools.place, which="maximum", options=40),
    "ARG_MIN": partial(pools.place, which="minimum", options=57),
    "AVERAGE_POOL_2D": partial(pools.pool, maximum=False),
    "BATCH_MATMUL": arithmetic.batch_matmul,
    "BATCH_TO_SPACE_ND": rearranging.batch_to_space,
    "BROADCAST_TO": rearranging.broadcast_to,
    "CONCATENATION": shapes.concatenation,
    "CONV_2D": products.conv,
    "DEPTHWISE_CONV_2D": products.depthwise,
    "DEPTH_TO_SPACE": rearranging.depth_to_space,
    "DEQUANTIZE": activations.dequantize,
    "ELU": functions.elu,
    "EXP": functions.exponential,
    "EXPAND_DIMS": partial(shapes.same_elements, count=2),
    "FULLY_CONNECTED": products.fully_connected,
    "GATHER": rearranging.gather,
    "GELU": functions.gelu,
    "HARD_SWISH": activations.hard_swish,
    "L2_NORMALIZATION": activations.l2_normalization,
    "LEAKY_RELU": activations.leaky_relu,
    "LOGISTIC": partial(activations.sigmoid, function="logistic"),
    "LOG_SOFTMAX": activations.log_softmax,
    "MAXIMUM": partial(arithmetic.extreme, which="maximum"),
    "MAX_POOL_2D": partial(pools.pool, maximum=True),
    "MEAN": partial(pools.summed, stem="mean"),
    "MINIMUM": partial(arithmetic.extreme, which="minimum"),
    "MIRROR_PAD": rearranging.mirror_pad,
    "MUL": partial(arithmetic.binary, function="multiply", options=21),
    "NEG": activations.negate,
    "PACK": rearranging.pack,
    "PAD": partial(shapes.pad, count=2),
    "PADV2": partial(shapes.pad, count=3),
    "PRELU": activations.prelu,
    "QUANTIZE": activations.quantize,
    "REDUCE_MAX": partial(pools.extreme, which="maximum"),
    "REDUCE_MIN": partial(pools.extreme, which="minimum"),
    "RELU": activations.relu,
    "RELU6": activations.relu_6,
    "RESHAPE": shapes.reshape,
    "RESIZE_BILINEAR": pools.resize_bilinear,
    "RESIZE_NEAREST_NEIGHBOR": pools.resize_nearest,
    "REVERSE_V2": rearranging.reverse,
    "RSQRT": functions.inverse_root,
    "SLICE": shapes.slices,
    "SOFTMAX": activations.softmax,
    "SPACE_TO_BATCH_ND": rearranging.space_to_batch,
    "SPACE_TO_DEPTH": shapes.space_to_depth,
    "SPLIT": shapes.split,
    "SPLIT_V": shapes.split_v,
    "SQUARED_DIFFERENCE": partial(arithmetic.binary, function="squared_difference", options=0),
    "SQUEEZE": partial(shapes.same_elements, count=1),
    "STRIDED_SLICE": shapes.strided_slice,
    "SUB": partial(arithmetic.binary, function="subtract", options=28),
    "SUM": partial(pools.summed, stem="sum"),
    "TANH": partial(activations.sigmoid, function="tanh"),
    "TILE": rearranging.tile,
    "TRANSPOSE": shapes.transpose,
    "TRANSPOSE_CONV": products.transpose_conv,
    "UNPACK": rearranging.unpack,
}
"""Reader for each supported operator."""

_INT8_ONLY = (
    "ARG_MAX", "ARG_MIN", "ELU", "EXP", "GELU", "HARD_SWISH", "L2_NORMALIZATION", "LOG_SOFTMAX",
    "NEG", "RESIZE_BILINEAR", "RSQRT",
)  # fmt: skip

WIDE_HANDLERS: Mapping[str, Handler] = {
    **{name: handler for name, handler in HANDLERS.items() if name not in _INT8_ONLY},
    "ABS": functions.wide_absolute,
    "LOGISTIC": partial(functions.wide_sigmoid, function="logistic"),
    "SOFTMAX": functions.wide_softmax,
    "TANH": partial(functions.wide_sigmoid, function="tanh"),
}
"""Reader for each operator that is supported with int16 activations."""
