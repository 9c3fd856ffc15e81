"""The report of a build: one row per step, memories, energy, and how to reproduce it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import astuple, fields
from typing import TYPE_CHECKING

from byoc_dory.tileloop.cycles import Traffic
from byoc_dory.tileloop.cycles import traffic_of as traffic_of_tiles
from htvm.firmware.sizes import tensor_bytes
from htvm.sim.maps import memory_maps
from htvm.tools.facts.run import with_run
from htvm.tools.report.data import BY_ROWS, L1Use, L2Use, LayerRow, SqnrRow, Summary
from htvm.tools.report.parts import Core, Estimate, MemoryAccess, NetworkNode, Recipe, SocInfo
from htvm.tools.report.types import Report
from htvm.version import __version__

if TYPE_CHECKING:
    from byoc_dory.plan import LayerPlan
    from byoc_dory.region import Access, Kernel, RegionCode
    from byoc_dory.soc.base import Host, Target
    from byoc_dory.tileloop.cycles import Traffic
    from htvm.aot.program import Program, Step
    from htvm.build_options import Platform
    from htvm.compiled import Compiled
    from htvm.firmware.sizes import Sizes
    from htvm.result import RunResult
    from patterns.reading.node import Node


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


def layer_rows(compiled: Compiled) -> tuple[LayerRow, ...]:
    """Return one row per step of the entry function, in execution order, without a run."""
    known = compiled.kernels
    moved = traffic_of(compiled.program, {symbol: kernel for symbol, (_, kernel) in known.items()})
    return tuple(
        _layer_row(compiled, step, known.get(step.symbol, (None, None)), traffic)
        for step, traffic in zip(compiled.program.steps, moved, strict=True)
    )


def reads_of(compiled: Compiled) -> tuple[tuple[int, ...], ...]:
    """Return, for each step, the earlier steps that compute what it reads.

    The first step that touches a buffer of the arena writes it; tensors that stay in L1 are none of
    its operands.
    """
    writers: dict[tuple[str, str], int] = {}
    known, found = compiled.kernels, []
    for index, step in enumerate(compiled.program.steps):
        touched = [(str(each.kind), each.name) for each in step.args if each.kind in _WRITTEN]
        read, (_, kernel) = list(touched), known.get(step.symbol, (None, None))
        if kernel is not None and kernel.layer is not None:
            read += [("L1", tensor.name) for tensor in kernel.layer.inputs]
            touched.append(("L1", kernel.layer.output.name))
        found.append(tuple(sorted({writers[each] for each in read if each in writers})))
        for each in touched:
            writers.setdefault(each, index)
    return tuple(found)


_WRITTEN = ("buffer", "output")


def _layer_row(
    compiled: Compiled,
    step: Step,
    code_and_kernel: tuple[RegionCode, Kernel] | tuple[None, None],
    traffic: Traffic,
) -> LayerRow:
    (region, kernel), names, known = code_and_kernel, step.layers, compiled.dispatch.layers
    layers = [known[name] for name in names if name in known]
    plan = None if kernel is None else kernel.plan
    tiles = None if kernel is None else kernel.program
    return LayerRow(
        name=" + ".join(names) + step.part,
        op=_operator(compiled, step),
        accelerator=step.accelerator,
        shape="; ".join(layer.sizes_text for layer in layers)
        if step.kind in ("layer", "cpu")
        else "",
        macs=step.macs,
        predicted_cycles=step.predicted_cycles or None,
        tile="" if plan is None else ",".join(str(size) for size in astuple(plan.solution.tile)),
        tiles=None if tiles is None else tiles.tiles,
        double_buffered=tiles is not None and tiles.pipelined,
        resident="" if plan is None else _resident(plan),
        l1_bytes=None if region is None else region.l1_used.get(step.symbol),
        source=compiled.source.sources.get(names[-1], ""),
        kind=step.kind,
        l2_read=traffic.read,
        l2_written=traffic.written,
        l2_weights=traffic.constants,
        part=step.part,
    )


def _estimates_of(compiled: Compiled) -> tuple[Estimate, ...]:
    """Return what each layer of a kernel with several takes of it."""
    return tuple(
        Estimate(layer.name, kernel.accelerator, share.cycles, share.causes, share.memory_cycles)
        for _, kernel in compiled.kernels.values()
        for layer, share in zip(kernel.together, kernel.shares, strict=True)
    )


def _accesses_of(compiled: Compiled) -> tuple[MemoryAccess, ...]:
    """Return the accesses of each memory by all such kernels."""
    found: dict[str, list[Access]] = {}
    for _, kernel in compiled.kernels.values():
        for access in kernel.accesses:
            found.setdefault(access.memory, []).append(access)
    return tuple(
        MemoryAccess(memory, *(sum(getattr(each, name) for each in parts) for name in _COUNTED))
        for memory, parts in found.items()
    )


_COUNTED = ("cycles", "read", "written")


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
    """Return the report of a build, and of a run if there was one."""
    cost = compiled.retargeted.report
    built = Report(
        summary=Summary(
            network=compiled.source.name,
            target=compiled.target.name,
            platform=platform,
            notes=(
                *_host_notes(compiled.target.soc.host),
                *_number_notes(cost.impossible),
                *filter(None, [compiled.state.text]),
                *([f"{BY_ROWS}{compiled.by_rows}."] if compiled.by_rows else []),
            ),
            clock_hz=compiled.target.soc.clock_hz,
            memory=memory_of(compiled, sizes, None),
            policy=compiled.planned.policy if compiled.target.accelerators else "",
            schedule=compiled.options.tiling.schedule if compiled.target.accelerators else "",
        ),
        layers=layer_rows(compiled),
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
        maps=memory_maps(compiled),
        graph=network_graph(compiled),
        recipe=recipe_of(compiled, platform),
        reads=reads_of(compiled),
        estimates=_estimates_of(compiled),
        accesses=_accesses_of(compiled),
    )
    return built if result is None else with_run(built, result, compiled.target.soc)


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
            apart=plan.cycles_alone,
            gap=plan.gap,
        )
        for code in compiled.regions.values()
        for plan in [code.plan]
        if plan is not None
    )


# The last axis of their first operand is the one they sum over.
_PRODUCTS = ("matmul", "real_matmul", "tflite_matmul")


def network_graph(compiled: Compiled) -> tuple[NetworkNode, ...]:
    """Return the operators of the model as built, in execution order."""
    placement = compiled.dispatch.placement
    return tuple(
        NetworkNode(
            name=node.name,
            op=node.kind,
            accelerator=placement.get(node.name, "cpu"),
            inputs=tuple(dict.fromkeys(node.inputs)),
            macs=macs_of(node),
        )
        for node in compiled.retargeted.model.graph.in_order
    )


def macs_of(node: Node) -> int:
    """Return an operator's multiply-accumulates, those of products of two tensors included."""
    if node.layer is not None:
        return node.layer.macs
    if node.kind not in _PRODUCTS:
        return 0
    return math.prod(node.output_shape) * node.input_shapes[0][-1]


def machine_of(target: Target) -> SocInfo:
    """Return a target's numbers that figures need."""
    soc = target.soc
    return SocInfo(
        title=soc.title,
        host=soc.host.name,
        cores=tuple(Core(core.name, core.title, core.peak_macs) for core in target.accelerators),
        dma_bytes_per_cycle=None if soc.dma is None else float(soc.dma.bytes_per_cycle),
    )


def recipe_of(compiled: Compiled, platform: Platform) -> Recipe:
    """Return how a build was made, as far as known; the command is a line of Python."""
    from htvm.aot.entry import model_sources

    digest = hashlib.sha256()
    for name, text in sorted(model_sources(compiled.program).items()):
        digest.update(name.encode() + b"\0" + text.encode() + b"\0")
    options = [("target", compiled.target.name), ("platform", platform), *_options(compiled)]
    options_text = ", ".join(f'{name}="{value}"' for name, value in options[:2])
    if compiled.options.memory is not None:
        options_text += f", memory={compiled.options.memory!r}"
    if compiled.options.input != "kept":
        options_text += f', input="{compiled.options.input}"'
    tiling = compiled.options.tiling
    if compiled.target.accelerators:
        options_text += f', policy="{compiled.planned.policy}", schedule="{tiling.schedule}"'
        if compiled.options.rewrites == "off":
            options_text += ', rewrites="off"'
    return Recipe(
        version=__version__,
        command=f"htvm.build(model, {options_text})",
        options=tuple(options),
        model=compiled.source.source,
        model_sha256=compiled.source.file_sha256,
        program_sha256=digest.hexdigest(),
    )


def _options(compiled: Compiled) -> list[tuple[str, str]]:
    options = compiled.options
    found = [("cpu_kernels", str(options.cpu_kernels))]
    if options.l2_bytes is not None:
        found.append(("l2_bytes", str(options.l2_bytes)))
    if options.memory is not None:
        found.append(("memory", str(options.memory)))
    if options.input != "kept":
        found.append(("input", options.input))
    if compiled.target.accelerators:
        found += [("policy", compiled.planned.policy), ("rewrites", str(options.rewrites))]
        found += [
            (field.name, _option_text(options.tiling, field.name))
            for field in fields(options.tiling)
        ]
    return found


def _option_text(options: object, name: str) -> str:
    value = getattr(options, name)
    return "default" if value is None else str(value)


def traffic_of(program: Program, kernels: Mapping[str, Kernel]) -> list[Traffic]:
    """Return the bytes that each step of a program moves.

    A layer on an accelerator moves its tiles, including halos; any other step is charged the sizes
    of its operands in L2.

    Args:
        program: the program.
        kernels: the kernels of the steps in regions, by symbol.
    """
    sizes = {("buffer", buffer.name): buffer.bytes for buffer in program.buffers}
    sizes |= {("constant", entry.name): int(entry.data.nbytes) for entry in program.constants}
    for kind, tensors in (("input", program.inputs), ("output", program.outputs)):
        sizes |= {(kind, f"{kind}_{i}"): tensor_bytes((t,)) for i, t in enumerate(tensors)}
    lives = {buffer.name: (buffer.first, buffer.last) for buffer in program.buffers}
    traffic = []
    for index, step in enumerate(program.steps):
        kernel = kernels.get(step.symbol)
        if kernel is not None and kernel.program is not None:
            traffic.append(traffic_of_tiles(kernel.program))
        else:
            traffic.append(_of_operands(step, index, kernel, sizes, lives))
    return traffic


def _of_operands(
    step: Step,
    index: int,
    kernel: Kernel | None,
    sizes: Mapping[tuple[str, str], int],
    lives: Mapping[str, tuple[int, int]],
) -> Traffic:
    """Return the operands' sizes; the first step that touches a buffer of the arena writes it."""
    read = written = 0
    constants = () if kernel is None else kernel.constants
    weights = sum(int(constant.data.nbytes) for constant in constants)
    for operand in step.args:
        size = sizes[operand.kind, operand.name]
        first, last = lives.get(operand.name, (index, index + 1))
        if operand.kind == "constant":
            weights += size
        elif operand.kind == "input" or (operand.kind == "buffer" and first < index):
            read += size
        elif operand.kind == "output" or first < last:  # else it is a workspace
            written += size
    return Traffic(read, written, weights)
