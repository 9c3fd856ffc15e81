"""What a report says each step moves and where that lies in L1, against what the devices did."""

from __future__ import annotations

import pytest

from htvm import zoo
from htvm.inputs import bind_inputs, seeded_inputs
from htvm.pipeline import build
from htvm.sim.maps import memory_maps
from htvm.sim.runner import run
from htvm.tools.facts.report import traffic_of


@pytest.mark.parametrize(
    ("network", "schedule"), [("ds_cnn", "published"), ("toyadmos", "overlapped")]
)
def test_bytes_and_places_are_those_of_the_devices(network: str, schedule: str) -> None:
    model = zoo.build(network, scheme="mixed")  # both cores
    module = build(model, "diana.mixed", schedule=schedule)  # type: ignore[arg-type]
    compiled, soc = module.compiled, module.compiled.target.soc
    raw = run(module._built, bind_inputs(model.inputs, seeded_inputs(model.inputs)))
    kernels = {k.symbol: k for code in compiled.regions.values() for k in code.kernels}
    found = traffic_of(compiled.program, kernels)
    (l1,) = (entry for entry in memory_maps(compiled) if entry.memory == "L1")
    base, seen = soc.memory("L1").base, set()
    for number, (step, (begin, end)) in enumerate(
        zip(compiled.program.steps, raw.spans, strict=True)
    ):
        if step.kind != "layer":
            continue
        events = [event for event in raw.events if begin <= event["start"] < end]
        moved = {"in": 0, "out": 0}
        for event in events:
            if event["unit"] == "dma":
                moved[event["what"]] += event["bytes"]
                at = event["to" if event["what"] == "in" else "from"] - base
                assert any(
                    block.offset <= at and at + event["bytes"] <= block.offset + block.bytes
                    for block in l1.blocks
                    if block.first <= number <= block.last
                ), step.layer
        cores = sum(event["bytes"] for event in events if event["unit"] in ("digital", "analog"))
        assert (found[number].read, found[number].written) == (moved["in"], moved["out"])
        assert found[number].constants == cores, step.layer
        seen.add(step.accelerator)
    assert seen == {"digital", "analog"}


def test_blocks_that_live_at_once_lie_apart() -> None:
    compiled = build(zoo.build("resnet8"), "diana").compiled
    for entry in memory_maps(compiled):
        assert entry.blocks and max(b.offset + b.bytes for b in entry.blocks) == entry.peak
        for number, one in enumerate(entry.blocks):
            for other in entry.blocks[:number]:
                together = one.first <= other.last and other.first <= one.last
                apart = one.offset + one.bytes <= other.offset
                apart |= other.offset + other.bytes <= one.offset
                assert apart or not together, (one, other)
