"""The C of networks on machines of another byte order and word size, in QEMU's user mode."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import htvm
from benchmarks.boards import handwritten
from benchmarks.qemu_user import MACHINES, computed
from htvm.inputs import seeded_inputs
from htvm.tools.cli.arguments import open_model
from tests.models import MODELS, golden

pytestmark = pytest.mark.slow
NETWORKS = (*MODELS, "digits", "Relax")


@cache
def network(name: str) -> tuple[htvm.Model, list[Any], list[Any] | None]:
    """A network, inputs, and TFLite Micro's outputs if it is one of its files."""
    if name in MODELS:
        case = golden(name)
        return htvm.load(case.path), [case.inputs[-1]], [case.outputs[-1]]
    model = open_model("zoo:digits") if name == "digits" else htvm.load(handwritten())
    return model, list(seeded_inputs(model.inputs)), None


def check(name: str, target: str, machine: str) -> None:
    emulated = MACHINES[machine]
    if emulated.program is None:
        pytest.skip(f"qemu-{machine} is not installed (Debian: qemu-user)")
    model, inputs, outputs = network(name)
    module = htvm.build(model, target, "host")
    if outputs is None:
        outputs = module.reference(inputs)
    found = computed(module.compiled, emulated, inputs)
    for output, expected in zip(found, outputs, strict=True):
        np.testing.assert_array_equal(output.reshape(-1), expected.reshape(-1))
        assert len(np.unique(output)) > 1


@pytest.mark.parametrize("machine", ["s390x", "aarch64", "riscv64"])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_for_cores_with_simd(name: str, machine: str) -> None:
    check(name, "cortex_m4", machine)


@pytest.mark.parametrize("target", ["cortex_m0plus", "cortex_m55", "rv32imac", "generic.cpu"])
@pytest.mark.parametrize("name", ["pretrainedResnet_quant", "digits", "Relax"])
def test_the_kernels_of_other_cores_on_a_big_endian_machine(name: str, target: str) -> None:
    check(name, target, "s390x")


def test_a_big_endian_machine_of_32_bits() -> None:
    check("digits", "cortex_m4", "ppc")
