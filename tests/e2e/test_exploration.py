"""What `explore` says that a layer takes is what it takes, on every accelerator.

Under the decoupled schedule nothing stays in L1 between layers, so each is executed as explored:
alone.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

import htvm
from benchmarks.step_costs import SHARE, STEP, SUM
from byoc_dory.options import TilingOptions
from htvm.inputs import seeded_inputs

ALONE = TilingOptions(schedule="decoupled", objective="latency")
TARGETS = (
    "diana.digital", "diana.analog", "diana.mixed", "dla", "siracusa", "siracusa.cluster",
    "snitch_ita", "snitch_ita.cluster",
)  # fmt: skip
NETWORKS = ("resnet8", "ds_cnn", "ds_cnn_7x5", "mobilenet_v1", "toyadmos", "digits", "encoder:1")
EVERYDAY = {("ds_cnn_7x5", "diana.digital"), ("ds_cnn", "siracusa"), ("ds_cnn", "dla")}
LEFT_OUT = {
    # Layers of 1,600 cycles, 260 of which an explored layer takes to write registers that one in
    # the middle of a region finds written.
    ("toyadmos", "dla"),
}


# Weights that are loaded with each tile, because not all of them can be kept.
SMALL = ("resnet8", "siracusa:sram=40000,mram=20000")


def cases() -> list[object]:
    found = [
        (name, target)
        for name in NETWORKS
        for target in TARGETS
        if name != "encoder:1" or target.startswith(("siracusa", "snitch_ita"))
        if (name, target) not in LEFT_OUT
    ]
    return [
        pytest.param(*case, marks=[] if case in EVERYDAY else pytest.mark.slow)
        for case in (*found, SMALL)
    ]


@pytest.mark.rotating(1)
@pytest.mark.parametrize(("name", "target"), cases())
def test_layers_take_the_cycles_that_are_explored(name: str, target: str) -> None:
    model = htvm.load(f"zoo:{name}")
    rows = htvm.explore(model, target, objectives=("latency",), tiling=ALONE).rows
    module = htvm.build(model, target, tiling=ALONE)
    steps = module.compiled.program.steps
    ran = module.run(seeded_inputs(module.model.inputs, 7))
    taken: dict[str, int] = defaultdict(int)
    for step, layer in zip(steps, ran.layers, strict=True):
        if step.kind == "layer":
            # A layer that is executed as several gives them its name.
            taken[step.layer.partition(".")[0]] += layer.cycles or 0
    said = {row.layer: row.cycles or 0 for row in rows}
    assert said.keys() == taken.keys()
    assert sum(said.values()) == pytest.approx(sum(taken.values()), rel=SUM)
    for layer, cycles in taken.items():
        if cycles >= SHARE * (ran.cycles or 0):
            assert said[layer] == pytest.approx(cycles, rel=STEP), layer
