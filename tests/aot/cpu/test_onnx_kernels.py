"""Kernels in onnxruntime's arithmetic, compiled natively with traps, equal the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from byoc_dory.layers import OnnxRequant
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.dense import Dense
from patterns.ops.onnxruntime.average import OnnxAverage
from patterns.ops.onnxruntime.binary import OnnxAdd
from patterns.ops.onnxruntime.rounding import OnnxQuantize, float_scale
from tests.aot.cpu import native
from tests.aot.cpu.modules import bias_of, int8
from tests.patterns.build import module_of
from tests.reference.interpreter import interpret

# TVM takes long over the arithmetic as it is defined.
MODES = ("scheduled", pytest.param("default", marks=pytest.mark.slow))


def requant(scales, zero=0, inputs=(0,)) -> OnnxRequant:
    multipliers, shifts = zip(*(float_scale(float(scale)) for scale in scales), strict=True)
    return OnnxRequant(multipliers, shifts, zero, inputs)


def conv_module(shape, k, scales, groups=1, bias_size=2000):
    rng = np.random.default_rng([*shape, k])
    weight, bias = int8(rng, k, shape[1] // groups, 3, 3), bias_of(rng, k, bias_size)
    window = Window(padding=(1, 1, 1, 1), groups=groups, layout="NCHW")
    op = conv2d_of(weight, bias, window, requant(scales, -5), (-128, 120))
    return module_of([shape], lambda bb, x: op.write(bb, [x], "conv2d_0"))


def dense_module(scale, bias_size=2000, drop=0, channels=40):
    rng = np.random.default_rng(channels)
    weight, bias = int8(rng, 9, channels) >> drop, bias_of(rng, 9, bias_size)
    return module_of(
        [(1, channels)],
        lambda bb, x: Dense(weight, bias, requant([scale], 7)).write(bb, [x], "dense_0"),
    )


def wide_module(*, dense: bool):
    """Weights that int8 does not hold."""
    rng = np.random.default_rng(dense)
    shape = (9, 40) if dense else (5, 4, 3, 3)
    weight = rng.integers(-255, 256, shape).astype(np.int16)
    bias, scales = bias_of(rng, len(weight), 2000), requant([0.002], -5)
    if dense:
        op = Dense(weight, bias, scales)
        return module_of([(1, 40)], lambda bb, x: op.write(bb, [x], "dense_0"))
    op = conv2d_of(weight, bias, Window(padding=(1, 0, 1, 2), layout="NCHW"), scales)
    return module_of([(1, 4, 6, 7)], lambda bb, x: op.write(bb, [x], "conv2d_0"))


def add_module(scales):
    return module_of(
        [(1, 3, 5, 7)] * 2,
        lambda bb, a, b: OnnxAdd(requant(scales, 4, (1, -9)), (4, 127)).write(bb, [a, b], "add_0"),
    )


def average_module():
    return module_of(
        [(1, 6, 8, 8)],
        lambda bb, x: OnnxAverage(
            requant([1.1 / 16], 2, (-3,)), kernel=(4, 4), strides=(2, 2)
        ).write(bb, [x], "average_0"),
    )


def average_in_reals():
    return module_of(
        [(1, 6, 8, 8)],
        lambda bb, x: OnnxAverage(
            requant([1.0 / 4], 3, (-3,)), kernel=(2, 2), strides=(2, 2), padding=(0, 1, 2, 1),
            steps=(0.07, 0.07, 131.0),
        ).write(bb, [x], "average_0"),
    )  # fmt: skip


CASES = {
    "per channel": lambda: conv_module((1, 4, 6, 7), 5, np.linspace(0.0005, 0.01, 5)),
    "few bits, so ties": lambda: conv_module((1, 4, 6, 7), 3, [2.0**-8, 2.0**-9, 2.0**-10]),
    "depthwise": lambda: conv_module((1, 6, 5, 5), 6, np.linspace(0.002, 0.2, 6), groups=6),
    "large scale": lambda: dense_module(0.3, 100, drop=7),
    "large accumulators": lambda: dense_module(2.0**-19, 2**26),
    "sums of 2**24, which are clipped": lambda: dense_module(0.0002, channels=1200),
    "weights of 16 bits": lambda: wide_module(dense=False),
    "a matrix of 16 bits": lambda: wide_module(dense=True),
    "add": lambda: add_module((0.5, 0.5)),
    "unlike add": lambda: add_module((0.013, 1.7)),
    "average": average_module,
    "average, fused": average_in_reals,
}


@pytest.mark.parametrize("mode", MODES)
def test_kernels(mode, tmp_path, compiler) -> None:
    modules = {label: make() for label, make in CASES.items()}
    codes = {
        label: native.compiled(module, f"net{number}", mode)
        for number, (label, module) in enumerate(modules.items())
    }

    def check() -> None:
        loaded = native.library(codes.values(), tmp_path, native.trapping(compiler))
        for label, module in modules.items():
            rng = np.random.default_rng(8)
            params = module["main"].params
            data = [int8(rng, *(int(size) for size in param.ty.shape)) for param in params]
            named = {str(param.name): item for param, item in zip(params, data, strict=True)}
            (made,) = native.run(codes[label], loaded, named)
            (wanted,) = interpret(module, data).outputs
            assert len(np.unique(wanted)) > 4, label
            np.testing.assert_array_equal(made, wanted, err_msg=label)

    native.in_child(check)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scale", [0.5, 0.0123456789])
def test_quantize(scale, mode, tmp_path, compiler) -> None:
    module = module_of(
        [(1, 240)], lambda bb, x: OnnxQuantize(scale, -3).write(bb, [x], "quantize_0"), "float32"
    )
    code = native.compiled(module, "net", mode)
    ends = [np.nan, np.inf, -np.inf, 1e9, -1e9, 63, 66, 0]
    x = np.concatenate([np.arange(-116, 116) / 2 * scale, ends]).astype(np.float32)[None]

    def check() -> None:
        loaded = native.library([code], tmp_path, native.trapping(compiler))
        (made,) = native.run(code, loaded, {"input_0": x})
        np.testing.assert_array_equal(made, interpret(module, [x]).outputs[0])

    native.in_child(check)
