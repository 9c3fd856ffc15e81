"""Regions, their plans, CPU kernels and the steps of a program as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from byoc_dory.planning import expand
from htvm.tools.printing.graphs import type_text

if TYPE_CHECKING:
    from byoc_dory.plan import LayerPlan
    from byoc_dory.region import Region, RegionCode
    from htvm.aot.steps import StepOperand
    from htvm.compiled import Compiled


def region_lines(compiled: Compiled) -> Iterator[str]:
    """Yield the regions with their layers; what is in none runs on the CPU."""
    inside, found = set(), compiled.dispatch
    for region in compiled.partition.regions.values():
        yield _head(region)
        executed = expand(compiled.cost, region)
        names = [layer.name for layer in executed.region.layers]
        inside |= set(names)
        for name, parts in found.groups.items():
            if any(each.startswith(f"{name}.") for each in names):
                what = f"{name}, a layer of {len(parts)} operators"
                yield f"    {what}, is computed as {name}.* and {name}:"
        for layer in executed.region.layers:
            yield f"    {layer.name} on {executed.homes[layer.name].name} ({layer.sizes_text})"
    outside = [
        name
        for name in found.placement
        if name not in inside | found.inner | set(found.renamed) | set(found.absorbed)
    ]
    yield f"on the CPU: {', '.join(outside) or 'nothing'}"


def generated_lines(compiled: Compiled) -> Iterator[str]:
    """Yield the regions' plans: tiles, what stays in L1, and predicted cycles."""
    homes = compiled.weights.homes
    for code in compiled.regions.values():
        yield _head(code)
        plan = code.plan
        if plan is not None:
            yield (
                f"    {plan.cycles:,} cycles predicted, {plan.cycles_alone:,} layer by layer; "
                f"L1: {plan.l1_peak:,} of {plan.l1_limit:,} B"
            )
            yield f"    stays in L1: {', '.join(plan.resident) or 'nothing'}"
        for kernel in code.kernels:
            sizes = "" if kernel.layer is None else f" ({kernel.layer.sizes_text})"
            about = f"    {kernel.layer_name}: {kernel.kind} on {kernel.accelerator}{sizes}"
            yield f"{about}, {kernel.predicted_cycles:,} cycles predicted"
            if kernel.plan is not None:
                yield f"        {_plan_text(kernel.plan)}"
            if homes.get(kernel.layer_name):
                yield f"        weights in {homes[kernel.layer_name]}"
    if compiled.state.text:
        yield compiled.state.text
    if not compiled.regions:
        yield "no regions: everything runs on the CPU"


def lowered_lines(compiled: Compiled) -> Iterator[str]:
    """Yield the kernels that TVM compiled, with their parameters and how loops were made."""
    for kernel in compiled.cpu_kernels:
        parameters = ", ".join(
            f"{name} {type_text(dtype, shape)}" for name, dtype, shape in kernel.params
        )
        yield f"{kernel.symbol}({parameters})"
        yield f"    computes {', '.join(kernel.layers)}: {', '.join(kernel.operators)}"
        yield f"    loops: {'plain, ' if kernel.plain else ''}{kernel.schedule}"
        if any(kernel.workspaces):
            yield f"    workspaces: {', '.join(f'{size:,} B' for size in kernel.workspaces)}"
    if not compiled.cpu_kernels:
        yield "no kernels: nothing runs on the CPU"


def assembly_lines(compiled: Compiled) -> Iterator[str]:
    """Yield the steps of the entry function with the places of their tensors, and the arena."""
    program = compiled.program
    for number, step in enumerate(program.steps):
        places = ", ".join(map(_operand_text, step.args))
        what = f"copy of {step.bytes:,} B" if step.kind == "copy" else step.symbol
        kind = "kernel" if step.kind == "cpu" else step.kind
        cycles = f", {step.predicted_cycles:,} cycles predicted" if step.predicted_cycles else ""
        yield f"{number}: {step.layer}, {kind} on {step.accelerator}: {what}({places}){cycles}"
    plan, offsets = program.plan, dict(program.plan.offsets)
    yield f"arena in L2: {plan.peak:,} B, at least {plan.bound:,} B for any plan"
    for use in program.buffers:
        about = f"    {use.name}: offset {offsets[use.name]:,}, {use.bytes:,} B"
        over = f", over {use.over}" if use.over else ""
        yield f"{about}, steps {use.first} to {use.last}{over}"
    for name, tensor in program.aliases:
        yield f"    {name}: another name of {tensor}"
    for memory in ("", *program.constant_memories):
        where = memory or compiled.target.soc.code_memory
        yield f"constants in {where}: {program.bytes_in(memory):,} B"


def _head(code: Region | RegionCode) -> str:
    read = ", ".join(f"{each.name} {type_text(each.dtype, each.shape)}" for each in code.inputs)
    made = ", ".join(f"{each.name} {type_text(each.dtype, each.shape)}" for each in code.outputs)
    return f"{code.name}: {read} -> {made}"


def _plan_text(plan: LayerPlan) -> str:
    """Return a layer's tile, its buffers and their offsets in L1."""
    parts = [f"tile {plan.solution.tile}", f"{plan.buffers} buffer{'s' * (plan.buffers > 1)}"]
    for number, (offset, resident) in enumerate(
        zip(plan.l1_inputs, plan.resident_inputs, strict=True)
    ):
        parts.append(f"operand {number} {'resident ' if resident else ''}at {offset:,}")
    parts.append(f"result {'resident ' if plan.resident_output else ''}at {plan.l1_output:,}")
    if plan.follower is not None:
        parts.append(f"computes {plan.follower.layer.name} beside its next tile")
    if plan.ahead:
        parts.append("computed by the layer before")
    return ", ".join(parts)


def _operand_text(operand: StepOperand) -> str:
    return operand.name if operand.kind == "buffer" else f"{operand.kind} {operand.name}"
