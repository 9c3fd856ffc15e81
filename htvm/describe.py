"""Turns a compiled model into the rows that reports are made of."""

from __future__ import annotations

from dataclasses import astuple
from typing import TYPE_CHECKING

from byoc_dory.cost import cpu_cycles
from htvm.report.shapes import describe
from htvm.report.types import (
    Explanation,
    LayerRow,
    Memory,
    Offer,
    Report,
    SqnrRow,
    Summary,
    Unit,
    VerdictRow,
)

if TYPE_CHECKING:
    from byoc_dory.region import Kernel
    from byoc_dory.soc.base import Soc
    from htvm.aot.program import Step
    from htvm.pipeline import Compiled, Platform
    from htvm.result import RunResult
    from htvm.sim.runner import Sizes

__all__ = ["explanation_of", "layer_rows", "memory_of", "report_of"]


def memory_of(compiled: Compiled, sizes: Sizes, result: RunResult | None) -> Memory:
    """Return how the linked program uses L2 (bytes); the stack measured if there was a run."""
    soc = compiled.target.soc
    stack = None if result is None else result.stack_bytes
    return Memory(
        code=sizes.code,
        constants=sizes.constants,
        arena=sizes.arena,
        stack=soc.host.stack if stack is None else stack,
        limit=soc.memory("L2").size,
        arena_bound=compiled.program.plan.bound,
        io=sizes.io + sizes.other,
    )


def layer_rows(compiled: Compiled, result: RunResult | None) -> tuple[LayerRow, ...]:
    """Return one row per step of the entry function, in execution order."""
    kernels = {
        kernel.symbol: kernel for code in compiled.regions.values() for kernel in code.kernels
    }
    steps = compiled.program.steps
    cycles = [None] * len(steps) if result is None else [row.cycles for row in result.layers]
    return tuple(
        _layer_row(compiled, step, kernels.get(step.symbol), spent)
        for step, spent in zip(steps, cycles, strict=True)
    )


def _layer_row(
    compiled: Compiled, step: Step, kernel: Kernel | None, cycles: int | None
) -> LayerRow:
    names, known = step.layers, compiled.dispatch.layers
    layers = [known[name] for name in names if name in known]
    solution = None if kernel is None else kernel.solution
    return LayerRow(
        name=" + ".join(names),
        op=_operator(compiled, step),
        accelerator=step.accelerator,
        shape="; ".join(describe(layer) for layer in layers)
        if step.kind in ("layer", "cpu")
        else "",
        macs=step.macs,
        cycles=cycles,
        predicted_cycles=step.predicted_cycles or None,
        tile="" if solution is None else ",".join(str(size) for size in astuple(solution.tile)),
        l1_bytes=None if solution is None else solution.l1_in + solution.l1_out,
        source=compiled.source.sources.get(names[-1], ""),
    )


def _operator(compiled: Compiled, step: Step) -> str:
    if step.kind not in ("layer", "cpu"):
        return step.kind
    padding = next((k for k in compiled.cpu_kernels if k.symbol == step.symbol), None)
    if padding is not None and padding.operators == ("pad",):
        return "pad"
    kinds = compiled.dispatch.kinds
    # A name that no operator has is that of a kernel TVM made for itself.
    return " + ".join(dict.fromkeys(kinds.get(name, "other") for name in step.layers))


def report_of(
    compiled: Compiled, platform: Platform, sizes: Sizes, result: RunResult | None
) -> Report:
    """Return the report of a build, with the cycles of ``result`` where it has any."""
    cycles = None if result is None else result.cycles
    cost = compiled.retargeted.report
    return Report(
        summary=Summary(
            network=compiled.source.name,
            target=compiled.target.name,
            platform=platform,
            clock_hz=compiled.target.soc.clock_hz,
            memory=memory_of(compiled, sizes, result),
            cycles=cycles,
            units=() if result is None else _units(compiled.target.soc, result),
        ),
        layers=layer_rows(compiled, result),
        sqnr=tuple(
            SqnrRow(row.name, row.sqnr_db, compiled.source.sources.get(row.name, ""))
            for row in cost.layers
        ),
        output_sqnr_db=cost.output_sqnr_db,
    )


def _units(soc: Soc, result: RunResult) -> tuple[Unit, ...]:
    if result.cycles is None:
        return ()
    doing = {accelerator.name: accelerator.title for accelerator in soc.accelerators}
    doing["dma"] = "transfers between L2 and L1"
    devices = tuple(Unit(name, busy, doing.get(name, "")) for name, busy in result.units)
    # Drivers wait for the device they started, so no two devices are ever busy at once.
    alone = result.cycles - sum(unit.cycles for unit in devices)
    return (Unit("host", alone, "CPU kernels, layouts, drivers"), *devices)


def explanation_of(compiled: Compiled) -> Explanation:
    """Return where each operator runs, what each accelerator said, and estimated cycles."""
    dispatch = compiled.dispatch
    predicted = {
        (kernel.layer_name, kernel.accelerator): kernel.predicted_cycles
        for code in compiled.regions.values()
        for kernel in code.kernels
        if kernel.kind == "layer"
    }
    offers: dict[str, list[Offer]] = {name: [] for name in dispatch.placement}
    for verdict in dispatch.verdicts:
        cycles = predicted.get((verdict.layer, verdict.accelerator))
        offers[verdict.layer].append(
            Offer(verdict.accelerator, verdict.accepted, verdict.reason, verdict.rule, cycles)
        )
    rows = []
    for name, place in dispatch.placement.items():
        layer = dispatch.layers.get(name)
        rows.append(
            VerdictRow(
                layer=name,
                op=dispatch.kinds[name],
                placed=place,
                offers=tuple(offers[name]),
                cpu_cycles=None if layer is None else cpu_cycles(layer, compiled.target.soc),
                shape="" if layer is None else describe(layer),
                source=compiled.source.sources.get(name, ""),
            )
        )
    return Explanation(tuple(rows))
