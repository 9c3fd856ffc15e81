"""What the schedules are for: few cycles per MAC on the simulated RV32 host."""

from __future__ import annotations

import numpy as np
import pytest

from byoc_dory.soc.registry import resolve
from htvm.aot.cpu import compile_cpu
from htvm.aot.program import Assembly, assemble
from htvm.firmware.build import build_rv32
from htvm.model import TensorInfo
from htvm.sim.runner import run
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.dense import Dense
from tests.aot.cpu.modules import bias_of, int8, module, tflite


def cycles_per_mac(built, compiler, tmp_path, kernels="scheduled") -> float:
    code = compile_cpu(built, "net", kernels=kernels)
    shape = tuple(int(size) for size in built["main"].params[0].ty.shape)
    output = code.calls[-1].outputs[0]
    program = assemble(
        Assembly(
            name="net",
            inputs=(TensorInfo("x", shape, "int8"),),
            outputs=(TensorInfo("y", output.shape, output.dtype),),
            calls=code.calls,
            results=code.results,
            cpu_kernels=code.kernels,
            regions={},
            constants=code.constants,
        )
    )
    firmware = build_rv32(program, resolve("generic.cpu").soc, compiler, tmp_path)
    result = run(firmware, [int8(np.random.default_rng(0), *shape)])
    return sum(result.step_cycles) / sum(call.macs for call in code.calls)


def convolution(y, x, c, k, filter, groups=1, padding=0):
    rng = np.random.default_rng(0)
    weight, bias, requant = int8(rng, k, c // groups, *filter), bias_of(rng, k), tflite(rng, k, -8)
    return module(
        {"x": (1, y, x, c)},
        lambda bb, v: conv2d_of(
            weight, bias, Window(padding=(padding,) * 4, groups=groups), requant
        ).write(bb, [v], "conv2d_0"),
    )


CASES = {
    # limit of cycles per MAC, requantization and padding included
    "3x3": (3.3, lambda: convolution(16, 16, 32, 32, (3, 3), padding=1)),
    "3x3, first layer": (4.4, lambda: convolution(16, 16, 3, 16, (3, 3), padding=1)),
    "1x1, odd": (3.5, lambda: convolution(13, 5, 64, 64, (1, 1))),
    "depthwise": (7.5, lambda: convolution(18, 18, 16, 16, (3, 3), groups=16)),
}


@pytest.mark.parametrize("name", CASES)
def test_convolution(name, compiler, tmp_path):
    limit, make = CASES[name]
    assert cycles_per_mac(make(), compiler, tmp_path) < limit


def test_dense(compiler, tmp_path):
    rng = np.random.default_rng(0)
    weight, bias, requant = int8(rng, 64, 256), bias_of(rng, 64), tflite(rng, 64, -8)
    built = module(
        {"x": (1, 256)}, lambda bb, v: Dense(weight, bias, requant).write(bb, [v], "dense_0")
    )
    assert cycles_per_mac(built, compiler, tmp_path) < 3.5


def test_schedules_pay(compiler, tmp_path):
    _, make = CASES["3x3"]
    plain = cycles_per_mac(make(), compiler, tmp_path, "default")
    assert plain > 2 * cycles_per_mac(make(), compiler, tmp_path)
