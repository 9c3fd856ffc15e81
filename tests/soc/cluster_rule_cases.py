"""Helper: what a cluster's cores and engines accept and refuse, by their rules' identifiers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from byoc_dory.layers import Layer, MulShift, Shift
from byoc_dory.layers.rowwise import ItaGelu
from tests.soc.rule_layers import (
    HALF_UP,
    ONE,
    TABLE,
    TFLITE,
    Cases,
    attend,
    bias,
    cached_attention,
    combination,
    conv,
    dense,
    depthwise,
    dilated,
    gemm,
    grouped,
    heads,
    matmul,
    pool,
    total,
    with_weights,
)

CLUSTER = {
    "CLUSTER-1": Cases(
        (conv, gemm, matmul, total, combination),
        (
            (heads, "operator is mha"),
            (cached_attention, "no kernel for attention as a whole"),
            (lambda: pool("average"), "operator is average_pool"),
        ),
    ),
    "CLUSTER-2": Cases(
        (matmul, lambda: conv(dtype="uint8", result="uint8")),
        (
            (lambda: matmul("uint8"), "the second operand is uint8"),
            (lambda: conv(dtype="int16"), "'x' is int16"),
            (lambda: with_weights(conv(), np.int16), "the weights are int16"),
            (lambda: conv(bias=np.ones(8, np.int64)), "the bias is int64"),
        ),
    ),
    "CLUSTER-3": Cases((conv,), ((dilated, "2x2"),)),
    "CLUSTER-4": Cases((depthwise,), ((grouped, "groups are 2"),)),
    # Tiles above and below the input would read none of it.
    "CLUSTER-5": Cases(
        (lambda: conv(kernel=(2, 3), pad=(1, 4, 1, 4)),),
        (
            (lambda: conv(kernel=(2, 3), pad=(2, 0, 0, 0)), "(2, 0, 0, 0) for a kernel of 2x3"),
            (lambda: conv(kernel=(2, 3), pad=(0, 0, 5, 0)), "(0, 0, 5, 0)"),
        ),
    ),
    "CLUSTER-6": Cases(
        (lambda: gemm(MulShift((-(2**31),), (31,), (2**31 - 1,))),),
        (
            (lambda: gemm(TFLITE), "TfliteRequant"),
            (lambda: gemm(Shift(32)), "a shift is 32"),
            (lambda: gemm(MulShift((2**31,), (8,), (0,))), "2147483648, more than 32 bits"),
        ),
    ),
    "CLUSTER-7": Cases(
        (lambda: total(8),),
        ((lambda: total(9), "9 operands"), (lambda: total(last=(4, 1, 1)), "(4, 1, 1)")),
    ),
    "CLUSTER-8": Cases(
        (cached_attention,),
        (
            (lambda: cached_attention(6), "6 elements, no multiple of 4"),
            (lambda: cached_attention(8, 1 << 20), "leave 32 bits"),
        ),
        {"kernels": "simd"},
    ),
    "CLUSTER-9": Cases(
        (combination, lambda: combination("add", 1 << 20)),
        ((lambda: combination(mul=1 << 20), "a result times 1048576 leaves 32 bits"),),
    ),
    "CLUSTER-10": Cases(
        (lambda: gemm(ONE, rows=1, inputs=20_000, outputs=4),),
        ((lambda: gemm(ONE, rows=1, inputs=200_000, outputs=4), "the smallest tile"),),
    ),
    "CLUSTER-11": Cases(
        (
            lambda: pool("average", kernel=(1, 2), stride=(3, 1)),
            lambda: pool("average", shape=(3, 64, 64), kernel=(64, 64)),
        ),
        (
            (lambda: pool("average", kernel=(1, 1)), "a window has 1 pixels"),
            (lambda: pool("average", shape=(2, 64, 65), kernel=(64, 65)), "has 4160 pixels"),
            (lambda: pool("average", pad=(0, 0, 1, 0)), "the padding is (0, 0, 1, 0)"),
            (lambda: unsigned(pool("average")), "'x' is uint8"),
            (lambda: pool("average", clip=(0, 6)), "the result is clipped to 0 to 6"),
        ),
        {"kernels": "simd"},
    ),
}


def unsigned(layer: Layer) -> Layer:
    """The same layer of uint8."""
    inputs = tuple(replace(tensor, dtype="uint8") for tensor in layer.inputs)
    return replace(layer, inputs=inputs, output=replace(layer.output, dtype="uint8"))


SIRACUSA_CLUSTER = {
    **CLUSTER,
    "CLUSTER-1": Cases(
        (conv, gemm, matmul, total, combination, cached_attention, lambda: pool("average")),
        ((heads, "operator is mha"), (pool, "operator is max_pool")),
    ),
}

ITA = {
    "ITA-1": Cases(
        (gemm, attend, heads, lambda: replace(total(), requant=HALF_UP)),
        ((matmul, "operator is matmul"), (conv, "operator is conv2d")),
    ),
    "ITA-2": Cases(
        (lambda: gemm(bias=-(1 << 23)),),
        (
            (lambda: gemm(dtype="uint8"), "'layer' is uint8"),
            (lambda: with_weights(gemm(), np.int16), "weights are int16"),
            (lambda: gemm(bias=1 << 23), "8388608, more than 24 bits"),
            (lambda: gemm(Shift(8), bias=-(1 << 23)), "-8388736, more than 24 bits"),
        ),
    ),
    "ITA-3": Cases(
        (lambda: gemm(rows=512, inputs=512, outputs=512),),
        (
            (lambda: gemm(rows=513), "513 rows"),
            (lambda: gemm(inputs=513), "513 summed elements"),
            (lambda: gemm(outputs=513), "513 columns"),
            (lambda: attend(keys=513), "513 keys"),
            (lambda: total(9), "576 summed elements"),
        ),
    ),
    "ITA-4": Cases(
        (lambda: attend(128),), ((lambda: attend(32), "head size is 32, not a multiple of 64"),)
    ),
    "ITA-5": Cases(
        (lambda: gemm(MulShift((255,), (8,), (128 - 128 * 256,))), lambda: gemm(Shift(8))),
        (
            (lambda: gemm(TFLITE), "TfliteRequant"),
            (lambda: gemm(Shift(32)), "the shift is 32"),
            (lambda: gemm(MulShift((3, 4) * 32, (8,) * 64, (128,) * 64)), "each channel"),
            (lambda: gemm(MulShift((256,), (8,), (128,))), "the multiplier is 256"),
            (lambda: gemm(MulShift((3,), (8,), (100,))), "100 does not round half up"),
            (lambda: gemm(MulShift((3,), (8,), (128 + 128 * 256,))), "offset of 128"),
        ),
    ),
    "ITA-6": Cases(
        (lambda: gemm(clip=(0, 127)), lambda: gemm(function=ItaGelu(-37, 1200, 200, 18, -3))),
        (
            (lambda: gemm(clip=(0, 6)), "[0, 6]"),
            (lambda: gemm(function=TABLE), "the activation is TableMap"),
            (
                lambda: gemm(function=ItaGelu(-37, 1200, 200, 18, -3), clip=(0, 127)),
                "before the activation is [0, 127]",
            ),
            (lambda: gemm(function=ItaGelu(1, 1200, 200, 18, -3)), "b and c are 1 and 1200"),
            (lambda: gemm(function=ItaGelu(-37, 1200, 256, 18, -3)), "multiplier is 256"),
        ),
    ),
    "ITA-7": Cases(
        (lambda: attend(step_bits=0),),
        (
            (lambda: attend(group=8), "groups of 8, not of 16"),
            (lambda: attend(step_bits=4), "halves each 16 steps"),
            (lambda: attend(numerator=127 * 256), "numerator is 32512"),
        ),
    ),
    "ITA-8": Cases(
        (heads,),
        ((lambda: heads(MulShift((4,), (8,), (128,))), "query products have 2 requantizations"),),
    ),
    "ITA-9": Cases((gemm,), ((lambda: gemm(inputs=512), "the smallest tile"),), l1=24 * 1024),
}

NEUREKA = {
    "NEUREKA-1": Cases((conv, dense, gemm), ((total, "operator is add"),)),
    "NEUREKA-2": Cases(
        (lambda: conv(dtype="uint8", result="uint8"),),
        (
            (lambda: conv(dtype="int16"), "int16"),
            (lambda: with_weights(conv(), np.int16), "the weights are int16"),
            (lambda: gemm(dtype="int32"), "int32"),
        ),
    ),
    "NEUREKA-3": Cases((depthwise,), ((grouped, "groups are 2"),)),
    "NEUREKA-4": Cases(
        (depthwise, lambda: conv(kernel=(5, 5), pad=(2, 4, 2, 2))),
        ((lambda: depthwise(1), "1x1, depthwise"),),
    ),
    "NEUREKA-5": Cases(
        (lambda: depthwise(stride=2), lambda: conv(stride=(3, 3))),
        ((lambda: depthwise(stride=3), "3x3, depthwise"),),
    ),
    "NEUREKA-6": Cases((conv,), ((dilated, "2x2"),)),
    "NEUREKA-7": Cases(
        (
            lambda: conv((4, 14, 14), pad=(2, 2, 1, 1)),
            lambda: conv((4, 4, 4), pad=(2, 2, 2, 2)),
            lambda: conv((4, 96, 96), stride=(2, 2), pad=(0, 0, 1, 1)),
            # The cores copy windows.
            lambda: conv((4, 14, 14), kernel=(5, 5), pad=(2, 4, 2, 2)),
            lambda: conv((4, 14, 14), stride=(2, 1), pad=(1, 1, 1, 1)),
            lambda: conv((4, 13, 13), stride=(2, 2), pad=(1, 1, 1, 1)),
            lambda: conv((4, 14, 14), stride=(2, 2), pad=(1, 2, 1, 1)),
            lambda: conv((4, 14, 14), kernel=(1, 1), stride=(2, 3)),
        ),
        (
            (lambda: conv((4, 14, 14), kernel=(5, 5), pad=(2, 5, 2, 2)), "2, 5, 2, 2"),
            (lambda: conv((4, 14, 14), stride=(2, 2), pad=(1, 3, 1, 1)), "1, 3, 1, 1"),
            (lambda: conv((4, 14, 14), pad=(3, 0, 0, 0)), "3, 0, 0, 0"),
            (lambda: conv((4, 14, 14), pad=(0, 0, 2, 0)), "0, 0, 2, 0"),
            (lambda: conv((4, 14, 14), pad=(0, 0, 0, 2)), "0, 0, 0, 2"),
            (lambda: conv((4, 14, 14), kernel=(1, 1), pad=(1, 0, 0, 0)), "1, 0, 0, 0"),
        ),
    ),
    "NEUREKA-8": Cases(
        (lambda: gemm(Shift(20), rows=1, inputs=1, outputs=65535),),
        (
            (lambda: gemm(Shift(20), rows=1, inputs=65536, outputs=1), "65536 input channels"),
            (lambda: gemm(Shift(20), rows=1, inputs=1, outputs=65536), "65536 output channels"),
            (lambda: conv((1, 65536, 1), 1, (1, 1)), "there are 65536 rows, more than 65535"),
        ),
    ),
    "NEUREKA-9": Cases(
        (lambda: with_weights(conv(), np.int8, 8, -7),),
        (
            (
                lambda: with_weights(conv(), np.int8, 14, -16),
                "weights from -16 to 14 need 5 bits",
            ),
        ),
        {"max_weight_bits": 4},
    ),
    "NEUREKA-10": Cases(
        (gemm,),
        (
            (lambda: gemm(transposed=True), "column by column"),
            (lambda: gemm(function=TABLE), "TableMap"),
        ),
    ),
    "NEUREKA-11": Cases(
        (lambda: conv(requant=replace(ONE, mul=(2**31 - 1,), shift=(31,))),),
        (
            (lambda: conv(requant=TFLITE), "TfliteRequant"),
            (lambda: conv(requant=Shift(32)), "32, not in 0..31"),
            (lambda: conv(requant=replace(ONE, mul=(2**31,))), "a factor is 2147483648, more"),
            (lambda: conv(requant=replace(ONE, mul=(-(2**31) - 1,))), "a factor is -2147483649"),
            (
                lambda: conv(requant=MulShift((1,) * 7 + (2**40,), (4,) * 8, (0,) * 8)),
                "1099511627776",
            ),
        ),
    ),
    "NEUREKA-12": Cases(
        (
            lambda: conv(clip=(0, 127)),
            # Without a bias, products may have 64 bits.
            lambda: conv(weight=127, requant=replace(ONE, mul=(4000,), shift=(31,))),
            # No sum of bytes that are not negative is: 36 x 255 >> 8 is at most 35.
            lambda: conv(dtype="uint8", requant=Shift(8), clip=(-1, 40)),
            lambda: conv(dtype="uint8", requant=Shift(8), clip=(0, 35), result="uint8"),
        ),
        (
            # 9 taps x 4 channels x 127 x -128, times 4000.
            (lambda: conv(weight=127, requant=MulShift((4000,), (4,), (1,))), "-2340864000"),
            # 36 x -128 and the bias together, though each fits.
            (lambda: conv(bias=bias(-(2**31) + 100), requant=ONE), "-2147488156"),
            (lambda: conv(bias=bias(2**30), requant=replace(ONE, mul=(2,))), "2147483648"),
            (lambda: conv(clip=(-5, 100)), "[-5, 100] for int8"),
            (lambda: conv(clip=(0, 127), result="uint8"), "[0, 127] for uint8"),
        ),
    ),
    "NEUREKA-13": Cases(
        (lambda: gemm(Shift(20), rows=1, inputs=20_000, outputs=1),),
        ((lambda: conv((60_000, 3, 3), 1), "the smallest tile"),),
    ),
}
