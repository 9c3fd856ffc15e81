"""Networks on the Ethos-U, executed on the model of the device."""

from __future__ import annotations

import importlib.metadata
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import htvm
from byoc_dory.memory.arena import written_over
from byoc_dory.options import TilingOptions
from byoc_dory.soc.ethos_u import check, emit, vela
from byoc_dory.soc.ethos_u.emit import FOREIGN
from byoc_dory.soc.ethos_u.lower import Network, networks
from byoc_dory.verdict import CPU
from htvm.errors import LimitError, SimulationError, TargetError, TilingError
from htvm.firmware.build import build_qemu
from htvm.inputs import seeded_inputs
from htvm.module import Module
from htvm.sim.runner import run
from tests.frontend.flatfile import INT32, Graph, Op, Tensor, small_network
from tests.frontend.single import inputs_of
from tests.frontend.test_tflite_wide import network as wide_network
from tests.frontend.tflm import reference
from tests.models import MODELS, golden

pytest.importorskip("ethosu.regor", reason="ethos-u-vela is not installed")

CONFIGURATIONS = (
    "ethos_u55:macs=32",
    "ethos_u55:macs=64",
    "ethos_u55:macs=128",
    "ethos_u55:macs=256",
    "ethos_u65:macs=256",
)

NEEDS_QEMU = pytest.mark.skipif(
    shutil.which("qemu-system-arm") is None, reason="QEMU is not installed"
)


def built(graph: Graph, folder: Path, target: str = "ethos_u55:macs=128", **more: Any) -> Module:
    path = folder / "network.tflite"
    path.write_bytes(graph.file())
    return htvm.build(path, target=target, platform="host", **more)


def assert_equal_to_reference(module: Module) -> None:
    for seed in range(3):
        inputs = seeded_inputs(module.model.inputs, seed)
        for found, wanted in zip(module.run(inputs).outputs, module.reference(inputs), strict=True):
            np.testing.assert_array_equal(found, wanted)


def on_cpu(module: Module) -> list[str]:
    places = module.compiled.dispatch.placement
    return [name for name, place in places.items() if place == CPU]


def reason(module: Module, operator: str) -> str:
    return next(said.reason for said in module.compiled.dispatch.verdicts if said.layer == operator)


def test_what_it_reads_and_writes_lies_in_its_memory(tmp_path: Path) -> None:
    """An input in the arena shares bytes with the memory that it is moved into."""
    module = built(small_network(), tmp_path, input="overwritten")
    program = module.compiled.program
    ((_, given),) = program.overwritten
    places = written_over(program.plan, program.buffers)
    assert given in places.values()
    scratches = [name for name in places.values() if name.endswith("_scratch")]
    assert scratches and not set(scratches) - {buffer.name for buffer in program.buffers}
    assert_equal_to_reference(module)


@pytest.mark.parametrize("target", ["ethos_u55:macs=32", "ethos_u65:macs=256"])
def test_a_network_runs_as_one_region(target: str, tmp_path: Path) -> None:
    module = built(small_network(), tmp_path, target)
    assert on_cpu(module) == []
    assert len(module.compiled.regions) == 1
    assert_equal_to_reference(module)


def test_the_region_is_planned_and_estimated(tmp_path: Path) -> None:
    compiled = built(small_network(), tmp_path).compiled
    (code,) = compiled.regions.values()
    # The scales of its sum are 2 to 3, which is rounded differently beside other layers.
    assert [kernel.layer_name for kernel in code.kernels] == [
        "depthwise_0", "add_0", "dense_0", "softmax_0",
    ]  # fmt: skip
    assert code.plan is not None
    assert code.plan.cycles == sum(kernel.predicted_cycles for kernel in code.kernels) > 0
    scratch = {buffer.name: buffer.bytes for buffer in code.buffers}
    assert set(scratch) >= {kernel.outputs[-1] for kernel in code.kernels}
    # No two of them are needed at once.
    assert compiled.program.plan.peak < sum(scratch.values())
    assert "ethosu_invoke_v3" in compiled.program.layers_source


def padded_behind_multiplier() -> Graph:
    """What Vela 5.2.0 miscompiles: a padding behind a depthwise convolution with multiplier 2."""
    rng = np.random.default_rng(0)
    channels, multiplier = 16, 2
    k = channels * multiplier
    zeros = (0,) * k
    weight = rng.integers(-127, 128, (1, 3, 3, k)).astype(np.int8)
    bias = rng.integers(-500, 500, k).astype(np.int32)
    pads = np.array([[0, 0], [1, 2], [0, 1], [0, 0]], np.int32)
    tensors = [
        Tensor("x", (1, 10, 10, channels)),
        Tensor("w", weight.shape, data=weight, scales=(0.01,) * k, zero_points=zeros, axis=3),
        Tensor("b", (k,), INT32, bias, (0.0005,) * k, zeros),
        Tensor("products", (1, 8, 8, k), scales=(0.3,)),
        Tensor("pads", (4, 2), INT32, pads, ()),
        Tensor("padded", (1, 11, 9, k), scales=(0.3,)),
        Tensor("y", (1, 5, 4, k), scales=(0.3,)),
    ]
    one, two = ("i", 1), ("i", 2)
    window = {0: ("b", 1), 1: one, 2: one, 3: ("i", multiplier)}
    return Graph(
        tensors,
        [
            Op("DEPTHWISE_CONV_2D", (0, 1, 2), (3,), (2, window)),
            Op("PAD", (3, 4), (5,)),
            Op("MAX_POOL_2D", (5,), (6,), (5, {0: ("b", 1), 1: two, 2: two, 3: two, 4: two})),
        ],
    )


def test_a_layer_that_vela_compiles_wrongly_runs_on_the_cpu(tmp_path: Path) -> None:
    module = built(padded_behind_multiplier(), tmp_path)
    assert on_cpu(module) == ["pad_0"]
    assert "Vela's program gives" in reason(module, "pad_0")
    assert_equal_to_reference(module)


_ENDING = """
import os, runpy, signal, sys
data = sys.stdin.buffer.read()
if b"TFL3" in data:
    os.kill(os.getpid(), signal.SIGSEGV)
end, start = os.pipe()
os.write(start, data)
os.close(start)
os.dup2(end, 0)
sys.stdin = os.fdopen(0, "r")
runpy.run_path({core!r}, run_name="__main__")
"""


def test_a_layer_on_which_vela_ends_itself_runs_on_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here on all networks in TFLite's format, which are those of one sum and of softmax."""
    core = tmp_path / "core.py"
    core.write_text(_ENDING.format(core=vela.regor.__file__))
    monkeypatch.setattr(vela, "regor", SimpleNamespace(__file__=str(core)))
    vela.clear()
    module = built(small_network(seed=2), tmp_path)
    assert on_cpu(module) == ["add_0", "softmax_0"]
    assert reason(module, "softmax_0") == "Vela ends itself by SIGSEGV"
    assert_equal_to_reference(module)
    vela.clear()


@pytest.mark.parametrize(
    ("does", "limit", "said"),
    [
        ("import time; time.sleep(60)", "seconds", "ended after 0.2 s"),
        ("import os; os.kill(os.getpid(), 9)", "memory_bytes", "lacked memory"),
        ("raise MemoryError", "memory_bytes", "lacked memory"),
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGXCPU)",
            "cpu_seconds",
            "processor time",
        ),
    ],
)
def test_what_vela_takes_is_limited(
    does: str, limit: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error, not a layer on the CPU: another machine would place it otherwise."""
    core = tmp_path / "core.py"
    core.write_text(does)
    monkeypatch.setattr(vela, "regor", SimpleNamespace(__file__=str(core)))
    if limit == "seconds":
        monkeypatch.setattr(vela, "TIME_LIMIT_S", 0.2)
    vela.clear()
    with pytest.raises(LimitError, match=said) as caught:
        built(small_network(seed=3), tmp_path)
    assert caught.value.limit == limit
    vela.clear()


def test_memory_between_layers_is_as_small_as_costs_one_cycle_in_a_hundred() -> None:
    compiled = htvm.build("zoo:mobilenet_v1", target="ethos_u55:macs=128", platform="host").compiled
    (core,) = compiled.target.accelerators
    settings = core.settings(compiled.target.soc, TilingOptions())  # type: ignore[attr-defined]
    (region,) = compiled.partition.regions.values()
    results = [tensor.name for tensor in region.outputs]
    network = max(networks(region.layers, results), key=lambda each: len(each.layers))
    usual, found = vela.compiled(network, settings), vela.compiled_thriftily(network, settings)
    assert found.cycles <= 1.01 * usual.cycles
    assert found.scratch < 0.9 * usual.scratch
    assert compiled.program.plan.peak < usual.scratch


def parts_and_whole(axis: int, begin: tuple[int, ...], sizes: tuple[int, ...]) -> Graph:
    """A map and its maxima, joined along an axis, and the maxima of a part of that."""
    joined = [1, 6, 7, 8]
    joined[axis] *= 2
    one, same = ("i", 1), {0: ("b", 0), 1: ("i", 1), 2: ("i", 1)}
    start, count = (np.array([0, *each], np.int32) for each in (begin, sizes))
    count[0] = 1
    return Graph(
        [
            Tensor("x", (1, 6, 7, 8)),
            Tensor("most", (1, 6, 7, 8)),
            Tensor("joined", tuple(joined)),
            Tensor("begin", (4,), INT32, start, ()),
            Tensor("sizes", (4,), INT32, count, ()),
            Tensor("part", (1, *sizes)),
            Tensor("y", (1, *sizes)),
        ],
        [
            Op("MAX_POOL_2D", (0,), (1,), (5, {**same, 3: ("i", 3), 4: ("i", 3)})),
            Op("CONCATENATION", (0, 1), (2,), (10, {0: ("i", axis)})),
            Op("SLICE", (2, 3, 4), (5,)),
            Op("MAX_POOL_2D", (5,), (6,), (5, {**same, 3: one, 4: ("i", 2)})),
        ],
    )


@pytest.mark.parametrize("target", ["ethos_u55:macs=64", "ethos_u65:macs=256"])
@pytest.mark.parametrize(
    ("axis", "begin", "sizes"),
    [(1, (3, 0, 0), (8, 7, 8)), (2, (1, 5, 2), (5, 7, 5)), (3, (0, 0, 5), (6, 7, 9))],
)
def test_parts_are_joined_and_cut(
    axis: int, begin: tuple[int, ...], sizes: tuple[int, ...], target: str, tmp_path: Path
) -> None:
    module = built(parts_and_whole(axis, begin, sizes), tmp_path, target)
    assert on_cpu(module) == []
    assert_equal_to_reference(module)


def test_a_part_that_the_cpu_reads_is_cut_there(tmp_path: Path) -> None:
    graph = parts_and_whole(3, (0, 0, 5), (6, 7, 9))
    module = built(Graph(graph.tensors[:6], graph.operators[:3]), tmp_path)
    assert on_cpu(module) == ["concat_0", "slice_0"]
    assert reason(module, "slice_0") == "not all that read it run there"
    assert_equal_to_reference(module)


def test_digits_is_equal_and_the_rest_says_why(tmp_path: Path) -> None:
    module = htvm.build("zoo:digits", target="ethos_u55", platform="host")
    alone = htvm.build("zoo:digits", target="ethos_u.cpu", platform="host")
    assert on_cpu(module) == ["quantize_0", "dequantize_0"]
    assert reason(module, "quantize_0") == "no pattern for quantize"
    for seed in range(3):
        inputs = seeded_inputs(module.model.inputs, seed)
        np.testing.assert_array_equal(module.run(inputs).outputs[0], alone.run(inputs).outputs[0])


def test_a_residual_network_runs_as_one_region() -> None:
    """Its sums have two operands, of which no planner but Vela is asked.

    The first block has three maps of 32x32x16, of which two and a half are in memory at most.
    """
    module = htvm.build(golden("pretrainedResnet_quant").path, CONFIGURATIONS[2], platform="host")
    assert on_cpu(module) == [] and len(module.compiled.regions) == 1
    assert module.compiled.program.plan.peak < 2.5 * 32 * 32 * 16


def strided(kernel: int, stride: int, depthwise: bool, sizes: tuple[int, int]) -> Graph:
    """A convolution without padding, whose stride leaves columns over."""
    rng = np.random.default_rng(kernel + stride)
    shape = (1, kernel, kernel, 16) if depthwise else (16, kernel, kernel, 16)
    weight = rng.integers(-127, 128, shape).astype(np.int8)
    made = [(size - kernel) // stride + 1 for size in sizes]
    tensors = [
        Tensor("x", (1, *sizes, 16), zero_points=(3,)),
        Tensor("w", shape, data=weight, scales=(0.01,), zero_points=(0,)),
        Tensor("y", (1, *made, 16), scales=(0.3,)),
    ]
    step = ("i", stride)
    options = {0: ("b", 1), 1: step, 2: step} | ({3: ("i", 1)} if depthwise else {})
    name = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
    return Graph(tensors, [Op(name, (0, 1), (2,), (2 if depthwise else 1, options))])


@pytest.mark.parametrize(
    "case", [(1, 2, False, (8, 8)), (1, 3, False, (7, 12)), (3, 2, True, (7, 10))]
)
def test_columns_that_a_stride_leaves_over_may_be_products_with_zeros(
    case: tuple[int, int, bool, tuple[int, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the form of a network without crops, here given to Vela alone."""

    def whole(*arguments: Any) -> tuple[Network, ...]:
        (network,) = networks(*arguments)
        assert network.uncropped not in (b"", network.content)
        return (replace(network, content=network.uncropped),)

    for user in (check, emit):
        monkeypatch.setattr(user, "networks", whole)
    module = built(strided(*case), tmp_path)
    assert on_cpu(module) == []
    assert_equal_to_reference(module)


@pytest.mark.parametrize("target", ["ethos_u55:macs=128", "ethos_u65", "cortex_m55"])
@pytest.mark.parametrize(
    "platform", ["host", pytest.param("qemu", marks=[pytest.mark.slow, NEEDS_QEMU])]
)
def test_a_network_of_int16(target: str, platform: Any, tmp_path: Path) -> None:
    """Biases of 35 bits, products without bias; equal to TFLite Micro, with the NPU and without."""
    graph = wide_network()
    inputs = inputs_of(graph, np.random.default_rng(1))
    path = tmp_path / "network.tflite"
    path.write_bytes(graph.file())
    module = htvm.build(path, target=target, platform=platform)
    (found,), (wanted,) = module.run(inputs).outputs, reference(graph, inputs)
    np.testing.assert_array_equal(found, wanted)
    if target != "cortex_m55":
        # A reshape is an alias, on either.
        assert on_cpu(module) == ["reshape_2"] and len(module.compiled.regions) == 1


def test_what_int16_is_refused_for(tmp_path: Path) -> None:
    """Biases that fill its sums."""
    graph = wide_network()
    bias = graph.tensors[2].data
    assert bias is not None
    module = built(graph.with_tensor(2, data=bias << 5), tmp_path)
    assert reason(module, "conv2d_0") == "sums exceed 40 bits"


@pytest.mark.parametrize("target", ["ethos_u55:macs=64,fast=4KiB", "ethos_u65:fast=384KiB"])
def test_memory_of_its_own(target: str, tmp_path: Path) -> None:
    """Weights and RAM in DRAM, and SRAM that only the NPU uses: region 2, one for all programs."""
    module = built(small_network(), tmp_path, target)
    assert on_cpu(module) == []
    assert_equal_to_reference(module)
    source = module.compiled.program.layers_source
    assert source.count("HTVM_ETHOS_U_FAST;") == 1 and "bases, sizes, 3, NULL)" in source
    shared = built(small_network(), tmp_path, target.partition(":")[0]).compiled.program
    assert "HTVM_ETHOS_U_FAST" not in shared.layers_source


def test_designs_are_swept(tmp_path: Path) -> None:
    """Cycles are Vela's, outputs the model's."""
    path = tmp_path / "network.tflite"
    path.write_bytes(small_network().file())
    grid = {"macs": (32, 256), "clock": (100, 500), "sram": ("16KiB",)}
    rows = htvm.sweep(path, "ethos_u55", grid, jobs=1).rows
    assert [row.status for row in rows] == ["ok"] * 4 and all(row.exact for row in rows)
    found = {row.target: row for row in rows}
    # 256 and 500 MHz are its defaults.
    few, many = (found[f"ethos_u55:{macs}sram=16KiB"] for macs in ("macs=32,", ""))
    assert few.cycles is not None and many.cycles is not None and few.cycles > many.cycles
    assert few.ms == pytest.approx(few.cycles / 500e3)


def test_an_explanation_keeps_cycles_and_instructions_apart() -> None:
    """The NPU's cycles are Vela's, the core's own are instructions: there is no sum of both."""
    module = htvm.build("zoo:digits", target="ethos_u55", platform="host")
    explanation = module.explain()
    told, totals = str(explanation), explanation.totals
    assert [*totals] == ["cycles", "instructions"] and all(totals.values())
    assert f"{totals['cycles']:,} cycles and {totals['instructions']:,} instructions" in told
    own = [row.cycles or 0 for row in explanation.rows if row.placed != CPU]
    assert sum(own) == totals["cycles"]


def test_a_report_says_what_binds_each_layer() -> None:
    """Vela's cycles, each with a cause, and what the memories move."""
    module = htvm.build("zoo:toyadmos", target="ethos_u55", platform="host")
    report, compiled = module.report(), module.compiled
    (code,) = compiled.regions.values()
    assert code.plan is not None
    assert [each.layer for each in report.estimates] == [
        name for name, place in module.placement.items() if place != CPU
    ]
    assert sum(each.cycles for each in report.estimates) == code.plan.cycles
    for each in report.estimates:
        assert sum(part for _, part in each.causes) == each.cycles
        assert each.bound == "flash"  # which a product with a vector reads each weight from
    moved = {each.memory: each for each in report.accesses}
    assert {*moved} == {"SRAM", "flash"} and moved["flash"].written == 0
    for memory, access in moved.items():
        assert sum(dict(each.memory_cycles)[memory] for each in report.estimates) == access.cycles
    constants = sum(c.data.nbytes for k in code.kernels for c in k.constants)
    assert 0.9 * constants < moved["flash"].read < 2 * constants
    assert "bound by" in str(report) and "% flash" in report.screen()
    quick = htvm.build("zoo:toyadmos", target="ethos_u55:clock=50", platform="host").report()
    assert {each.bound for each in quick.estimates} == {"MACs"}


@pytest.mark.slow
@pytest.mark.parametrize("target", CONFIGURATIONS)
@pytest.mark.parametrize("name", MODELS)
def test_goldens(name: str, target: str) -> None:
    found = golden(name)
    module = htvm.build(found.path, target=target, platform="host")
    assert on_cpu(module) == []
    for given, wanted in zip(found.inputs, found.outputs, strict=True):
        np.testing.assert_array_equal(module.run(given).outputs[0].ravel(), wanted.ravel())


@pytest.mark.slow
@pytest.mark.parametrize("target", CONFIGURATIONS)
def test_digits_on_each_configuration(target: str) -> None:
    module = htvm.build("zoo:digits", target=target, platform="host")
    alone = htvm.build("zoo:digits", target="ethos_u.cpu", platform="host")
    for seed in range(20):
        inputs = seeded_inputs(module.model.inputs, seed)
        np.testing.assert_array_equal(module.run(inputs).outputs[0], alone.run(inputs).outputs[0])


@pytest.mark.slow
@NEEDS_QEMU
def test_a_comparison_counts_both_sides_and_no_model(tmp_path: Path) -> None:
    """Beside the core alone: its instructions, the NPU's cycles, and RAM without the model's."""
    module = built(small_network(), tmp_path)
    found = htvm.compare(module.compiled.source, "ethos_u55:macs=128")
    alone, row = found.rows[-2:]
    assert row.exact and row.cycles is None
    assert row.accelerator_cycles == sum(
        step.predicted_cycles for step in module.built.program.steps
    )
    assert alone.instructions is not None and alone.accelerator_cycles is None
    assert row.instructions is not None and row.instructions < alone.instructions
    assert found.baseline == alone.configuration
    assert row.memory is not None
    # Inputs, outputs and a few variables; the model alone has 256 KiB of workspace.
    assert row.memory.io < 4096
    assert f"{row.accelerator_cycles:,}" in str(found)


@pytest.mark.slow
@NEEDS_QEMU
@pytest.mark.parametrize("name", MODELS)
def test_goldens_as_firmware(name: str) -> None:
    """On QEMU's Cortex-M55, with the model of the device behind the driver's functions."""
    found = golden(name)
    module = htvm.build(found.path, target="ethos_u55:macs=128", platform="qemu")
    for given, wanted in zip(found.inputs[:2], found.outputs[:2], strict=True):
        result = module.run(given)
        np.testing.assert_array_equal(result.outputs[0].ravel(), wanted.ravel())
        # The entry function's own: what the model of the device takes is not the core's.
        assert result.instructions is not None and result.instructions < 1000


@pytest.mark.slow
@NEEDS_QEMU
def test_firmware_with_data_of_another_export_begins_no_step(tmp_path: Path) -> None:
    """A later program's data, which is all there."""
    module = built(small_network(), tmp_path)
    program = module.compiled.program
    name = f"{program.steps[-1].symbol}_weights"
    constants = tuple(
        replace(each, data=np.roll(each.data, 1)) if each.name == name else each
        for each in program.constants
    )
    soc = module.compiled.target.soc
    firmware = build_qemu(replace(program, constants=constants), soc)
    with pytest.raises(SimulationError, match=f"_run returned {FOREIGN}") as caught:
        run(firmware, seeded_inputs(module.model.inputs, 0))
    assert caught.value.where == f"{program.name} on {soc.name}"


# ------------------------------------------------------------------------ bad input


def test_without_vela(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(vela, "version", missing)
    vela.clear()
    with pytest.raises(TargetError, match=r"not installed.*htvm\[ethos-u\]"):
        built(small_network(seed=1), tmp_path)


def test_with_another_vela(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vela, "version", lambda name: "5.3.0")
    vela.clear()
    with pytest.raises(TargetError, match=r"Vela 5\.3\.0 .*ethos-u-vela==5\.2\.0"):
        built(small_network(seed=1), tmp_path)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("ethos_u55:macs=512", "32, 64, 128, 256"),
        ("ethos_u65:macs=64", "there is no ethos_u65 with macs=64"),
    ],
)
def test_numbers_of_macs_that_do_not_exist(target: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=message):
        built(small_network(), tmp_path, target)


def test_too_little_memory_between_layers(tmp_path: Path) -> None:
    options = TilingOptions(l1_budget=256)
    with pytest.raises(TilingError, match="needs .* B between its layers") as caught:
        built(small_network(), tmp_path, tiling=options)
    error = caught.value
    assert error.limit == 256 and error.smallest is not None and error.smallest > 256


def test_a_network_of_which_nothing_maps(tmp_path: Path) -> None:
    """Its operators run on the CPU, each with its reason."""
    graph = Graph(
        [Tensor("x", (1, 4, 4, 2)), Tensor("y", (1, 4, 4, 2), scales=(0.1,), zero_points=(0,))],
        [Op("QUANTIZE", (0,), (1,))],
    )
    module = built(graph, tmp_path)
    assert not module.compiled.regions
    assert all(said.reason for said in module.compiled.dispatch.verdicts)
    assert_equal_to_reference(module)


def test_other_numbers_of_the_description_reach_vela() -> None:
    soc = htvm.soc("ethos_u55", macs=64).soc
    (core,) = soc.accelerators
    assert core.settings(soc, TilingOptions()).macs == 64  # type: ignore[attr-defined]
    assert replace(core, macs=32) != core
