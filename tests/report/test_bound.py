"""The bound beside a run: the busiest unit, the longest chain of steps, and who waits for whom."""

from __future__ import annotations

from dataclasses import replace

import htvm
from htvm.activity import Interval
from htvm.tools.facts.report import reads_of
from htvm.tools.report.bound import bound_of, bound_text
from htvm.tools.report.data import L2Use, LayerRow, Summary, Unit
from htvm.tools.report.types import Report


def report(*cycles: int, reads: tuple[tuple[int, ...], ...]) -> Report:
    units = (
        Unit("host", 30, "drivers", 20),
        Unit("dma", 15, "transfers", 5),
        Unit("engine", 60, "", 60),
        Unit("cores", 25, "", 15),
        Unit("core1", 24, "its share of kernels"),
    )
    memory = L2Use(1, 1, 1, 1, 10, 1)
    summary = Summary("net", "soc", "rv32", 1, memory, cycles=100, units=units)
    rows = tuple(
        LayerRow(f"step_{n}", "add", "engine", "", 0, each) for n, each in enumerate(cycles)
    )
    # The cores work beside the engine, too, and the DMA beside both.
    timeline = (
        Interval("engine", 5, 65),
        Interval("cores", 50, 65),
        Interval("cores", 70, 80),
        Interval("cores", 80, 85),
        Interval("dma", 20, 30),
        Interval("dma", 75, 90),
    )
    return Report(summary, rows, reads=reads, timeline=timeline)


def test_the_longest_chain_and_the_busiest_unit_bound_a_run() -> None:
    # Steps 1 and 2 read step 0, step 3 reads both.
    found = bound_of(report(10, 50, 20, 15, reads=((), (0,), (0,), (1, 2))))
    assert found is not None
    assert (found.busiest, found.busy) == ("engine", 60)
    assert (found.chain, found.chain_cycles) == ((0, 1, 3), 75)
    assert (found.least, found.gap) == (75, 25)
    assert found.waiting == {"host": 20, "dma": 5, "cores": 15}
    apart = bound_of(report(10, 20, 20, 15, reads=((),) * 4))
    assert apart is not None and apart.least == 60 and apart.chain == (1,)


def test_the_text_names_what_the_busiest_unit_waits_for() -> None:
    text = bound_text(report(10, 50, 20, 15, reads=((), (0,), (0,), (1, 2))))
    assert text.splitlines() == [
        "these steps, all units at once: at least 75 cycles, 75.0 % of the run",
        "  the busiest unit, engine, works 60; the longest chain of steps, 3 of 4, takes 75",
        "  engine waits: between layers 20, for cores 15, for dma 5",
    ]


def test_a_busy_host_waits_while_it_polls() -> None:
    known = report(10, 50, 20, 15, reads=((), (0,), (0,), (1, 2)))
    units = (Unit("host", 80, "kernels", 30), *known.summary.units[1:])
    polls = (*known.timeline, Interval("waiting", 60, 68), Interval("waiting", 86, 95))
    busy = replace(known, summary=replace(known.summary, units=units), timeline=polls)
    found = bound_of(busy)
    assert found is not None and found.busiest == "host"
    assert found.waiting == {"engine": 5, "dma": 4, "host": 8}


def test_without_cycles_there_is_no_bound() -> None:
    known = report(10, 5, reads=((), (0,)))
    assert bound_text(replace(known, reads=())) == ""
    assert bound_text(replace(known, summary=replace(known.summary, cycles=None))) == ""


def test_steps_read_what_earlier_ones_compute_in_l1_too() -> None:
    module = htvm.build("zoo:resnet8", target="diana.digital", platform="host")
    steps = module.compiled.program.steps
    reads = dict(zip((step.layer for step in steps), reads_of(module.compiled), strict=True))
    number = {step.layer: index for index, step in enumerate(steps)}
    assert reads["conv2d_5"] == (number["add_0"],)  # beside conv2d_3, which reads it, too
    assert set(reads["add_1"]) == {number["conv2d_4"], number["conv2d_5"]}
    assert reads["input"] == ()
