"""Programs whose regions the device assembles itself at start-up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

import htvm
from byoc_dory.errors import ModelError, TilingError
from byoc_dory.soc.dla.assemble import assemble
from byoc_dory.soc.dla.design import DlaCore
from byoc_dory.soc.dla.late import LateAssembler
from byoc_dory.soc.dla.memory import plan
from byoc_dory.soc.dla.region_file import lower
from byoc_dory.soc.registry import resolve
from htvm import zoo
from htvm.errors import TargetError
from htvm.firmware.build import build_host
from htvm.inputs import seeded_inputs
from htvm.sim.native import native_library
from htvm.sim.runner import run
from patterns.byoc.partition import partition
from tests.byoc_dory.region_reading import read_region

NETWORKS = ("resnet8", "ds_cnn", "mobilenet_v1", "toyadmos")


@pytest.fixture(scope="module")
def late() -> htvm.Module:
    return htvm.build(
        zoo.build("ds_cnn"), target="dla:sram=64KiB", assembly="late", platform="host"
    )


def test_outputs_are_those_of_the_reference(late: htvm.Module) -> None:
    for seed in (1, 2):
        inputs = seeded_inputs(late.compiled.source.inputs, seed)
        np.testing.assert_array_equal(late.run(inputs).outputs[0], late.reference(inputs)[0])


@pytest.mark.slow
def test_the_same_c_runs_on_another_device(late: htvm.Module) -> None:
    """Only the header of the SoC differs: less SRAM, other PEs; nothing stays in SRAM there."""
    inputs = seeded_inputs(late.compiled.source.inputs, 3)
    wanted = late.reference(inputs)
    for design in ("sram=12KiB,rows=tiled", "sram=24KiB,pes=15,parallel=input", "sram=4MiB"):
        soc = resolve(f"dla:{design}").soc
        # A smaller device may need a longer stream than the arena of the build holds.
        program = late.compiled.program
        source = program.layers_source.replace("_arena[", "_arena[4000 + ")
        built = build_host(replace(program, layers_source=source), soc)
        np.testing.assert_array_equal(run(built, inputs).outputs[0], wanted[0], err_msg=design)


def test_exports_have_json_and_weights_as_files(late: htvm.Module, tmp_path: Path) -> None:
    project = htvm.open(late.export(tmp_path / "out"), trust=True)
    assert project.check()
    again = htvm.open(project.export(tmp_path / "again"), trust=True)
    found = sorted((again.folder / "src").glob("*.json"))
    assert found
    for path in found:
        region = read_region(path.read_bytes(), path.with_suffix(".bin").read_bytes(), path.name)
        assert region.layers
        with pytest.raises(ModelError, match="another network"):
            read_region(path.read_bytes(), b"\1" * region.weights_bytes)


def test_targets_without_command_streams_say_so() -> None:
    for target in ("diana", "dla.cpu"):
        with pytest.raises(TargetError, match="no command streams to assemble late"):
            htvm.build(zoo.build("toyadmos"), target=target, assembly="late")
    with pytest.raises(TargetError, match="there is no assembly 'never'"):
        htvm.build(zoo.build("toyadmos"), target="dla", assembly="never")  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_on_the_simulated_soc(name: str) -> None:
    module = htvm.build(zoo.build(name), target="dla:sram=64KiB,rows=tiled", assembly="late")
    inputs = seeded_inputs(module.compiled.source.inputs, 1)
    np.testing.assert_array_equal(module.run(inputs).outputs[0], module.reference(inputs)[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_streams_of_networks_on_200_designs(name: str) -> None:
    """Python's assembler and the component's: the same words, or the same refusal."""
    target = resolve("dla")
    compiled = htvm.build(zoo.build(name), target=target, platform="host").compiled
    graph = compiled.retargeted.model.graph
    regions = partition(graph, compiled.dispatch, target, compiled.options.tiling).regions
    files = [lower(region) for region in regions.values()]
    assembler = LateAssembler(native_library(target.soc))
    rng = np.random.default_rng(7)
    refused = 0
    for _ in range(200):
        soc = resolve("dla", parameters={
            "pes": int(rng.integers(1, 300)),
            "parallel": str(rng.choice(["input", "output", "both"])),
            "sram": int(rng.integers(1 << 12, 1 << 18)),
            "depthwise": str(rng.choice(["emulated", "native"])),
            "fused": bool(rng.integers(2)),
            "rows": str(rng.choice(["published", "tiled"])),
            "dma_bytes": int(rng.integers(1, 65)),
        }).soc  # fmt: skip
        core = soc.accelerators[0]
        assert isinstance(core, DlaCore)
        design = core.design(soc.memory("L1").size, resident=bool(rng.integers(2)))
        for file, weights in files:
            text = msgspec.json.encode(file)
            try:
                wanted = assemble(file, design, plan(file, design))
            except TilingError:
                refused += 1
                with pytest.raises(TilingError):
                    assembler.assemble(text, design, weights)
                continue
            assert assembler.assemble(text, design, weights).stream == wanted
    assert refused < 200 * len(files)
