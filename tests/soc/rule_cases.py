"""Helper: what each rule of each accelerator accepts, and what it refuses, by its identifier."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from byoc_dory.layers import MulShift, Shift
from byoc_dory.soc.dla.design import DEPTHWISE
from tests.soc.cluster_rule_cases import CLUSTER, ITA, NEUREKA, SIRACUSA_CLUSTER
from tests.soc.ethos_u_rule_cases import ETHOS_U55, ETHOS_U65
from tests.soc.rule_layers import (
    GAINS,
    ONE,
    TFLITE,
    Cases,
    analog,
    bias,
    conv,
    dense,
    depthwise,
    dilated,
    gemm,
    grouped,
    matmul,
    total,
    with_weights,
)

DIGITAL = {
    "DIGITAL-1": Cases(
        (conv, depthwise, dense, total),
        ((matmul, "operator is matmul"), (gemm, "operator is gemm")),
    ),
    "DIGITAL-2": Cases(
        (lambda: conv(bias=bias(1)),),
        (
            (lambda: conv(dtype="uint8"), "'x' is uint8"),
            (lambda: with_weights(conv(), np.int16), "int16"),
            (lambda: conv(bias=np.ones(8, np.int64)), "int64"),
        ),
    ),
    "DIGITAL-3": Cases(
        (lambda: conv(kernel=(7, 7)), lambda: conv(kernel=(2, 6))),
        ((lambda: conv((1, 49, 10), kernel=(10, 4)), "10x4"),),
    ),
    "DIGITAL-4": Cases(
        (lambda: conv(stride=(2, 2)),),
        ((lambda: conv(stride=(3, 3)), "3x3"), (lambda: conv(stride=(2, 1)), "2x1")),
    ),
    "DIGITAL-5": Cases((conv,), ((dilated, "2x2"),)),
    "DIGITAL-6": Cases((depthwise,), ((grouped, "groups are 2"),)),
    "DIGITAL-7": Cases(
        (lambda: conv(requant=Shift(0)), lambda: conv(requant=Shift(31))),
        (
            (lambda: conv(requant=MulShift((3,), (4,))), "MulShift"),
            (lambda: conv(requant=TFLITE), "TfliteRequant"),
            (analog, "AnalogRequant"),
            (lambda: conv(requant=Shift(32)), "shift is 32"),
            (lambda: conv(requant=Shift(-1)), "shift is -1"),
        ),
    ),
    "DIGITAL-8": Cases((lambda: conv(clip=(0, 127)),), ((lambda: conv(clip=(0, 6)), "[0, 6]"),)),
    "DIGITAL-9": Cases((total,), ((lambda: total(3), "3 operands"),)),
    "DIGITAL-10": Cases(
        (lambda: total(shape=(40,)),),
        ((lambda: total(last=(4, 1, 1)), "(4, 8, 8) and (4, 1, 1)"),),
    ),
    "DIGITAL-11": Cases(
        (lambda: conv(pad=(2, 2, 2, 2)),),
        ((lambda: conv(pad=(3, 1, 1, 1)), "(3, 1, 1, 1)"),),
    ),
    "DIGITAL-12": Cases(
        (lambda: conv((1, 65535, 1), kernel=(1, 1)),),
        ((lambda: conv((1, 1, 65536), kernel=(1, 1)), "a dimension is 65536"),),
    ),
    "DIGITAL-13": Cases(
        (lambda: conv((440, 3, 3)),),
        (
            (lambda: conv((512, 3, 3)), "73792 B of weight memory"),
            (lambda: dense(4000, 3), "64256 B of weight memory"),
        ),
    ),
}

ANALOG = {
    "ANALOG-1": Cases(
        (analog,),
        (
            (depthwise, "operator is depthwise"),
            (total, "operator is add"),
            (lambda: replace(grouped(), requant=GAINS), "groups are 2 with C=4 and K=8"),
        ),
    ),
    "ANALOG-2": Cases(
        (analog,),
        (
            (lambda: analog(dtype="uint8"), "'x' is uint8"),
            (lambda: analog(result="int16"), "'y' is int16"),
            (lambda: with_weights(analog(), np.int16), "the weights are int16"),
        ),
    ),
    "ANALOG-3": Cases(
        (lambda: with_weights(analog(), np.int8, -1, 0, 1),),
        (
            (lambda: with_weights(analog(), np.int8, 1, 5), "a weight is 5"),
            (lambda: with_weights(analog(), np.int8, -2), "a weight is -2"),
        ),
    ),
    "ANALOG-4": Cases(
        (lambda: analog(input_range=(0, 63)), lambda: analog(input_range=(-3, 5))),
        (
            (lambda: analog(input_range=(-128, 127)), "lies in [-128, 127]"),
            (lambda: analog(input_range=(0, 64)), "lies in [0, 64], which has more than 7 bits"),
        ),
    ),
    "ANALOG-5": Cases(
        (lambda: analog(bias=bias(0)),),
        (
            (lambda: analog(requant=Shift(3)), "the requantization is Shift"),
            (lambda: analog(bias=bias(7)), "a bias is 7"),
        ),
    ),
    "ANALOG-6": Cases(
        (
            lambda: analog(requant=replace(GAINS, gain=1)),
            lambda: analog(requant=replace(GAINS, gain=1 << 15)),
        ),
        (
            (lambda: analog(requant=replace(GAINS, gain=12)), "the gain is 12"),
            (lambda: analog(requant=replace(GAINS, gain=1 << 16)), "the gain is 65536"),
        ),
    ),
    "ANALOG-7": Cases(
        (analog,),
        ((lambda: analog(requant=replace(GAINS, adc=(-16, 15))), "clipped to [-16, 15]"),),
    ),
    "ANALOG-8": Cases(
        (lambda: analog(requant=replace(GAINS, rows=1151)),),
        (
            (lambda: analog(requant=replace(GAINS, rows=27)), "a pass sums 3 channels, not 4"),
            (lambda: analog((24_000, 7, 7), kernel=(7, 7), weight=0), "1044 passes may leave 16"),
        ),
    ),
    "ANALOG-9": Cases(
        (lambda: analog((9216, 1, 1), kernel=(1, 1)),),
        ((lambda: analog((20_000, 1, 1), kernel=(1, 1)), "20000 rows take 18 passes"),),
    ),
    "ANALOG-10": Cases(
        (lambda: analog(requant=replace(GAINS, mul=(-32_768,), add=(32_767,))),),
        (
            (lambda: analog(requant=replace(GAINS, mul=(40_000,))), "a factor is 40000"),
            (lambda: analog(requant=replace(GAINS, add=(0, 0))), "2 summands for 8"),
            (lambda: analog(requant=replace(GAINS, add=(-32_769,))), "a summand is -32769"),
        ),
    ),
    "ANALOG-11": Cases(
        (lambda: analog(requant=replace(GAINS, shift=31)),),
        ((lambda: analog(requant=replace(GAINS, shift=32)), "the shift is 32"),),
    ),
    "ANALOG-12": Cases(
        tuple(
            lambda clip=clip: analog(clip=clip)  # type: ignore[misc]
            for clip in ((-128, 127), (0, 127), (-64, 63), (0, 63))
        ),
        (
            (lambda: analog(clip=(-127, 127)), "the clip range is [-127, 127]"),
            (lambda: analog(clip=(0, 31)), "the clip range is [0, 31]"),
        ),
    ),
    "ANALOG-13": Cases(
        (lambda: analog(kernel=(7, 7), stride=(2, 2)),),
        (
            (lambda: analog(kernel=(8, 1)), "kernel is 8x1"),
            (lambda: analog(stride=(3, 3)), "stride is 3x3"),
            (lambda: replace(dilated(), requant=GAINS, input_range=(0, 63)), "dilation is 2x2"),
        ),
    ),
    "ANALOG-14": Cases(
        (lambda: analog(pad=(2, 2, 2, 2)),),
        ((lambda: analog(pad=(0, 0, 0, 3)), "(0, 0, 0, 3)"),),
    ),
    "ANALOG-15": Cases(
        (lambda: analog((1, 65535, 1), kernel=(1, 1)),),
        ((lambda: analog((1, 65536, 1), kernel=(1, 1)), "a dimension is 65536"),),
    ),
    "ANALOG-16": Cases(
        (analog,),
        ((lambda: analog((64, 7, 7), kernel=(7, 7)), "the smallest tile"),),
        l1=2048,
    ),
}

DLA = {
    "DLA-1": Cases(
        (conv, depthwise, dense, total),
        (
            (gemm, "operator is gemm"),
            (grouped, "2 groups of 2 channels"),
            (lambda: total(3), "3 operands"),
            (lambda: total(last=(4, 1, 1)), "different shapes"),
        ),
    ),
    "DLA-2": Cases(
        (conv,),
        ((depthwise, "leaves depthwise convolutions to the CPU"),),
        {"depthwise": DEPTHWISE.index("cpu")},
    ),
    "DLA-3": Cases(
        (lambda: conv((1, 1, 1), 1, (1, 1), stride=(32767, 32767)),),
        ((lambda: conv((1, 1, 1), 1, (1, 1), stride=(1, 32768)), "is 32768"),),
    ),
    "DLA-4": Cases((conv,), ((dilated, "2x2"),)),
    "DLA-5": Cases((conv,), ((lambda: conv(dtype="uint8"), "'x' is uint8"),)),
    "DLA-6": Cases(
        (lambda: conv(requant=Shift(31)),),
        (
            (lambda: conv(requant=ONE), "MulShift"),
            (lambda: conv(requant=Shift(32)), "the shift is 32"),
        ),
    ),
    "DLA-7": Cases(
        (lambda: conv((1000, 3, 3)),),
        ((lambda: conv((100_000, 3, 3)), "SRAM"),),
    ),
}

TABLES = {
    ("diana", "digital"): DIGITAL,
    ("diana", "analog"): ANALOG,
    ("snitch_ita", "cluster"): CLUSTER,
    ("snitch_ita", "ita"): ITA,
    ("siracusa", "cluster"): SIRACUSA_CLUSTER,
    ("siracusa", "neureka"): NEUREKA,
    ("dla", "dla"): DLA,
    ("ethos_u", "ethos_u55"): ETHOS_U55,
    ("ethos_u", "ethos_u65"): ETHOS_U65,
}
