"""Sums of products stay in registers until they are requantized, whatever arithmetic does that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import htvm
from htvm.aot.cpu import CpuCode, compile_cpu
from htvm.aot.steps import Alias
from patterns.ops.convolution import Window, conv2d_of
from tests.aot.cpu.modules import bias_of, int8
from tests.aot.cpu.test_columns import MVE, need_emulator
from tests.aot.cpu.test_onnx_kernels import requant
from tests.generated.operators import GROUPS
from tests.generated.operators import module_of as group_of
from tests.patterns.build import module_of
from tests.reference.interpreter import interpret

REQUANTIZING = (
    "convolution_shift", "convolution_mul_shift", "convolution_tflite", "convolution_onnx",
    "convolutions_rare", "dense", "sums", "pools", "wide",
)  # fmt: skip


def sums_in_memory(code: CpuCode) -> list[str]:
    """Names of int32 tensors that one kernel writes and others read."""
    read = {name for call in code.calls if not isinstance(call, Alias) for name in call.inputs}
    read |= {call.source for call in code.calls if isinstance(call, Alias)}
    made = [value for call in code.calls if not isinstance(call, Alias) for value in call.outputs]
    return [value.name for value in made if value.dtype == "int32" and value.name in read]


@pytest.mark.rotating(6)
@pytest.mark.parametrize("simd", ["", "dsp"], ids=["scalar", "dsp"])
@pytest.mark.parametrize("group", REQUANTIZING)
def test_no_sums_between_kernels(group: str, simd: Any) -> None:
    code = compile_cpu(group_of(*GROUPS[group]), "net", simd=simd, scarce=True)
    assert sums_in_memory(code) == []


def layer(kind: str) -> tuple[Any, int]:
    """A layer of 16 channels of 14 x 14 in NCHW, a scale for each, and its results."""
    rng, groups = np.random.default_rng(3), 16 if kind == "depthwise" else 1
    taps = 1 if kind == "pointwise" else 3
    weight, bias = int8(rng, 16, 16 // groups, taps, taps), bias_of(rng, 16)
    op = conv2d_of(
        weight,
        bias,
        Window(groups=groups, layout="NCHW"),
        requant(np.linspace(0.001, 0.02, 16), -128),
        (-128, 127),
    )
    module = module_of([(1, 16, 14, 14)], lambda bb, x: op.write(bb, [x], "conv2d_0"))
    return module, 16 * (15 - taps) ** 2


@pytest.mark.parametrize(
    ("kind", "core", "most"),
    [
        ("pointwise", "cortex_m0plus", 130),
        ("pointwise", "cortex_m4", 42),
        ("pointwise", MVE, 24),
        ("windows", "cortex_m4", 177),
        ("windows", MVE, 45),
        ("depthwise", "cortex_m0plus", 109),
        ("depthwise", "cortex_m4", 44.5),
    ],
)
def test_onnx_layers_take_few_instructions(kind: str, core: str, most: float) -> None:
    """Instructions for each result, everything included."""
    need_emulator(core)
    module, results = layer(kind)
    data = int8(np.random.default_rng(4), 1, 16, 14, 14)
    found = htvm.build(module, core).run([data])
    np.testing.assert_array_equal(found.outputs[0], interpret(module, [data]).outputs[0])
    assert found.instructions is not None
    print(f"{kind} on {core}: {found.instructions / results:.1f} instructions a result")
    assert found.instructions / results < most
