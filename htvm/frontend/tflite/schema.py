"""What TFLite's schema 3 says: names and options of operators, and how elements are stored."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from byoc_dory.layers import Array

ELEMENT_TYPES: Mapping[int, str] = {
    0: "float32",
    1: "float16",
    2: "int32",
    3: "uint8",
    4: "int64",
    5: "string",
    6: "bool",
    7: "int16",
    8: "complex64",
    9: "int8",
    10: "float64",
    11: "complex128",
    12: "uint64",
    13: "resource",
    14: "variant",
    15: "uint32",
    16: "uint16",
    17: "int4",
    18: "bfloat16",
    19: "int2",
    20: "uint4",
}
"""TFLite's number of a type -> its name, which is numpy's if it has the type."""

PACKED: Mapping[str, int] = {"int4": 4, "int2": 2, "uint4": 4}
"""Types of which a byte holds several, and their bits."""

_OPAQUE = ("string", "resource", "variant", "bfloat16")


def stored_bytes(dtype: str, count: int) -> int | None:
    """Return the bytes of ``count`` elements, or ``None`` if their number does not say."""
    if dtype in _OPAQUE:
        return None
    bits = PACKED.get(dtype) or 8 * np.dtype(dtype).itemsize
    return -(-count * bits // 8)


def elements(raw: Array, dtype: str, count: int) -> Array:
    """Return the elements of a constant, flat.

    Args:
        raw: its bytes, as many as `stored_bytes` says.
        dtype: name of its type.
        count: number of its elements.

    Returns:
        Elements of that type; int8 for int4; the bytes for types without a numpy counterpart.
    """
    if dtype == "int4":
        # The first of two is in the lower half; the last byte of an odd number is half full.
        halves = np.stack([raw << 4, raw], axis=-1).reshape(-1).view("int8") >> 4
        return np.asarray(halves[:count])
    if dtype in PACKED or dtype in _OPAQUE:
        return raw
    return raw.view(dtype) if raw.flags.aligned else np.frombuffer(raw.tobytes(), dtype)


OPERATOR_NAMES: tuple[str, ...] = tuple(
    """
ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE
EMBEDDING_LOOKUP FLOOR FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D
LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1
RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS SKIP_GRAM
CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND
SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE
BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM
CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE
SIN TRANSPOSE_CONV SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW
ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK
REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR
LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS
WHERE RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE
NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM
BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG
REAL COMPLEX_ABS HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL
CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL
BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD
UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2 UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR
RIGHT_SHIFT STABLEHLO_LOGISTIC STABLEHLO_ADD STABLEHLO_DIVIDE STABLEHLO_MULTIPLY
STABLEHLO_MAXIMUM STABLEHLO_RESHAPE STABLEHLO_CLAMP STABLEHLO_CONCATENATE
STABLEHLO_BROADCAST_IN_DIM STABLEHLO_CONVOLUTION STABLEHLO_SLICE STABLEHLO_CUSTOM_CALL
STABLEHLO_REDUCE STABLEHLO_ABS STABLEHLO_AND STABLEHLO_COSINE STABLEHLO_EXPONENTIAL
STABLEHLO_FLOOR STABLEHLO_LOG STABLEHLO_MINIMUM STABLEHLO_NEGATE STABLEHLO_OR STABLEHLO_POWER
STABLEHLO_REMAINDER STABLEHLO_RSQRT STABLEHLO_SELECT STABLEHLO_SUBTRACT STABLEHLO_TANH
STABLEHLO_SCATTER STABLEHLO_COMPARE STABLEHLO_CONVERT STABLEHLO_DYNAMIC_SLICE
STABLEHLO_DYNAMIC_UPDATE_SLICE STABLEHLO_PAD STABLEHLO_IOTA STABLEHLO_DOT_GENERAL
STABLEHLO_REDUCE_WINDOW STABLEHLO_SORT STABLEHLO_WHILE STABLEHLO_GATHER STABLEHLO_TRANSPOSE
DILATE STABLEHLO_RNG_BIT_GENERATOR REDUCE_WINDOW STABLEHLO_COMPOSITE STABLEHLO_SHIFT_LEFT
STABLEHLO_CBRT
""".split()
)
"""Names by code, starting with 0."""

OPTIONS: Mapping[int, str] = {
    1: "padding stride_w stride_h fused_activation_function dilation_w_factor=1 "
    "dilation_h_factor=1 quantized_bias_type~",
    2: "padding stride_w stride_h depth_multiplier fused_activation_function dilation_w_factor=1 "
    "dilation_h_factor=1",
    5: "padding stride_w stride_h filter_width filter_height fused_activation_function",
    6: "rank fused_activation_function asymmetric_quantize_inputs~",
    8: "fused_activation_function weights_format keep_num_dims asymmetric_quantize_inputs~ "
    "quantized_bias_type~",
    9: "beta",
    10: "axis fused_activation_function",
    11: "fused_activation_function pot_scale_int16~",
    12: "fused_activation_function",
    13: "radius bias alpha beta",
    15: "new_height~ new_width~ align_corners half_pixel_centers",
    17: "new_shape~",
    19: "block_size",
    21: "fused_activation_function",
    23: "axis batch_dims",
    27: "keep_dims",
    28: "fused_activation_function pot_scale_int16~",
    29: "fused_activation_function",
    30: "squeeze_dims~",
    32: "begin_mask end_mask ellipsis_mask new_axis_mask shrink_axis_mask offset",
    35: "num_splits",
    37: "in_data_type~ out_data_type~",
    40: "output_type~",
    49: "padding stride_w stride_h fused_activation_function quantized_bias_type~",
    55: "out_type~",
    57: "output_type~",
    59: "values_count~ axis",
    61: "axis",
    64: "num~ axis",
    74: "align_corners half_pixel_centers",
    75: "alpha",
    77: "mode",
    79: "num_splits~",
    94: "block_size",
    101: "adj_x adj_y asymmetric_quantize_inputs~",
    102: "exclusive reverse",
    116: "approximate",
}
"""Fields by the number of the table, in their order, with defaults other than 0; ``~`` marks those
that have no effect here: the tensors' own shapes and types say the same."""
