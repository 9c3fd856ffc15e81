"""The Snitch cluster's benchmark: its figures follow from runs, the paper's from each other."""

from __future__ import annotations

import pytest

from benchmarks.snitch_published import GEMM, OPERATIONS, TABLE_I
from benchmarks.snitch_table_i import CLUSTER, ITA, _figures, _worse, measure
from byoc_dory.soc.snitch_ita.description import soc
from htvm import zoo


def test_published_figures_agree_with_each_other() -> None:
    for column in TABLE_I.values():
        assert column.milliwatts / column.per_second == pytest.approx(column.millijoules, rel=0.02)
        assert column.gops / column.per_second == pytest.approx(OPERATIONS, rel=0.02)
        efficiency = 1000 * column.gops / column.milliwatts
        assert column.gop_per_joule == pytest.approx(efficiency, rel=0.01)
    for target, column in TABLE_I.items():
        power = soc().power(*(("cluster",) if target == CLUSTER else ("ita", "cluster")))
        assert power is not None and power.milliwatts == column.milliwatts


def test_figures_follow_from_the_runs() -> None:
    model = zoo.gemm(128, 128, 128)
    cores, ita = measure("product, twice", model, CLUSTER, 2), measure("product", model, ITA)
    assert cores.exact and ita.exact
    assert (cores.macs, ita.macs) == (2 * 128**3, 128**3)
    lines = {line.title: line for line in _figures(cores, ita, soc())}
    for measured, gops in zip((cores, ita), lines["GOp/s"].ours, strict=True):
        assert gops == pytest.approx(2 * measured.macs / (measured.cycles / 425e6) / 1e9)
    energy = lines["mJ an inference (published power)"]
    assert energy.ours[1] == pytest.approx(52.0 * ita.cycles / 425e6)
    assert energy.gains[0] == pytest.approx(energy.ours[0] / energy.ours[1])
    said = [
        line for line in _worse(cores, ita, [(ita, GEMM)], soc()).splitlines() if line[:1] == "*"
    ]
    shares = [float(line.split()[1]) for line in said]
    assert shares == sorted(shares) and shares[-1] < 1
