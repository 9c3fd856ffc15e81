"""The supported TFLite operators and their readers."""

from __future__ import annotations

from collections.abc import Mapping

from htvm.frontend.operators import Applied
from htvm.frontend.registration import registered
from htvm.frontend.tflite import activations, arithmetic, borders, pools, products, shapes
from htvm.frontend.tflite.reader import Handler

__all__ = ["HANDLERS"]

_HANDLERS: Mapping[str, Handler] = {
    "ADD": arithmetic.add,
    "AVERAGE_POOL_2D": pools.average_pool,
    "CONCATENATION": shapes.concatenation,
    "CONV_2D": products.conv,
    "DEPTHWISE_CONV_2D": products.depthwise,
    "DEQUANTIZE": borders.dequantize,
    "EXPAND_DIMS": shapes.expand_dims,
    "FULLY_CONNECTED": products.fully_connected,
    "HARD_SWISH": activations.hard_swish,
    "LEAKY_RELU": activations.leaky_relu,
    "LOGISTIC": activations.logistic,
    "MAX_POOL_2D": pools.max_pool,
    "MEAN": pools.mean,
    "MUL": arithmetic.multiply,
    "PAD": shapes.pad,
    "PADV2": shapes.pad_v2,
    "PRELU": activations.prelu,
    "QUANTIZE": borders.quantize,
    "RELU": activations.relu,
    "RELU6": activations.relu_6,
    "RESHAPE": shapes.reshape,
    "RESIZE_NEAREST_NEIGHBOR": pools.resize_nearest,
    "SLICE": shapes.slices,
    "SOFTMAX": activations.softmax,
    "SPACE_TO_DEPTH": shapes.space_to_depth,
    "SPLIT": shapes.split,
    "SPLIT_V": shapes.split_v,
    "SQUEEZE": shapes.squeeze,
    "STRIDED_SLICE": shapes.strided_slice,
    "SUB": arithmetic.subtract,
    "TANH": activations.tanh,
    "TRANSPOSE": shapes.transpose,
    "TRANSPOSE_CONV": products.transpose_conv,
}

HANDLERS = registered("TFLite", _HANDLERS, Applied)
"""Reader for each supported operator."""
