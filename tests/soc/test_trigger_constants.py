"""Driver on the simulated host plus device is the published cost.

The description's trigger, call and command constants were fitted to times that include the real
host's driver code.  The simulator runs a driver too, so the device is charged the constant less
``*driver_cycles``, which are the numbers measured here.  They are averages: a poll loop notices
the end of a command up to one round (5 cycles) late.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import pytest

from byoc_dory.soc.diana.cores import AnalogCore, DigitalCore
from byoc_dory.soc.diana.description import DIANA
from htvm.firmware import rv32
from htvm.firmware.host import driver_sources
from htvm.firmware.paths import runtime_c
from htvm.firmware.socs import machine_of
from htvm.firmware.toolchain import Compiler
from htvm.sim.rv32 import run_rv32

NAMES = {
    1: "row",
    2: "whole in",
    3: "whole out",
    4: "maps",
    5: "rows in",
    6: "rows out",
    7: "conv",
    8: "depthwise",
    9: "dense",
    10: "add",
    11: "analog",
    12: "depthwise ahead",
    13: "dense ahead",
}
TOLERANCE = 0.02
POLL = 5


@dataclass(frozen=True)
class Call:
    """One timed driver call: all its cycles, the devices' share, and the number of commands."""

    cycles: int
    busy: int
    work: int
    commands: int

    @property
    def driver(self) -> int:
        """Cycles in which only the host worked or had yet to notice."""
        return self.cycles - self.busy

    @property
    def overhead(self) -> int:
        """Cycles beside moving bytes, loading weights and computing."""
        return self.cycles - self.work


def core() -> DigitalCore:
    found = DIANA.accelerator("digital")
    assert isinstance(found, DigitalCore)
    return found


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Call]]:
    """All timed calls by name, in order of size."""
    compiler = Compiler.zig()
    source = Path(__file__).with_name("driver_cycles.c")
    firmware = rv32.build_firmware(
        [source, *driver_sources(DIANA)],
        [runtime_c() / "soc" / "diana"],
        machine_of(DIANA),
        tmp_path_factory.mktemp("driver_cycles"),
        compiler,
    )
    result = run_rv32(firmware, {}, {}, compiler=compiler)
    begins = {event >> 1: cycle for cycle, event in result.marks if event % 2 == 0}
    ends = {event >> 1: cycle for cycle, event in result.marks if event % 2 == 1}
    marks = ends[0] - begins[0]
    found = defaultdict(list)
    for key in sorted(begins.keys() - {0}):
        events = [
            e
            for e in result.events
            if e["unit"] != "host" and begins[key] <= e["start"] <= ends[key]
        ]
        call = Call(
            cycles=ends[key] - begins[key] - marks,
            busy=sum(e["end"] - e["start"] for e in events),
            work=sum(
                e["array"] + e["weights"] + (-(-e["bytes"] // 32) * 2 if e["unit"] == "dma" else 0)
                for e in events
            ),
            commands=len(events),
        )
        found[NAMES[key >> 8]].append(call)
    return dict(found)


def averages(calls: dict[str, list[Call]]) -> str:
    """What to write into the description after a change of the driver."""
    return "\n".join(
        f"{name}: driver {mean(call.driver for call in group):.1f} per call, "
        f"{mean(call.driver / call.commands for call in group):.1f} per command"
        for name, group in calls.items()
    )


@pytest.mark.parametrize("name", ["conv", "dense", "add"])
def test_trigger_costs_the_published_constant(calls: dict[str, list[Call]], name: str) -> None:
    constant = getattr(core(), f"{name}_trigger_cycles")
    measured = getattr(core(), f"{name}_driver_cycles")
    assert mean(call.driver for call in calls[name]) == pytest.approx(measured, abs=1), averages(
        calls
    )
    for call in calls[name]:
        assert call.commands == 1
        assert call.overhead == pytest.approx(constant, rel=TOLERANCE)


def test_analog_pass_costs_the_published_constant(calls: dict[str, list[Call]]) -> None:
    analog = DIANA.accelerator("analog")
    assert isinstance(analog, AnalogCore)
    for call in calls["analog"]:
        assert call.commands == 1
        assert call.overhead == pytest.approx(analog.trigger_cycles, rel=TOLERANCE)


def test_depthwise_costs_the_published_constant_per_channel(calls: dict[str, list[Call]]) -> None:
    """Entry and exit of the call are spread over its channels (32 here; DS-CNN has 64)."""
    for call in calls["depthwise"]:
        assert call.commands == 32
        total = 32 * core().depthwise_trigger_cycles
        assert call.overhead == pytest.approx(total, rel=TOLERANCE)
    measured = mean(call.driver / call.commands for call in calls["depthwise"])
    assert measured == pytest.approx(core().depthwise_driver_cycles, abs=1), averages(calls)


@pytest.mark.parametrize(("name", "triggers"), [("depthwise", 32), ("dense", 4)])
def test_registers_written_ahead_save_what_is_described(
    calls: dict[str, list[Call]], name: str, triggers: int
) -> None:
    constant = getattr(core(), f"{name}_trigger_cycles")
    saved = getattr(core(), f"{name}_ahead_cycles")
    for call in calls[f"{name} ahead"]:
        assert call.commands == triggers
        want = triggers * constant - (triggers - 1) * saved
        assert call.overhead == pytest.approx(want, rel=TOLERANCE), averages(calls)
    overhead = mean(call.overhead for call in calls[f"{name} ahead"])
    measured = (triggers * constant - overhead) / (triggers - 1)
    assert measured == pytest.approx(saved, abs=1.5)


@pytest.mark.parametrize("name", ["row", "whole in", "whole out"])
def test_contiguous_block_costs_one_call(calls: dict[str, list[Call]], name: str) -> None:
    dma = DIANA.dma
    assert dma is not None
    for call in calls[name]:
        assert call.commands == 1
        # Up to 6 cycles for what there is to compare, and half a round of the poll loop.
        assert call.overhead == pytest.approx(dma.call_cycles, abs=6 + POLL / 2)


def test_contiguous_blocks_cost_one_call_on_average(calls: dict[str, list[Call]]) -> None:
    dma = DIANA.dma
    assert dma is not None
    every = [call for name in ("row", "whole in", "whole out") for call in calls[name]]
    assert mean(call.overhead for call in every) == pytest.approx(dma.call_cycles, rel=TOLERANCE)


@pytest.mark.parametrize("name", ["maps", "rows in", "rows out"])
def test_scattered_block_costs_a_call_and_its_commands(
    calls: dict[str, list[Call]], name: str
) -> None:
    dma = DIANA.dma
    assert dma is not None
    overhead = sum(call.overhead for call in calls[name])
    commands = sum(call.commands for call in calls[name])
    want = dma.call_cycles * len(calls[name]) + dma.command_cycles * commands
    # The poll's phase is the same for all commands of one length, hence more than 2 %.
    assert overhead == pytest.approx(want, rel=0.05)


def test_scattered_blocks_cost_their_constants_on_average(calls: dict[str, list[Call]]) -> None:
    dma = DIANA.dma
    assert dma is not None
    every = [call for name in ("maps", "rows in", "rows out") for call in calls[name]]
    want = sum(dma.call_cycles + dma.command_cycles * call.commands for call in every)
    assert sum(call.overhead for call in every) == pytest.approx(want, rel=TOLERANCE)


def test_driver_is_tight(calls: dict[str, list[Call]]) -> None:
    """What the devices can be charged less must stay a small part of the constants."""
    assert max(call.driver for call in calls["conv"]) < 120
    assert max(call.driver for call in calls["whole in"]) < 45
