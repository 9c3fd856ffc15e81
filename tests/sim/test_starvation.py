"""What runs of the cluster spend their cycles on: kernels, hidden transfers, and waiting."""

from __future__ import annotations

from typing import Any

import htvm
from byoc_dory.options import TilingOptions
from htvm import RunResult, zoo
from htvm.inputs import seeded_inputs
from htvm.model import Model


def ran(model: Model, target: str, **options: Any) -> tuple[htvm.Module, RunResult]:
    module = htvm.build(model, target, **options)
    return module, module.run(seeded_inputs(model.inputs))


def overlap(result: RunResult, one: str, other: str) -> int:
    """Cycles in which both units are busy, from the trace."""
    spans = [
        [(each.start, each.end) for each in result.timeline if each.unit == unit]
        for unit in (one, other)
    ]
    return sum(
        max(0, min(end, until) - max(start, since))
        for start, end in spans[0]
        for since, until in spans[1]
    )


def adds_up(result: RunResult) -> None:
    parts = [(layer.causes, layer.cycles) for layer in result.layers]
    for causes, cycles in [*parts, (result.causes, result.cycles)]:
        assert causes is not None
        assert causes.cycles == causes.host + causes.waiting + causes.computing == cycles
        assert causes.cores + causes.dma_alone + causes.host_alone == cycles
        assert 0 <= causes.starved <= causes.waiting


def test_an_encoder_computes_while_transfers_go_on() -> None:
    model = zoo.encoder(1, 64, 64, heads=2, feed_forward=256, stacked=1)
    module, result = ran(model, "snitch_ita", schedule="overlapped")
    adds_up(result)
    causes, units = result.causes, dict(result.units)
    assert causes is not None
    # Kernels are the cluster's, the host's share included; ITA works while the DMA loads.
    assert causes.computing == units["cluster"] > 2 * causes.host_alone
    assert causes.cores == units["cluster"] + units["ita"]
    assert 0 < overlap(result, "ita", "dma") == causes.dma_hidden
    assert overlap(result, "ita", "cluster") == 0
    for layer in result.layers:
        assert layer.causes is not None and layer.cycles is not None
        assert (layer.causes.computing > 0.8 * layer.cycles) == (layer.accelerator == "cluster")
    said = str(module.report())
    assert f"DMA: in {causes.dma_hidden:,} of its {causes.dma:,} cycles" in said
    assert {"cluster", "ita", "dma", "core0", "core8"} <= set(said.split())


def test_without_double_buffers_ita_starves() -> None:
    model = zoo.gemm(256, 256, 256)
    _, fed = ran(model, "snitch_ita", schedule="overlapped")
    _, starved = ran(model, "snitch_ita", schedule="published")
    for result in (fed, starved):
        adds_up(result)
    assert fed.causes is not None and starved.causes is not None
    assert fed.causes.dma_hidden > 0.25 * fed.causes.dma
    assert starved.causes.dma_hidden == 0
    assert starved.causes.starved > 1.25 * fed.causes.starved
    assert starved.causes.starved > 0.9 * starved.causes.dma


def test_siracusas_engine_starves_without_double_buffers() -> None:
    """Waiting for transfers is told from waiting for the engine."""
    model = zoo.build("ds_cnn")
    options = {"tiling": TilingOptions(l1_budget=16 * 1024, schedule="overlapped")}
    _, fed = ran(model, "siracusa", **options)
    _, starved = ran(model, "siracusa", schedule="published")
    for result in (fed, starved):
        adds_up(result)
    assert fed.causes is not None and starved.causes is not None
    assert starved.causes.dma_hidden == 0 < fed.causes.dma_hidden
    assert starved.causes.starved / starved.cycles > 2 * fed.causes.starved / fed.cycles
    assert starved.causes.starved < starved.causes.waiting
