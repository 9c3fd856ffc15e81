"""Networks of ternary layers, built for the analog core and for the CPU alone, against the
interpreter of the integer form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm import relax
from tvm.ir import IRModule
from tvm.relax import op as R

import htvm
from byoc_dory.layers import AnalogRequant
from byoc_dory.options import TilingOptions
from htvm.errors import TargetError
from patterns.names import emit
from patterns.ops.analog.products import AnalogConv2d, AnalogDense
from patterns.ops.convolution import Window
from tests.byoc_dory.analog import requant, seven_bits, ternary
from tests.patterns.build import module_of
from tests.reference.interpreter import interpret

SHAPE = (1, 9, 10, 6)


def network(seed: int) -> IRModule:
    """Three convolutions, of which one may need several passes, and a head of one or two."""
    rng = np.random.default_rng(seed)
    wide = int(rng.integers(129, 200)) if seed % 2 else int(rng.integers(3, 60))

    def factors(k: int, terms: int) -> AnalogRequant:
        return requant(rng, k, min(terms, 1152))

    def conv(bb: relax.BlockBuilder, x: Any, k: int, size: int, stride: int, name: str) -> Any:
        c = int(x.ty.shape[3])
        pads = tuple(int(value) for value in rng.integers(0, size, 4))
        clip = ((-64, 63), (0, 63))[int(rng.integers(2))]
        return AnalogConv2d(
            ternary(rng, k, c, size, size),
            factors(k, c * size * size),
            clip,
            window=Window(strides=(stride, stride), padding=pads),
        ).write(bb, [x], name)

    def write(bb: relax.BlockBuilder, x: relax.Var) -> relax.Var:
        first = conv(bb, x, wide, 1, 1, "first")
        second = conv(bb, first, int(rng.integers(1, 40)), 3, 2, "second")
        third = conv(bb, second, int(rng.integers(1, 30)), 3, 1, "third")
        elements = int(np.prod([int(size) for size in third.ty.shape]))
        flat = emit(bb, R.reshape(third, (1, elements)), "flat", last=True)
        weight = ternary(rng, 10, elements)
        return AnalogDense(weight, factors(10, elements), (-128, 127)).write(bb, [flat], "head")

    return module_of([SHAPE], write)


def check(seed: int, target: str, **options: Any) -> htvm.Module:
    module = network(seed)
    built = htvm.build(module, target, **options)
    x = seven_bits(np.random.default_rng(seed), *SHAPE)
    want = interpret(module, [x]).outputs[0]
    np.testing.assert_array_equal(built.run(x).outputs[0], want)
    return built


def test_on_the_analog_core_with_and_without_noise() -> None:
    built = check(1, "diana.analog")
    # The network's input has eight bits, so its first layer is none for the core.
    assert built.placement == {
        "first": "cpu", "second": "analog", "third": "analog", "flat": "cpu", "head": "analog",
    }  # fmt: skip
    reasons = {(verdict.layer, verdict.accelerator): verdict.reason for verdict in built.verdicts}
    assert "[-128, 127], which has more than 7 bits" in reasons["first", "analog"]
    x = seven_bits(np.random.default_rng(1), *SHAPE)
    exact = built.run(x)
    noisy = [built.run(x, analog_noise=2.0, noise_seed=seed).outputs[0] for seed in (3, 3, 4)]
    np.testing.assert_array_equal(noisy[0], noisy[1])
    assert (noisy[0] != noisy[2]).any() and (noisy[0] != exact.outputs[0]).any()
    np.testing.assert_array_equal(built.run(x).outputs[0], exact.outputs[0])


def test_on_the_cpu_alone() -> None:
    built = check(1, "diana.cpu", platform="host")
    assert set(built.placement.values()) == {"cpu"}
    with pytest.raises(TargetError, match="no in-memory array"):
        built.run(seven_bits(np.random.default_rng(1), *SHAPE), analog_noise=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_random_networks(seed: int) -> None:
    tiling = TilingOptions(
        l1_budget=(None, 20_000, 10_500)[seed % 3],
        schedule=("overlapped", "published")[seed // 3 % 2],
        unroll=(1, 8)[seed // 6 % 2],
    )
    check(seed, "diana.analog", platform=("host", "rv32")[seed % 2], tiling=tiling)
    check(seed, "diana.cpu", platform="host")
