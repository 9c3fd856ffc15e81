"""Sums on the Ethos-U: every pair of bytes becomes what its source makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from byoc_dory.layers import Add, Array, MulShift, OnnxSum, Shift, Tensor
from byoc_dory.options import TilingOptions
from byoc_dory.soc.ethos_u.device import Device
from byoc_dory.soc.ethos_u.lower import networks
from byoc_dory.soc.ethos_u.sums import Sum, sum_of
from byoc_dory.soc.ethos_u.vela import compiled
from byoc_dory.soc.registry import resolve
from htvm.firmware.host import model_library
from patterns.ops.add import Add as IntegerAdd
from patterns.ops.onnxruntime.binary import OnnxAdd
from patterns.reading.read import graph_of
from tests.patterns.build import module_of
from tests.patterns.test_onnx_arithmetic import requant
from tests.reference.interpreter import interpret

ALL = np.arange(-128, 128, dtype=np.int8)
A, B = (each.reshape(1, 16, 16, 256) for each in np.meshgrid(ALL, ALL, indexing="ij"))
KINDS = ("int8", "uint8", "reals", "equal", "ties", "floors")


def operator(kind: str, seed: int) -> Any:
    """A sum with drawn scales and zero points."""
    rng = np.random.default_rng(seed)
    if kind == "floors":
        bits = int(rng.integers(9, 16))
        product, addend = int(rng.integers(1, 1 << 10)), int(rng.integers(-1000, 1000))
        return IntegerAdd(Shift(seed) if seed % 2 else MulShift((product,), (bits,), (addend,)))
    scales = rng.uniform(0.01, 0.1, 3).astype(np.float32)
    scales[2] *= 2
    if kind == "equal":
        scales[1] = scales[0]
    if kind == "ties":
        scales[:] = scales[0], scales[0] / 2, scales[0] * 2
    zeros = [int(each) for each in rng.integers(-128, 128, 3)]
    clip = (zeros[2], 127) if seed % 2 else (-128, 127)
    factors = (float(each / scales[2]) for each in scales[:2])
    numbers = requant(*factors, zero=zeros[2], inputs=(zeros[0], zeros[1]))
    if kind == "reals":
        return OnnxAdd(numbers, clip, steps=tuple(map(float, scales)))
    return OnnxAdd(numbers, clip, kernel="uint8" if kind == "uint8" else "int8")


def layer_and_results(kind: str, seed: int) -> tuple[Add, Array]:
    """A sum of all pairs of bytes as a layer, and what it gives."""
    made = operator(kind, seed)
    module = module_of([A.shape, B.shape], lambda bb, a, b: made.write(bb, [a, b], "add_0"))
    (node,) = graph_of(module).in_order
    assert isinstance(node.layer, Add)
    return node.layer, interpret(module, [A, B]).outputs[0]


def executed(layer: Add, target: str, inputs: Sequence[Array]) -> Array:
    """What the accelerator makes of inputs."""
    found = resolve(target)
    (core,) = found.accelerators
    settings = core.settings(found.soc, TilingOptions())  # type: ignore[attr-defined]
    (network,) = networks((layer,), [layer.output.name])
    program = compiled(network, settings)
    (output,), complaint = Device(model_library(found.soc)).run(program, list(inputs))
    assert not complaint
    return output


@pytest.mark.rotating(4)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_every_pair_of_bytes(kind: str, seed: int) -> None:
    pytest.importorskip("ethosu.regor", reason="ethos-u-vela is not installed")
    layer, wanted = layer_and_results(kind, seed)
    found = sum_of(layer)
    assert isinstance(found, Sum), found
    assert (len(found.offsets) > 1) == (kind == "ties")
    output = executed(layer, ("ethos_u55:macs=32", "ethos_u65")[seed % 2], (A, B))
    np.testing.assert_array_equal(output, wanted.reshape(-1))


def test_most_sums_are_one_operator() -> None:
    """That is, one operand is not scaled, or by a half, and there is no offset."""
    rng, count = np.random.default_rng(0), 0
    for _ in range(20):
        scales = rng.uniform(0.1, 1, 2)
        numbers = requant(*scales, zero=3, inputs=(5, -7))
        tensors = (Tensor(name, (4, 4, 4)) for name in "aby")
        *inputs, output = tensors
        layer = Add(
            name="add", inputs=tuple(inputs), output=output, requant=OnnxSum(**vars(numbers))
        )
        found = sum_of(layer)
        assert isinstance(found, Sum)
        count += 1 << 30 in found.multipliers[:2] and found.offsets == (0,)
    assert count >= 17


def test_a_factor_that_the_kernel_rounds() -> None:
    far = OnnxAdd(requant(1.0, 2.0**-25, inputs=(0, 0)))
    module = module_of([A.shape, B.shape], lambda bb, a, b: far.write(bb, [a, b], "add_0"))
    (node,) = graph_of(module).in_order
    assert isinstance(node.layer, Add)
    assert sum_of(node.layer) == "a factor of 24 bits is below 2**-16"
