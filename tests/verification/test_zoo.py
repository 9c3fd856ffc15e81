"""Wrong bytes anywhere in the zoo's networks are found at the right layer and tile."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from byoc_dory.options import TilingOptions
from byoc_dory.soc.diana.description import DIANA, DIGITAL
from byoc_dory.soc.diana.faults import fault_settings
from byoc_dory.soc.diana.schedule import Schedule
from htvm import zoo
from htvm.compiled import BuildOptions, Compiled
from htvm.inputs import seeded_inputs
from htvm.pipeline import compile_model
from htvm.verification.verify import verify

NETWORKS = ("ds_cnn", "mobilenet_v1", "resnet8", "toyadmos", "digits")


def triggers(work: Compiled) -> Iterator[tuple[str, int, Schedule]]:
    """Layer and tile of every trigger of the digital core, in order."""
    for step in work.program.steps:
        for code in work.regions.values():
            for kernel in code.kernels:
                if kernel.symbol == step.symbol and kernel.schedule is not None:
                    yield from _of_layer(kernel.schedule)


def _of_layer(schedule: Schedule) -> Iterator[tuple[str, int, Schedule]]:
    for number, (k, _, _) in enumerate(schedule.order()):
        each = {"depthwise": k.size, "dense": -(-k.size // 16)}.get(schedule.op, 1)
        for _ in range(each):
            yield schedule.layer_name, number, schedule


@pytest.mark.slow
@pytest.mark.parametrize("network", NETWORKS)
def test_wrong_bytes_of_a_network(network: str) -> None:
    if network == "digits":
        pytest.importorskip("onnxruntime")
        pytest.importorskip("sklearn")
    model = zoo.build(network)
    tiling = TilingOptions(l1_budget=24_000)
    work = compile_model(model, "diana.digital", BuildOptions(tiling=tiling))
    inputs = seeded_inputs(model.inputs)
    assert verify(work, inputs).equal
    known = list(triggers(work))
    draw = random.Random(network)
    for number in draw.sample(range(len(known)), 3):
        layer, tile, schedule = known[number]
        # Byte 3 is the first element, which no tile lacks.
        found = verify(work, inputs, settings=fault_settings(DIANA, DIGITAL, number + 1, 3, 0x21))
        difference = found.difference
        assert difference is not None, (layer, tile)
        assert difference.layer == layer
        assert difference.tile is not None and difference.tile.number == tile
        assert difference.tile.tiles == schedule.tiles
        assert difference.different == 1
        assert difference.origins[-1].what.startswith("computed by the digital core (trigger ")
        assert f"trigger {number + 1}," in difference.origins[-1].what
        assert difference.where is not None and difference.where.file.endswith("_layers.c")
