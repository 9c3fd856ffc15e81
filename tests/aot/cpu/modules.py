"""Helper: modules in the integer form of one operator (or a few), with random weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax

from byoc_dory.layers import MulShift, Shift, TfliteRequant
from patterns.ops.convolution import Window, conv2d_of
from tests.reference import cpu_kernels as reference


@dataclass
class Case:
    """A module, an input for each of its parameters, and the outputs expected."""

    module: Any
    inputs: dict[str, np.ndarray]
    expected: np.ndarray


def int8(rng, *shape):
    return rng.integers(-128, 128, shape).astype("int8")


def bias_of(rng, channels, size=2000):
    return rng.integers(-size, size, channels).astype("int32")


def tflite(rng, channels, largest=-4, zero_point=None):
    """Multipliers, shifts at most ``largest``, and a zero point."""
    return TfliteRequant(
        tuple(int(m) for m in rng.integers(2**30, 2**31, channels)),
        tuple(int(s) for s in rng.integers(largest - 4, largest + 1, channels)),
        int(rng.integers(-128, 128)) if zero_point is None else zero_point,
    )


def mul_shift(rng, channels):
    return MulShift(
        mul=tuple(int(m) for m in rng.integers(1, 200, channels)),
        shift=(15,),
        add=tuple(int(a) for a in rng.integers(-2000, 2000, channels)),
    )


def module(shapes: dict[str, tuple[int, ...]], write) -> Any:
    """``write(builder, *variables)`` binds the operators and returns the result."""
    bb = relax.BlockBuilder()
    params = [relax.Var(name, relax.TensorType(shape, "int8")) for name, shape in shapes.items()]
    with bb.function("main", params):
        with bb.dataflow():
            result = bb.emit_output(write(bb, *params))
        bb.emit_func_output(result)
    return bb.finalize()


def requantized(acc, requant, clip, reference=reference):
    """``acc`` (channels last) through a requantization, by the reference."""
    if isinstance(requant, Shift):
        return reference.requantize_shift(acc, requant.shift, clip)
    if isinstance(requant, MulShift):
        parts = (np.array(p, "int64") for p in (requant.mul, requant.add, requant.shift))
        return reference.requantize_mul_shift(acc, *parts, clip)
    multiplier, shift = (np.array(p, "int64") for p in (requant.multiplier, requant.shift))
    return reference.requantize_tflite(acc, multiplier, shift, requant.output_zero_point, clip)


def conv_case(
    y, x, c, k, filter, stride, padding, scheme, groups=1, layout="NHWC", dilation=1, zero=None,
    least=None,
):  # fmt: skip
    rng = np.random.default_rng([y, x, c, k, *filter])
    weight = int8(rng, k, c // groups, *filter)
    if least is not None:  # the smallest weight, which is there
        weight = np.maximum(weight, least).astype("int8")
        weight[0, 0, 0, 0] = least
    bias = bias_of(rng, k)
    taps = int(np.prod(weight.shape[1:]))
    spread = max(1, round(np.log2(taps * 5000 / 64)))
    requant = {
        "tflite": lambda: tflite(rng, k, 3 - spread, zero),
        "shift": lambda: Shift(spread),
        "mul_shift": lambda: mul_shift(rng, k),
    }[scheme]()
    clip = (0, 127) if scheme == "shift" else (-128, 127)
    data = int8(rng, y, x, c)
    acc = reference.conv2d(data, weight, bias, stride, padding, 0, groups, dilation)
    expected = requantized(acc, requant, clip, reference)
    if layout == "NCHW":
        data, expected = data.transpose(2, 0, 1), expected.transpose(2, 0, 1)
    shape = (1, *data.shape)
    window = Window(stride, padding, (dilation, dilation), groups, layout)
    op = conv2d_of(weight, bias, window, requant, clip)
    name = "conv2d_0" if groups == 1 else "depthwise_0"
    built = module({"x": shape}, lambda bb, v: op.write(bb, [v], name))
    return Case(built, {"x": data.reshape(shape)}, expected)
