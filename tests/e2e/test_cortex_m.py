"""Networks on Cortex-M cores, in the emulator, against their goldens and references."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tvm import relax

import htvm
from benchmarks import qemu
from byoc_dory.errors import SimulationError, TargetError
from byoc_dory.layers import MulShift
from htvm.inputs import seeded_inputs
from htvm.tools.cli.arguments import open_model
from patterns.ops.convolution import Window, conv2d_of
from tests.models import MODELS, golden
from tests.tools import tool

MVE = "cortex_m55"
CORES = (
    "cortex_m0plus", "cortex_m3", "cortex_m4", "cortex_m7", "cortex_m33", MVE, "cortex_m85",
    "cortex_m52",
)  # fmt: skip
HELIUM = {
    "ad01_int8": 0.20,
    "kws_ref_model": 0.36,
    "pretrainedResnet_quant": 0.20,
    "vww_96_int8": 0.31,
}
"""Instructions of each network's products that no compiler exceeds."""


@pytest.fixture(autouse=True)
def emulator(request: pytest.FixtureRequest) -> None:
    parameters = getattr(request.node, "callspec", None)
    core = parameters.params.get("core") if parameters is not None else None
    if core in (MVE, "cortex_m85", "cortex_m52"):
        tool(qemu.PROGRAM)


@cache
def digits() -> htvm.Model:
    return open_model("zoo:digits")


@cache
def built(name: str, core: str) -> htvm.Module:
    model = digits() if name == "digits" else htvm.load(golden(name).path)
    return htvm.build(model, core)


@pytest.mark.parametrize(
    "core",
    [core if core == "cortex_m4" else pytest.param(core, marks=pytest.mark.slow) for core in CORES],
)
def test_digits_equal_the_reference(core: str) -> None:
    module = built("digits", core)
    inputs = seeded_inputs(module.compiled.source.inputs)
    result = module.run(inputs)
    for output, reference in zip(result.outputs, module.reference(inputs), strict=True):
        np.testing.assert_array_equal(output, reference)
    # The largest maps at a time; int32 sums of one would be 8,192 B alone.
    assert module.sizes.arena < 11_000
    # Counts are instructions, and nothing calls them cycles.
    assert result.cycles is None and result.latency_ms is None
    counts = [layer.instructions for layer in result.layers if layer.instructions is not None]
    assert result.instructions is not None
    assert 0.99 < sum(counts) / result.instructions < 1
    assert 0 < (result.stack_bytes or 0) < module.compiled.target.soc.host.stack
    report = module.report()
    assert report.summary.instructions == result.instructions
    assert report.summary.estimated_cycles == result.estimated_cycles
    assert result.maps == report.maps and result.maps[-1].memory == "L2 arena"
    text = str(report)
    assert f"{result.instructions:,} instructions" in text and "flash: " in text
    low, high = result.estimated_cycles or (0, 0)
    if core in ("cortex_m0plus", "cortex_m3", "cortex_m4"):
        assert result.instructions < low <= high < 3 * result.instructions
        spans = [layer.estimated_cycles or (0, 0) for layer in result.layers]
        assert 0.99 < sum(low for low, _ in spans) / low < 1
        assert 0.99 < sum(high for _, high in spans) / high < 1
        said = f"Estimate, not measured: {low:,} to {high:,} cycles"
    else:
        assert result.estimated_cycles is None
        assert all(layer.estimated_cycles is None for layer in result.layers)
        said = "No estimate of cycles"
    assert said in text
    assert text.replace("no cycles: an emulator ran it", "").count("cycles") == 1


@pytest.mark.slow
@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("name", MODELS)
def test_mlperf_tiny_equals_tflite_micro(name: str, core: str) -> None:
    case, module = golden(name), built(name, core)
    for number in (0, len(case.inputs) - 1):
        (output,) = module.run(case.inputs[number]).outputs
        np.testing.assert_array_equal(output, case.outputs[number], err_msg=f"golden {number}")


def test_flash_that_waits_is_estimated() -> None:
    """The same program on a board whose flash waits for each line that it does not keep."""
    module = htvm.build(digits(), "cortex_m4:board=nucleo-f446re")
    inputs = seeded_inputs(digits().inputs)
    found, without = module.run(inputs), htvm.build(digits(), "cortex_m4").run(inputs)
    assert found.instructions == without.instructions
    assert found.estimated_cycles is not None and without.estimated_cycles is not None
    waits = [a - b for a, b in zip(found.estimated_cycles, without.estimated_cycles, strict=True)]
    assert 0 < waits[0] < waits[1] and [wait % 5 for wait in waits] == [0, 0]
    # Each byte of constants is read at least once.
    assert waits[0] > 5 * module.sizes.constants / 16 / 2
    steps = [layer.estimated_cycles or (0, 0) for layer in found.layers]
    assert 0.97 < sum(low for low, _ in steps) / found.estimated_cycles[0] <= 1
    assert "flash with 5 wait states, 64 + 8 lines of 16 B" in str(module.report())


def test_the_same_kernels_run_natively() -> None:
    module = htvm.build(digits(), "cortex_m4", "host")
    inputs = seeded_inputs(module.compiled.source.inputs)
    result = module.run(inputs)
    assert result.instructions is None
    for output, reference in zip(result.outputs, module.reference(inputs), strict=True):
        np.testing.assert_array_equal(output, reference)


def test_platforms_belong_to_cores() -> None:
    with pytest.raises(TargetError, match="Cortex-M4.*platform='arm'"):
        htvm.build(digits(), "cortex_m4", "rv32")
    with pytest.raises(TargetError, match="is no Cortex-M core"):
        htvm.build(digits(), "generic.cpu", "arm")


@cache
def handwritten() -> htvm.Model:
    from benchmarks.boards import handwritten as write

    return htvm.load(write())


@pytest.mark.slow
@pytest.mark.parametrize("core", [*CORES, "rv32imc", "rv32imac", "hazard3"])
def test_a_relax_module_written_by_hand(core: str) -> None:
    module = htvm.build(handwritten(), core)
    inputs = seeded_inputs(module.compiled.source.inputs)
    (output,), (reference,) = module.run(inputs).outputs, module.reference(inputs)
    np.testing.assert_array_equal(output, reference)
    assert len(np.unique(output)) > 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "core",
    ["cortex_m3", "cortex_m4", "cortex_m7", "cortex_m33", MVE, "cortex_m85", "cortex_m52"],
)
@pytest.mark.parametrize("name", ["digits", "Relax"])
def test_qemu_computes_the_same(name: str, core: str, tmp_path: Path) -> None:
    """A second emulator, which shares no code with this project, and notices a wrong element."""
    tool(qemu.PROGRAM)
    module = htvm.build(digits() if name == "digits" else handwritten(), core)
    inputs = seeded_inputs(module.compiled.source.inputs)
    outputs = module.reference(inputs)
    assert qemu.different(module.compiled, inputs, outputs, tmp_path / "right") == 0
    wrong = [output.copy() for output in outputs]
    wrong[0].ravel()[3] += 1
    assert qemu.different(module.compiled, inputs, wrong, tmp_path / "wrong") == 1


@pytest.mark.slow
def test_a_core_without_an_emulator_is_named() -> None:
    module = htvm.build(digits(), MVE, "arm")
    with pytest.raises(SimulationError, match="does not know the core cortex-m55"):
        module.run(seeded_inputs(module.compiled.source.inputs))


@pytest.mark.slow
def test_resnet8_takes_half_an_instruction_for_each_mac_with_helium() -> None:
    tool(qemu.PROGRAM)
    module = htvm.build(htvm.zoo.build("resnet8"), MVE)
    result = module.run(seeded_inputs(module.compiled.source.inputs))
    macs = sum(step.macs for step in module.compiled.program.steps)
    assert (result.instructions or 0) / macs < 0.25


@pytest.mark.slow
@pytest.mark.parametrize("name", HELIUM)
def test_compilers_take_as_many_instructions_with_helium(name: str) -> None:
    tool(qemu.PROGRAM)
    case, counts = golden(name), []
    for cc in (None, tool("arm-none-eabi-gcc")):
        module = htvm.build(case.path, MVE, cc=cc)
        result = module.run(case.inputs[0])
        np.testing.assert_array_equal(result.outputs[0].ravel(), case.outputs[0].ravel())
        counts.append(result.instructions or 0)
    macs = sum(step.macs for step in module.compiled.program.steps)
    assert max(counts) / macs < HELIUM[name]
    assert max(counts) < 1.1 * min(counts)


def test_small_convolutions_in_nchw_compile_for_helium() -> None:
    """Copies of two bytes into columns: LLVM makes them moves of elements of 16 bits."""
    tool(qemu.PROGRAM)
    rng = np.random.default_rng(0)
    weight = rng.integers(-128, 128, (16, 1, 2, 2)).astype("int8")
    bias = rng.integers(-2000, 2000, 16).astype("int32")
    window = Window((3, 3), (0, 0, 1, 0), layout="NCHW")
    requant = MulShift(tuple(int(n) for n in rng.integers(40, 130, 16)), (14,), (-893,))
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 1, 6, 9), "int8"))
    with bb.function("main", [x]):
        with bb.dataflow():
            conv = conv2d_of(weight, bias, window, requant, (-100, 14))
            out = bb.emit_output(conv.write(bb, [x], "conv2d_0"))
        bb.emit_func_output(out)
    module = htvm.build(bb.get(), MVE)
    inputs = seeded_inputs(module.compiled.source.inputs)
    (output,), (reference,) = module.run(inputs).outputs, module.reference(inputs)
    np.testing.assert_array_equal(output, reference)
    assert len(np.unique(output)) > 20
