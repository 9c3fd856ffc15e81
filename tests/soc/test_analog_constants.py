"""Driver on the simulated host plus analog core is the published cost (see
`test_trigger_constants`)."""

from __future__ import annotations

from pathlib import Path
from statistics import mean

import pytest

from byoc_dory.soc.diana.cores import AnalogCore
from byoc_dory.soc.diana.description import DIANA
from htvm.firmware import rv32
from htvm.firmware.host import driver_sources
from htvm.firmware.paths import runtime_c
from htvm.firmware.socs import machine_of
from htvm.firmware.toolchain import Compiler
from htvm.sim.rv32 import run_rv32

TOLERANCE = 0.02
PASSES = 8
ONE, SEVERAL = 1, 2

CORE = DIANA.accelerator("analog")
assert isinstance(CORE, AnalogCore)


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[tuple[int, int]]]:
    """Of every call (cycles beside loading weights and computing, cycles of the host)."""
    compiler = Compiler.zig()
    firmware = rv32.build_firmware(
        [Path(__file__).with_name("analog_cycles.c"), *driver_sources(DIANA)],
        [runtime_c() / "soc" / "diana"],
        machine_of(DIANA),
        tmp_path_factory.mktemp("analog_cycles"),
        compiler,
    )
    result = run_rv32(firmware, {}, {}, compiler=compiler)
    at = {event: cycle for cycle, event in result.marks}
    marks = at[1] - at[0]
    found: dict[int, list[tuple[int, int]]] = {ONE: [], SEVERAL: []}
    for event in sorted(at.keys() - {0, 1}):
        if event % 2 == 0:
            begin, end = at[event], at[event + 1]
            passes = [
                e for e in result.events if e["unit"] == "analog" and begin <= e["start"] <= end
            ]
            which = event >> 9
            assert len(passes) == (PASSES if which == SEVERAL else 1)
            cycles = end - begin - marks
            work = sum(e["array"] + e["weights"] for e in passes)
            busy = sum(e["end"] - e["start"] for e in passes)
            found[which].append((cycles - work, cycles - busy))
    return found


def test_one_pass_costs_the_published_constant(calls: dict[int, list[tuple[int, int]]]) -> None:
    driver = mean(host for _, host in calls[ONE])
    assert driver == pytest.approx(CORE.driver_cycles, abs=1)
    for overhead, _ in calls[ONE]:
        assert overhead == pytest.approx(CORE.trigger_cycles, rel=TOLERANCE)


def test_further_passes_save_what_is_described(calls: dict[int, list[tuple[int, int]]]) -> None:
    overhead = mean(overhead for overhead, _ in calls[SEVERAL])
    saved = (PASSES * CORE.trigger_cycles - overhead) / (PASSES - 1)
    assert saved == pytest.approx(CORE.ahead_cycles, abs=1.5)
    for overhead, _ in calls[SEVERAL]:
        want = PASSES * CORE.trigger_cycles - (PASSES - 1) * CORE.ahead_cycles
        assert overhead == pytest.approx(want, rel=TOLERANCE)
