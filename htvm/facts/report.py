"""The report of a build: one row per step, memories, energy, and how to reproduce it."""

from __future__ import annotations

from dataclasses import astuple
from typing import TYPE_CHECKING

from htvm.facts.energy import accelerators_of, energy_of, step_energy
from htvm.facts.maps import memory_maps
from htvm.facts.network import machine_of, network_graph
from htvm.facts.recipe import recipe_of
from htvm.facts.traffic import StepTraffic, traffic_of
from htvm.facts.units import units_of
from htvm.report.types import L1Use, L2Use, LayerRow, Report, SqnrRow, Summary

if TYPE_CHECKING:
    from byoc_dory.plan import LayerPlan
    from byoc_dory.region import Kernel
    from byoc_dory.soc.base import Host, Soc
    from htvm.aot.program import Step
    from htvm.compiled import Compiled, Platform
    from htvm.firmware.sizes import Sizes
    from htvm.result import LayerResult, RunResult

__all__ = ["layer_rows", "memory_of", "report_of"]


def memory_of(compiled: Compiled, sizes: Sizes, result: RunResult | None) -> L2Use:
    """Return how the linked program uses L2 (bytes), and what a run used of the stack."""
    soc = compiled.target.soc
    return L2Use(
        code=sizes.code,
        constants=sizes.constants,
        arena=sizes.arena,
        stack=sizes.stack,
        limit=soc.memory("L2").size,
        arena_bound=compiled.program.plan.bound,
        io=sizes.io + sizes.other,
        apart=tuple(
            (name, compiled.program.bytes_in(name), soc.memory(name).size)
            for name in compiled.program.constant_memories
        ),
        flash_limit=None if soc.code_memory == "L2" else soc.memory(soc.code_memory).size,
        stack_used=None if result is None else result.stack_bytes,
        compiler=sizes.compiler,
    )


def layer_rows(compiled: Compiled, result: RunResult | None) -> tuple[LayerRow, ...]:
    """Return one row per step of the entry function, in execution order."""
    kernels = {
        kernel.symbol: kernel for code in compiled.regions.values() for kernel in code.kernels
    }
    used = {symbol: n for code in compiled.regions.values() for symbol, n in code.l1_used.items()}
    steps = compiled.program.steps
    ran = [None] * len(steps) if result is None else list(result.layers)
    moved = traffic_of(compiled.program, kernels)
    return tuple(
        _layer_row(compiled, step, kernels.get(step.symbol), used.get(step.symbol), traffic, each)
        for step, traffic, each in zip(steps, moved, ran, strict=True)
    )


def _layer_row(
    compiled: Compiled,
    step: Step,
    kernel: Kernel | None,
    l1_bytes: int | None,
    traffic: StepTraffic,
    measured: LayerResult | None,
) -> LayerRow:
    names, known = step.layers, compiled.dispatch.layers
    layers = [known[name] for name in names if name in known]
    plan = None if kernel is None else kernel.plan
    tiles = None if kernel is None else _tiles(kernel)
    cycles = None if measured is None else measured.cycles
    used = accelerators_of(compiled.program.steps)
    energy = step_energy(compiled.target.soc, step.accelerator, step.kind, cycles, used)
    return LayerRow(
        name=" + ".join(names),
        op=_operator(compiled, step),
        accelerator=step.accelerator,
        shape="; ".join(layer.sizes_text for layer in layers)
        if step.kind in ("layer", "cpu")
        else "",
        macs=step.macs,
        cycles=cycles,
        predicted_cycles=step.predicted_cycles or None,
        tile="" if plan is None else ",".join(str(size) for size in astuple(plan.solution.tile)),
        tiles=tiles,
        double_buffered=kernel is not None and _double_buffered(kernel),
        resident="" if plan is None else _resident(plan),
        l1_bytes=l1_bytes,
        source=compiled.source.sources.get(names[-1], ""),
        causes=None if measured is None else measured.causes,
        kind=step.kind,
        start=None if measured is None else measured.start,
        l2_read=traffic.read,
        l2_written=traffic.written,
        l2_weights=traffic.weights,
        energy_uj=None if energy is None else energy[1],
        instructions=None if measured is None else measured.instructions,
    )


def _tiles(kernel: Kernel) -> int | None:
    """Return the number of tiles of a layer."""
    return None if kernel.program is None else kernel.program.tiles


def _double_buffered(kernel: Kernel) -> bool:
    """Whether tiles are moved while others are computed."""
    return kernel.program is not None and kernel.program.pipelined


def _resident(plan: LayerPlan) -> str:
    """Return which tensors a layer finds in L1, or leaves there."""
    operands = plan.resident_inputs
    if len(operands) == 1:
        names = ["input"] if operands[0] else []
    else:
        names = ["inputs"] if all(operands) else ["one input"] if any(operands) else []
    return " and ".join([*names, *(["output"] if plan.resident_output else [])])


def _operator(compiled: Compiled, step: Step) -> str:
    if step.kind not in ("layer", "cpu"):
        return step.kind
    padding = next((k for k in compiled.cpu_kernels if k.symbol == step.symbol), None)
    if padding is not None and padding.operators == ("pad",):
        return "pad"
    kinds = compiled.dispatch.kinds
    # A name without an operator belongs to a kernel that TVM created.
    return " + ".join(dict.fromkeys(kinds.get(name, "other") for name in step.layers))


def _host_notes(host: Host) -> tuple[str, ...]:
    """Return what to know of a host with SIMD: its instructions are not encoded as the chip's."""
    if not host.corev:
        return ()
    return (
        f"Host: {host.name}. CORE-V is the encoding of the simulated core; chips with older cores "
        "of the family (RI5CY, XpulpV2) have the same operations in another.",
    )


def _estimate_notes(soc: Soc, result: RunResult | None) -> tuple[str, ...]:
    """Return how many cycles the manual of a core gives for the instructions of a run."""
    core = soc.host.arm
    if core is None or result is None or result.instructions is None:
        return ()
    if core.cycles is None:
        return (f"No estimate of cycles: none are published for each instruction of {core.cpu}.",)
    if result.estimated_cycles is None:  # of a machine that counts, but does not tell which
        return ()
    low, high = result.estimated_cycles
    times = [1000.0 * number / soc.clock_hz for number in (low, high)]
    return (
        f"Estimate, not measured: {low:,} to {high:,} cycles, {times[0]:.2f} to {times[1]:.2f} ms "
        f"at {soc.clock_hz / 1e6:g} MHz ({core.cycles.source}; memory without wait states).",
    )


def _number_notes(impossible: str) -> tuple[str, ...]:
    """Return why a network keeps its source's numbers, if no accelerator's are possible."""
    if not impossible:
        return ()
    return (
        f"The network keeps its numbers, because it cannot be retargeted: {impossible}. Layers "
        "that need an accelerator's numbers run on the host.",
    )


def report_of(
    compiled: Compiled, platform: Platform, sizes: Sizes, result: RunResult | None
) -> Report:
    """Return the report of a build, with the cycles of ``result`` if it has any."""
    cycles = None if result is None else result.cycles
    cost = compiled.retargeted.report
    rows = layer_rows(compiled, result)
    return Report(
        summary=Summary(
            network=compiled.source.name,
            target=compiled.target.name,
            platform=platform,
            notes=(
                *_host_notes(compiled.target.soc.host),
                *_estimate_notes(compiled.target.soc, result),
                *_number_notes(cost.impossible),
                *filter(None, [compiled.state.text]),
            ),
            clock_hz=compiled.target.soc.clock_hz,
            memory=memory_of(compiled, sizes, result),
            cycles=cycles,
            instructions=None if result is None else result.instructions,
            estimated_cycles=None if result is None else result.estimated_cycles,
            units=() if result is None else units_of(compiled.target.soc, result),
            causes=None if result is None else result.causes,
            policy=compiled.planned.policy if compiled.target.accelerators else "",
            schedule=compiled.options.tiling.schedule if compiled.target.accelerators else "",
        ),
        layers=rows,
        sqnr=tuple(
            SqnrRow(row.name, row.sqnr_db, compiled.source.sources.get(row.name, ""))
            for row in cost.layers
        ),
        output_sqnr_db=cost.output_sqnr_db,
        output_largest=cost.output_largest,
        l1=_l1_of(compiled),
        measured_on=cost.reason if cost.changed else "",
        same_decision=cost.agreement,
        machine=machine_of(compiled.target),
        timeline=() if result is None else result.timeline,
        maps=memory_maps(compiled),
        graph=network_graph(compiled),
        energy=energy_of(compiled.target.soc, rows),
        recipe=recipe_of(compiled, platform),
    )


def _l1_of(compiled: Compiled) -> tuple[L1Use, ...]:
    return tuple(
        L1Use(
            region=code.name,
            layers=len(plan.layers),
            limit=plan.l1_limit,
            peak=plan.l1_peak,
            live=plan.l1_live,
            resident=plan.resident,
            cycles=plan.cycles,
            apart=plan.apart,
            gap=plan.gap,
        )
        for code in compiled.regions.values()
        for plan in [code.plan]
        if plan is not None
    )
