"""Networks on RISC-V cores with vectors, in the emulator, against goldens and references."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import htvm
from benchmarks.load_time import convolutions
from byoc_dory.errors import TargetError
from byoc_dory.soc.board import boards
from htvm.inputs import seeded_inputs
from htvm.tools.cli.arguments import open_model
from tests.models import MODELS, golden
from tests.tools import tool

LENGTHS = ("rv32imcv", "rv32imcv:vlen=256", "rv64gcv", "rv64gcv:vlen=256")

MOST_PER_MAC = {"rv32imcv": 0.25, "rv32imcv:vlen=256": 0.18, "rv64gcv": 0.25} | {
    "rv64gcv:vlen=256": 0.18
}
"""Instructions for a multiply-accumulate over the four networks; scalar RV32 takes about 4."""


@pytest.fixture(autouse=True)
def emulator() -> None:
    for name in ("qemu-riscv32", "qemu-riscv64"):
        tool(name)


@pytest.mark.parametrize("target", ["rv64gcv", "rv32imcv:vlen=256"])
def test_reals_at_the_borders(target: str, tmp_path: Path) -> None:
    """Loops over reals that a compiler makes vectors of, too, where it may."""
    path = tmp_path / "net.onnx"
    path.write_bytes(convolutions(1))
    module = htvm.build(path, target)
    inputs = seeded_inputs(module.compiled.source.inputs)
    (output,), (reference,) = module.run(inputs).outputs, module.reference(inputs)
    np.testing.assert_array_equal(output, reference)


@cache
def built(name: str, target: str) -> htvm.Module:
    model = open_model("zoo:digits") if name == "digits" else htvm.load(golden(name).path)
    return htvm.build(model, target)


@pytest.mark.parametrize(
    "target",
    [
        each if each == "rv32imcv" else pytest.param(each, marks=pytest.mark.slow)
        for each in (*LENGTHS, "rv64gcv:vlen=1024", "canmv-k230", "bpi-f3")
    ],
)
def test_digits_equal_the_reference(target: str) -> None:
    module = built("digits", target)
    inputs = seeded_inputs(module.compiled.source.inputs)
    result = module.run(inputs)
    for output, reference in zip(result.outputs, module.reference(inputs), strict=True):
        np.testing.assert_array_equal(output, reference)
    # Counts are instructions, and nothing calls them cycles.
    assert result.cycles is None and result.instructions is not None
    counts = [layer.instructions for layer in result.layers if layer.instructions is not None]
    assert 0.98 < sum(counts) / result.instructions < 1
    # Vectors on the stack would take more than all of it where they are long.
    assert 0 < (result.stack_bytes or 0) < module.compiled.target.soc.host.stack
    text = str(module.report())
    assert f"{result.instructions:,} instructions" in text


def test_one_program_is_for_all_lengths() -> None:
    one, other = (built("digits", target).compiled for target in ("rv32imcv", "rv32imcv:vlen=512"))
    assert one.program.cpu_source == other.program.cpu_source


@pytest.mark.slow
@pytest.mark.parametrize("target", LENGTHS)
@pytest.mark.parametrize("name", MODELS)
def test_mlperf_tiny_equals_tflite_micro(name: str, target: str) -> None:
    case, module = golden(name), built(name, target)
    for number in (0, len(case.inputs) - 1):
        (output,) = module.run(case.inputs[number]).outputs
        np.testing.assert_array_equal(output, case.outputs[number], err_msg=f"golden {number}")


@pytest.mark.slow
@pytest.mark.parametrize("target", LENGTHS)
def test_instructions_for_a_product(target: str) -> None:
    instructions = macs = 0
    for name in MODELS:
        module = built(name, target)
        result = module.run(golden(name).inputs[0])
        instructions += result.instructions or 0
        macs += sum(step.macs for step in module.compiled.program.steps)
    assert instructions / macs < MOST_PER_MAC[target]


@pytest.mark.slow
def test_the_same_kernels_run_natively() -> None:
    module = htvm.build(open_model("zoo:digits"), "rv64gcv", "host")
    inputs = seeded_inputs(module.compiled.source.inputs)
    for output, reference in zip(module.run(inputs).outputs, module.reference(inputs), strict=True):
        np.testing.assert_array_equal(output, reference)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("rv32imcv:vlen=64", "vlen .* cannot be '64'.*give one of 0, 128, 256, 512, 1024"),
        ("rv64gcv:vlen=2048", "cannot be '2048'"),
        ("cortex_m4:vlen=256", "no cortex_m4 with vlen=256.*there is rv32imcv, rv64gcv"),
        ("canmv-k230:vlen=256", "no vectors of 256 bits on the board canmv-k230: .* have 128"),
        ("pico:vlen=128", "no vectors of 128 bits on the board pico: its core has none"),
    ],
)
def test_lengths_that_a_core_lacks(target: str, said: str) -> None:
    with pytest.raises(TargetError, match=said):
        htvm.build("zoo:digits", target)


def test_boards_say_how_long_their_vectors_are() -> None:
    for board in boards().values():
        assert (board.vector_bits > 0) == (board.core in ("rv32imcv", "rv64gcv")), board.name
    assert boards()["canmv-k230"].vector_bits == 128 and boards()["bpi-f3"].vector_bits == 256


@pytest.mark.parametrize("platform", ["arm", "rv32"])
def test_other_platforms_name_the_one_for_vectors(platform: str) -> None:
    with pytest.raises(TargetError, match="use platform='qemu'"):
        htvm.build("zoo:digits", "rv64gcv", platform)
