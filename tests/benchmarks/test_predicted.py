"""The errors of predictions: what is counted, and that they are small."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest

import htvm
from benchmarks import predicted
from htvm.inputs import seeded_inputs

ROOT = Path(__file__).parents[2]


def rows(network: str, target: str) -> list[predicted.Row]:
    model = htvm.zoo.build(network)
    module = htvm.build(model, target)
    result = module.run(seeded_inputs(model.inputs))
    return list(predicted.errors_of(module.compiled, result, target))


@pytest.mark.parametrize("target", ["diana", pytest.param("diana.analog", marks=pytest.mark.slow)])
def test_layers_on_accelerators_are_predicted(target: str) -> None:
    found = rows("resnet8", target)
    layers = [row for row in found if row.kind == "layer"]
    assert statistics.median(abs(row.error) for row in layers) < 0.01
    planned = [row for row in found if row.kind != "cpu"]
    assert statistics.median(abs(row.error) for row in planned) < 0.05
    assert max(abs(row.error) for row in layers) < 0.08


@pytest.mark.parametrize("target", predicted.SNITCH_TARGETS)
def test_layers_on_the_cluster_are_predicted(target: str) -> None:
    """One of each kind: products on ITA or the cores, attention, a head's sums, norms, adds."""
    sizes = {"sequence": 64, "embedding": 64, "heads": 2, "feed_forward": 128, "stacked": 1}
    model = htvm.zoo.encoder(1, **sizes) if target == "snitch_ita" else htvm.zoo.build("digits")
    module = htvm.build(model, target)
    result = module.run(seeded_inputs(model.inputs))
    found = [
        row for row in predicted.errors_of(module.compiled, result, target) if row.kind != "cpu"
    ]
    assert len(found) >= 8
    assert statistics.median(abs(row.error) for row in found) < 0.05
    assert max(abs(row.error) for row in found) < 0.15


def test_kernels_that_share_a_layer_count_as_one() -> None:
    found = rows("ds_cnn", "diana.cpu")
    assert {row.kind for row in found} == {"cpu"}
    names = [row.layer for row in found]
    # Four of its layers have a kernel for their padding, which has no row of its own.
    assert len(names) == len(set(names)) == 12
    assert all(abs(row.error) < 0.4 for row in found)


def test_what_is_printed_is_what_was_measured() -> None:
    data = json.loads((ROOT / "docs" / "results" / "predicted.json").read_text(encoding="utf-8"))
    planned = [
        abs(entry["predicted"] / entry["simulated"] - 1) for entry in data if entry["kind"] != "cpu"
    ]
    shown = (ROOT / "docs" / "results" / "predicted.txt").read_text(encoding="utf-8")
    assert f"{100 * statistics.median(planned):.2f}" in shown
    assert statistics.median(planned) < 0.05
