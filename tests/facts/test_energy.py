"""Energy of steps from published powers, where accelerators have their own and where they have one
together."""

from __future__ import annotations

import pytest

from byoc_dory.soc.base import Power
from byoc_dory.soc.diana.description import soc as diana
from byoc_dory.soc.snitch_ita.description import soc as snitch_ita
from htvm.tools.facts.run import energy_of
from htvm.tools.report.data import LayerRow


def row(accelerator: str, cycles: int, kind: str = "layer") -> LayerRow:
    return LayerRow("a", "gemm", accelerator, cycles=cycles, kind=kind)


def test_alternating_accelerators_share_the_average_of_both() -> None:
    soc = snitch_ita()
    rows = [row("ita", 425_000), row("cluster", 850_000), row("cpu", 425_000, "cpu")]
    energy = energy_of(soc, rows)
    assert energy is not None and energy.cycles == 1_700_000
    assert energy.microjoules == pytest.approx(4 * 52.0)  # mW x ms
    assert len(energy.powers) == 1 and energy.powers[0].startswith("ita and cluster: 52 mW")
    alone = energy_of(soc, [row("cluster", 850_000), row("cpu", 425_000, "cpu")])
    assert alone is not None and alone.cycles == 850_000
    assert alone.microjoules == pytest.approx(2 * 26.0)
    # Of ITA by itself nothing is published.
    assert energy_of(soc, [row("ita", 425_000)]) is None


def test_accelerators_with_powers_of_their_own_are_charged_these() -> None:
    soc = diana()
    energy = energy_of(soc, [row("digital", 260_000), row("analog", 520_000)])
    powers = [soc.power(name) for name in ("digital", "analog")]
    assert all(isinstance(power, Power) for power in powers)
    assert energy is not None and energy.cycles == 780_000
    assert energy.microjoules == pytest.approx(24.96 + 2 * 28.74)
