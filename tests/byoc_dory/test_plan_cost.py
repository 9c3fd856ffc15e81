"""The bound that lets a search skip plans, and that skipping changes no choice."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from byoc_dory.cost import Cost
from byoc_dory.errors import TilingError
from byoc_dory.layers import Layer
from byoc_dory.options import TilingOptions
from byoc_dory.residency.choices import LayerChoices
from byoc_dory.residency.tiler import LayerCost
from byoc_dory.soc.base import Soc
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.soc.snitch_ita.description import SNITCH_ITA
from byoc_dory.verdict import Accepted
from tests.byoc_dory.analog import random_analog_layer
from tests.byoc_dory.layers import OPS, random_layer
from tests.byoc_dory.snitch_cases import random_cluster_layer, random_gemm

OPTIONS = TilingOptions(20_000, schedule="overlapped")


def offered(soc: Soc, name: str, layer: Layer) -> LayerChoices | None:
    """Return the choices of a layer on an accelerator; None if it is refused or does not fit."""
    accelerator = soc.accelerator(name)
    if accelerator.judge(soc, layer) != Accepted():
        return None
    may_find = (True,) * len(layer.inputs)
    reads = tuple(tensor.name for tensor in layer.inputs)
    try:
        return LayerChoices(Cost(soc, OPTIONS).tiler(accelerator, layer), reads, may_find, True, 0)
    except TilingError:
        return None


def cases(count: int) -> Iterator[tuple[Soc, str, Layer]]:
    """Yield random layers for every accelerator."""
    rng = np.random.default_rng(7)
    for number in range(count):
        yield DIANA, "digital", random_layer(rng, OPS[number % len(OPS)])
        yield DIANA, "analog", random_analog_layer(rng, "l")
        yield SNITCH_ITA, "cluster", random_cluster_layer(rng, "l")
        sizes = rng.integers(1, 200, 3)
        yield SNITCH_ITA, "ita", random_gemm(rng, "l", (int(sizes[0]), *map(int, sizes[1:])))


@pytest.mark.parametrize("count", [5, pytest.param(120, marks=pytest.mark.slow)])
def test_no_number_of_buffers_is_faster_than_the_bound(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = 0
    call = LayerCost.__call__

    def checked(self: LayerCost, plan: object) -> int:
        nonlocal compared
        which = plan.solution.tile, plan.resident_inputs, plan.resident_output  # type: ignore[attr-defined]
        before = self.lower_bound(*which)
        cycles = call(self, plan)  # type: ignore[arg-type]
        assert before <= cycles
        assert before in (0, self.lower_bound(*which))
        assert 0 <= self.lower_bound(*which) <= cycles
        compared += before > 0
        return cycles

    monkeypatch.setattr(LayerCost, "__call__", checked)
    for case in cases(count):
        offer = offered(*case)
        assert offer is None or offer.choices
    assert compared > 30 * count


@pytest.mark.parametrize("count", [5, pytest.param(120, marks=pytest.mark.slow)])
def test_skipped_plans_are_not_missed(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that skips goes on a little longer where it gives up, so it may find more."""
    found = [offered(*case) for case in cases(count)]
    with monkeypatch.context() as patch:
        patch.setattr(LayerCost, "lower_bound", lambda self, *which: 0)
        every = [offered(*case) for case in cases(count)]
    assert sum(offer is not None for offer in found) > 2 * count
    for ours, complete in zip(found, every, strict=True):
        for other in complete.choices if complete else ():
            assert ours is not None
            assert any(
                (mine.resident_inputs, mine.resident_output)
                == (other.resident_inputs, other.resident_output)
                and mine.cycles <= other.cycles
                and mine.bytes <= other.bytes
                for mine in ours.choices
            )
