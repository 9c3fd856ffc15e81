"""What a run measured, for a report: cycles, units, energy; and decisions on labelled inputs.

Energies come from the average powers of a SoC's description.  A power applies while a set of
accelerators is working.  A step on an accelerator is charged its power from the call to the return;
a step without a power in the description has no energy.  If an accelerator of a run has no power of
its own, but all accelerators of the run together have one, that power is the average over a run in
which they alternate.  Every step is charged this power, which is right for the whole run but does
not tell steps apart.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from htvm.sim.causes import is_hart
from htvm.tools.report.data import LayerRow, Unit
from htvm.tools.report.parts import Decisions, Energy
from htvm.tools.report.types import Report

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from byoc_dory.soc.base import Power, Soc
    from byoc_dory.soc.cores import FlashReads
    from htvm.aot.reference import Reference
    from htvm.model import Model
    from htvm.result import LayerResult, RunResult


def with_run(report: Report, result: RunResult, soc: Soc) -> Report:
    """Return a report with the measurements of a run of the same build.

    Args:
        report: the report, without a run.
        result: the result of the run.
        soc: the SoC that it ran on.
    """
    used = accelerators_of(report.layers)
    rows = tuple(
        _row(row, measured, soc, used)
        for row, measured in zip(report.layers, result.layers, strict=True)
    )
    memory = report.summary.memory
    if result.stack_bytes is not None:
        memory = replace(memory, stack_used=result.stack_bytes)
    summary = replace(
        report.summary,
        memory=memory,
        notes=(*_estimate_notes(soc, result), *report.summary.notes),
        cycles=result.cycles,
        instructions=result.instructions,
        estimated_cycles=result.estimated_cycles,
        units=units_of(soc, result),
        causes=result.causes,
    )
    return replace(
        report,
        summary=summary,
        layers=rows,
        timeline=result.timeline,
        energy=energy_of(soc, rows),
    )


def _estimate_notes(soc: Soc, result: RunResult) -> tuple[str, ...]:
    """Return how many cycles the manual of a core gives for the instructions of a run."""
    core = soc.host.arm
    if core is None or result.instructions is None:
        return ()
    if core.cycles is None:
        return (f"No estimate of cycles: none are published for each instruction of {core.cpu}.",)
    if result.estimated_cycles is None:  # of a machine that counts, but does not tell which
        return ()
    low, high = result.estimated_cycles
    times = [1000.0 * number / soc.clock_hz for number in (low, high)]
    memory = _reads(soc.memory(soc.code_memory).reads)
    return (
        f"Estimate, not measured: {low:,} to {high:,} cycles, {times[0]:.2f} to {times[1]:.2f} ms "
        f"at {soc.clock_hz / 1e6:g} MHz ({core.cycles.source}; {memory}).",
    )


def _reads(flash: FlashReads | None) -> str:
    if flash is None:
        return "memory without wait states"
    return (
        f"flash with {flash.waits} wait states, {flash.code_lines} + {flash.data_lines} lines of "
        f"{flash.line_bytes} B; code is read ahead of the core at best, never at worst"
    )


def _row(row: LayerRow, measured: LayerResult, soc: Soc, used: tuple[str, ...]) -> LayerRow:
    energy = step_energy(soc, row.accelerator, row.kind, measured.cycles, used)
    return replace(
        row,
        cycles=measured.cycles,
        causes=measured.causes,
        instructions=measured.instructions,
        start=measured.start,
        energy_uj=None if energy is None else energy[1],
    )


def units_of(soc: Soc, result: RunResult) -> tuple[Unit, ...]:
    """Return each unit of the SoC with its busy cycles in a run."""
    causes = result.causes
    if causes is None:
        return ()
    titles = {accelerator.name: accelerator.title for accelerator in soc.accelerators}
    cores = tuple(
        Unit(name, busy, titles.get(name, ""), busy)
        for name, busy in result.units
        if name != "dma" and not is_hart(name)
    )
    harts = tuple(
        Unit(name, busy, _doing(name, soc)) for name, busy in result.units if is_hart(name)
    )
    transfers = Unit("dma", causes.dma, "transfers between L2 and L1", causes.dma_alone)
    devices = (transfers, *cores, *harts)
    host = Unit("host", causes.host, "CPU kernels, layouts, drivers", causes.host_alone)
    return (host, *(unit for unit in devices if unit.cycles))


def _doing(name: str, soc: Soc) -> str:
    """Describe what a hart does; its cycles are charged to the kernel or the DMA it works for."""
    serves = soc.cluster is not None and name == f"core{soc.cluster.first + soc.cluster.cores}"
    return "programs the DMA" if serves else "its share of kernels"


def accelerators_of(steps: Iterable[LayerRow | LayerResult]) -> tuple[str, ...]:
    """Return the accelerators that compute layers, in the order of their first layer."""
    return tuple(dict.fromkeys(step.accelerator for step in steps if step.kind == "layer"))


def step_energy(
    soc: Soc, accelerator: str, kind: str, cycles: int | None, used: Sequence[str]
) -> tuple[Power, float] | None:
    """Return the power of a step and its energy in microjoules; None if it has no power or cycles.

    Args:
        soc: the SoC that has the powers.
        accelerator: the accelerator that the step runs on, or that a conversion is for.
        kind: kind of the step; conversions and copies are the host's work.
        cycles: cycles of the step; None if unknown.
        used: accelerators of the run.
    """
    own = "cpu" if kind in ("prologue", "epilogue", "copy") else accelerator
    alternate = len(used) > 1 and any(soc.power(name) is None for name in used)
    power = (soc.power(*used) if alternate else None) or soc.power(own)
    if power is None or cycles is None:
        return None
    return power, power.milliwatts * soc.cycles_to_ms(cycles)


def energy_of(soc: Soc, rows: Sequence[LayerRow | LayerResult]) -> Energy | None:
    """Return the energy of all steps that have one; None if no step has."""
    total, covered = 0.0, 0
    used: dict[Power, None] = {}
    accelerators = accelerators_of(rows)
    for row in rows:
        step = step_energy(soc, row.accelerator, row.kind, row.cycles, accelerators)
        if step is None or row.cycles is None:
            continue
        power, energy = step
        used[power] = None
        total, covered = total + energy, covered + row.cycles
    if not used:
        return None
    words = [
        f"{' and '.join(power.units)}: {power.milliwatts:g} mW ({power.source})" for power in used
    ]
    return Energy(total, covered, tuple(words))


def decided(model: Model, reference: Reference) -> NDArray[np.int64]:
    """Return what a model decides on its calibration inputs: the largest output of each, [N].

    Args:
        model: a model with calibration inputs and one output.
        reference: computes its outputs, or those of a build of it.
    """
    assert model.calibration is not None
    arrays = [model.calibration[info.name] for info in model.inputs]
    samples = zip(*arrays, strict=True)
    return np.array([int(reference(list(sample))[0].argmax()) for sample in samples])


def decisions_of(
    model: Model,
    reference: Reference,
    expected: NDArray[np.int64] | None = None,
) -> Decisions | None:
    """Return how a build decides on the model's labelled inputs; None without labels.

    Args:
        model: the source model.
        reference: computes the build's outputs; runs on the simulated SoC equal it.
        expected: what the source decides, [N]; computed here by default.
    """
    from htvm.aot.reference import build_llvm_reference

    if model.labels is None:
        return None
    if expected is None:
        expected = decided(model, build_llvm_reference(model.module))
    decisions = decided(model, reference)
    return Decisions(
        samples=len(model.labels),
        source=int((expected == model.labels).sum()),
        build=int((decisions == model.labels).sum()),
        same=int((expected == decisions).sum()),
    )
