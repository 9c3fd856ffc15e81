"""Wrong bytes anywhere in the zoo's networks are found at the right layer and tile."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from byoc_dory.memory.arena import written_over
from byoc_dory.options import TilingOptions
from byoc_dory.soc.diana.description import DIANA, DIGITAL
from byoc_dory.soc.diana.faults import fault_settings
from byoc_dory.soc.diana.program import ConvTrigger, DenseTrigger
from byoc_dory.tileloop.program import TileProgram
from htvm import zoo
from htvm.build_options import BuildOptions
from htvm.compiled import Compiled
from htvm.inputs import seeded_inputs
from htvm.pipeline import compile_model
from htvm.tools.verification.verify import verify

NETWORKS = ("ds_cnn", "mobilenet_v1", "resnet8", "toyadmos", "digits")


def triggers(work: Compiled) -> Iterator[tuple[str, int, TileProgram]]:
    """Layer and tile of every trigger of the digital core, in order."""
    for step in work.program.steps:
        for code in work.regions.values():
            for kernel in code.kernels:
                if kernel.symbol == step.symbol and kernel.program is not None:
                    yield from _of_layer(kernel.program)


def _of_layer(program: TileProgram) -> Iterator[tuple[str, int, TileProgram]]:
    for tile in program.order():
        call, each = program.call(tile), 1
        if isinstance(call, ConvTrigger) and call.depthwise:
            each = -(-call.k // call.channels)
        elif isinstance(call, DenseTrigger):
            each = -(-call.k // 16)
        for _ in range(each):
            yield program.layer, tile.number, program


@pytest.mark.slow
@pytest.mark.parametrize("network", NETWORKS)
def test_wrong_bytes_of_a_network(network: str) -> None:
    model = zoo.build(network)
    tiling = TilingOptions(l1_budget=24_000)
    work = compile_model(model, "diana.digital", BuildOptions(tiling=tiling))
    inputs = seeded_inputs(model.inputs)
    assert verify(work, inputs).equal
    known = list(triggers(work))
    draw = random.Random(network)
    for number in draw.sample(range(len(known)), 3):
        layer, tile, program = known[number]
        # Byte 3 is the first element, which no tile lacks.
        found = verify(work, inputs, settings=fault_settings(DIANA, DIGITAL, number + 1, 3, 0x21))
        difference = found.difference
        assert difference is not None, (layer, tile)
        assert difference.layer == layer
        assert difference.tile is not None and difference.tile.number == tile
        assert difference.tile.tiles == program.tiles
        assert difference.different == 1
        assert difference.origins[-1].what.startswith("computed by the digital core (trigger ")
        assert f"trigger {number + 1}," in difference.origins[-1].what
        assert difference.where is not None and difference.where.file.endswith("_layers.c")


@pytest.mark.slow
@pytest.mark.parametrize("network", ["ds_cnn", "resnet8"])
def test_outputs_over_inputs_are_right_step_by_step(network: str) -> None:
    work = compile_model(zoo.build(network), "rv32imc", BuildOptions())
    assert written_over(work.program.plan, work.program.buffers)
    report = verify(work, seeded_inputs(work.source.inputs))
    assert report.equal and report.contained
