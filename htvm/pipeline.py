"""`build`: from a model file to a program on a simulated SoC, with one call per stage."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from byoc_dory.cost import Cost
from byoc_dory.errors import ModelError, TargetError
from byoc_dory.nearest import nearest
from byoc_dory.options import TilingOptions
from byoc_dory.soc.registry import resolve
from byoc_dory.tiling.named import objective_named
from htvm.compiled import BuildOptions, Compiled, Platform
from htvm.firmware.paths import driver_folders
from htvm.integer_io import check_io, with_integer_io
from htvm.model import Model
from htvm.progress import Progress
from htvm.progress_bar import with_progress
from htvm.public import public
from htvm.stage_cache import StageCache
from htvm.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from tvm.ir import IRModule

    from byoc_dory.options import ScheduleKind
    from byoc_dory.pinning import WeightPlan
    from byoc_dory.region import RegionCode
    from byoc_dory.soc.base import Soc, Target
    from byoc_dory.state import StatePlan
    from htvm.aot.cpu import CpuCode, CpuKernel
    from htvm.aot.program import Program
    from htvm.firmware.build import Built
    from htvm.firmware.toolchain import Compiler
    from htvm.module import Module
    from htvm.policy import Policy
    from htvm.quantization.as_planned import Executed
    from htvm.quantization.labels import Labels
    from patterns.byoc.codegen import Generated
    from patterns.dispatch.dispatching import Dispatch

_log = logging.getLogger(__name__)

_STAGES = 8  # number of stages of `build`, including the C compiler


@public
@with_progress
def build(
    model: Model | IRModule | str | Path,
    target: str | Target = "diana",
    platform: Platform | None = None,
    *,
    cpu_kernels: Literal["scheduled", "default"] = "scheduled",
    policy: Policy | None = None,
    schedule: ScheduleKind | None = None,
    tiling: TilingOptions | None = None,
    assembly: Literal["ahead", "late"] | None = None,
    l2_bytes: int | None = None,
    rewrites: Literal["on", "off"] = "on",
    data: Any = None,
    labels: Labels | None = None,
    io: Literal["source", "int8"] = "source",
    cc: str | None = None,
    progress: Progress | None = None,
) -> Module:
    """Compile a model for a target and make it ready to run.

    Args:
        model: a model from `htvm.load`, or anything `htvm.load` takes.
        target: one of `htvm.targets()`, also with parameters, or what `htvm.soc` returns.
        platform: ``"rv32"``: firmware on the instruction-set simulator, with cycles; ``"arm"``:
            firmware for a Cortex-M core on an emulator, with counts of instructions; ``"qemu"``:
            the same on QEMU's machine with that core; ``"host"``: the same C compiled natively and
            linked with the same device models, without either (some convolutions are computed by
            functions for this machine's vectors, with the same results).
            By default, the one of the target's core.
        cpu_kernels: ``"scheduled"`` or ``"default"`` (plain TVM's).
        policy: decides where a layer runs if several cores could run it: ``"bitwidth"``,
            ``"latency"``, ``"mixed"``, a function of a `htvm.policy.LayerInfo` and its candidates,
            or a dict from layer to accelerator; the target's own by default.
        schedule: ``"published"``, ``"decoupled"`` or ``"overlapped"``; overrides that of
            ``tiling``.
        tiling: options of the tiler.
        assembly: ``"late"``: the device makes command streams itself at start-up, from regions as
            JSON, which exports have as files; overrides that of ``tiling``.
        l2_bytes: size of L2 in bytes, for targets whose L2 is adjustable.
        rewrites: ``"on"``: layers that accelerators refuse are computed by other operators with
            the same results where that is quicker (see `htvm.rewriting`); or ``"off"``.
        data: calibration inputs for retargeting: arrays like the model's input; by default, seeded
            inputs in the file's own ranges are used.
        labels: the right class of each of these inputs (or of the model's calibration inputs):
            integers [N], or an ``.npy`` or ``.npz`` file of them. `Module.report` then has the
            accuracy (top-1) of source and build.
        io: ``"int8"``: the conversions at the inputs and outputs of a network in reals are left out
            (`htvm.with_integer_io`); ``data`` are int8 then.
        cc: a GCC for the target's core, by its name or path, which compiles the firmware instead of
            ziglang's clang.
        progress: receives the stages of the build; by default a bar on a terminal
            and in a notebook, if it takes a while.

    Raises:
        ModelError: ``model`` is not a model, or has the name of a header of the SoC's driver.
        UnsupportedError: it uses an operator or quantization that is not supported.
        TargetError: the target, the platform, the schedule, the kind of CPU kernels or the choice
            of rewrites is not known.
        InputError: ``io``, the calibration data or the labels are invalid, or there are labels
            without data.
        PolicyError: there is no such policy, or it names an unknown layer or accelerator, or an
            accelerator that cannot take the layer.
        TilingError: the smallest tile of a layer exceeds L1.
        L2OverflowError: the program exceeds L2.
        ToolchainError: there is no C compiler, or it failed; ``cc`` is none for the core.
    """
    from htvm.firmware.build import build_arm, build_host, build_qemu, build_rv32
    from htvm.firmware.user_compiler import user_compiler
    from htvm.module import Module
    from htvm.opening import with_samples
    from htvm.quantization.retarget import SOURCE

    makers: dict[str, Callable[[Program, Soc, Compiler | None], Built]] = {
        "rv32": build_rv32,
        "arm": build_arm,
        "qemu": build_qemu,
        "host": partial(build_host, native=True),
    }
    if platform is None:
        platform = resolve(target).soc.host.platform
    if not isinstance(platform, str) or platform not in makers:
        raise TargetError(
            f"unknown platform {platform!r}", hint=f"known platforms: {', '.join(makers)}"
        )
    if cc is not None and platform == "host":
        raise TargetError(
            f"{cc} compiles for a core, and programs for this machine run on none",
            where="--cc",
            hint="leave out one of the two, the compiler or the platform",
        )
    compiler = None if cc is None else user_compiler(cc, resolve(target).soc)
    progress = progress or Progress()
    check_io(io)
    whole = _tiling(tiling, schedule, assembly)
    options = BuildOptions(cpu_kernels, whole, l2_bytes, policy, rewrites)
    if io == "int8":
        model = with_integer_io(model)
    if labels is not None:
        model, data = with_samples(model, data, labels), None
    cache = StageCache.of_user()
    compiled = compile_model(model, target, options, data=data, progress=progress, cache=cache)
    # The module keeps the cache for other options, but needs no tensors of all samples.
    cache.shared(SOURCE).clear()
    with progress.stage(f"compiling C for {platform}", (_STAGES, _STAGES)):
        built = makers[platform](compiled.program, compiled.target.soc, compiler)

    def compile_with(changed: BuildOptions) -> Compiled:
        return compile_model(model, target, changed, data=data, cache=cache)

    return Module(compiled, platform, built, compile_with)


def _tiling(
    tiling: TilingOptions | None,
    schedule: ScheduleKind | None,
    assembly: Literal["ahead", "late"] | None,
) -> TilingOptions:
    """Return the tiler's options with the requested schedule and assembly."""
    options = TilingOptions() if tiling is None else tiling
    if not isinstance(options, TilingOptions):
        return options
    return replace(
        options, schedule=schedule or options.schedule, assembly=assembly or options.assembly
    )


def _check_assembly(options: TilingOptions, target: Target) -> None:
    """Refuse late assembly for accelerators without command streams."""
    if options.assembly == "late" and not (
        target.accelerators and all(entry.region_runner for entry in target.accelerators)
    ):
        raise TargetError(
            "there are no command streams to assemble late",
            where=f"target '{target.name}'",
            hint="leave out assembly='late', or build for dla",
        )


def _check_budget(budget: int | None, target: Target) -> None:
    """Refuse a budget larger than the target's L1: code for it would overrun L1."""
    for accelerator in target.accelerators:
        size = target.soc.memory(accelerator.l1).size
        if budget is not None and budget > size:
            raise TargetError(
                f"an L1 budget of {budget} B, accelerator '{accelerator.name}' has {size} B",
                where="option 'l1_budget'",
                hint=f"give at most {size}; larger memories can be explored with htvm.explore",
            )


def _check_objectives(options: TilingOptions, target: Target) -> None:
    """Refuse objectives that no accelerator of the target knows, before anything is planned."""
    known = {
        name: objective
        for entry in target.accelerators
        for name, objective in entry.objectives.items()
    }
    asked = [options.objective, *(objective for _, objective in options.layers)]
    for objective in asked if known else ():
        if objective is not None:
            objective_named(objective, known, f"target '{target.name}'")


def _check_tiled(options: TilingOptions, known: Collection[str]) -> None:
    """Refuse objectives of layers that the network does not have."""
    for name, _ in options.layers:
        if name not in known:
            raise TargetError(
                f"there is no layer {name!r} to be tiled",
                where="option 'tiling'",
                hint=f"{nearest(name, known)}the network has {len(known)} operators",
            )


def _check_name(name: str, soc: Soc) -> None:
    """Refuse a model whose header would shadow one of the SoC's driver."""
    folders = driver_folders(soc)
    if any(path.name == f"{name}.h" for folder in folders for path in folder.rglob("*.h")):
        raise ModelError(
            f"a model for {soc.name} cannot be called {name!r}: its driver has a header of that "
            "name",
            where=f"model '{name}'",
            hint="load it under another name: htvm.load(..., name=...)",
        )


def compile_model(
    model: Model | IRModule | str | Path,
    target: str | Target,
    options: BuildOptions,
    *,
    data: Any = None,
    progress: Progress | None = None,
    cache: StageCache | None = None,
) -> Compiled:
    """Run all stages of `build` before the C compiler; arguments and errors are the same.

    Results that ``cache`` keeps are not computed again.
    """
    from htvm.frontend.bounds import check_offered
    from htvm.opening import opened
    from htvm.placement.plan import place
    from htvm.quantization.as_planned import as_planned

    progress, kept = progress or Progress(), StageCache(None) if cache is None else cache
    resolved = resolve(target, l2_bytes=options.l2_bytes)
    soc = resolved.soc
    _check_budget(options.tiling.l1_budget, resolved)
    _check_assembly(options.tiling, resolved)
    _check_objectives(options.tiling, resolved)
    with progress.stage("importing", (1, _STAGES)):
        source = opened(model)
        _check_name(source.name, soc)
        check_offered(source.graph.nodes, resolved)
    costs: dict[object, Cost] = kept.shared("costs")
    cost = costs.setdefault((soc, options.tiling), Cost(soc, options.tiling))
    # The code of a policy that is a function is not known.
    told = options.policy is None or isinstance(options.policy, str | Mapping)
    key = kept.key(source.identity, resolved, options, data) if kept and told else ""
    with progress.stage("placing layers", (2, _STAGES)):
        planned = kept.get(
            "placing",
            key,
            lambda: place(
                source.graph,
                resolved,
                cost,
                options.policy,
                rewrites=options.rewrites == "on",
            ),
        )
    with progress.stage("retargeting", (3, _STAGES)):
        executed = as_planned(source, planned, resolved, data=data, cache=cache)
    if executed.retargeted.report.impossible and resolved.accelerators:
        kept.get("advising", key, lambda: _advise(source, resolved))
    generated = kept.get(
        "generating",
        key,
        lambda: _generate(source, resolved, options, executed, cost, progress),
    )
    kernels = [kernel for code in generated.regions.values() for kernel in code.kernels]
    operators = {*source.graph.nodes, *executed.retargeted.model.graph.nodes}
    _check_tiled(options.tiling, operators | {kernel.layer_name for kernel in kernels})
    return Compiled(
        source=source,
        target=resolved,
        options=options,
        cost=cost,
        planned=planned,
        retargeted=executed.retargeted,
        rewritten=executed.rewritten,
        dispatch=generated.dispatch,
        regions=generated.regions,
        weights=generated.weights,
        state=generated.state,
        cpu_kernels=generated.cpu_kernels,
        program=generated.program,
        key=key,
    )


def _advise(source: Model, target: Target) -> None:
    """Warn that other targets take a network that could not be written in this one's numbers."""
    from htvm.placement.elsewhere import takers

    found = takers(source.graph, target)
    if found:
        words = ", ".join(map(str, found))
        _log.warning("other targets take %s as it is: %s", source.name, words)


@dataclass(frozen=True, eq=False)
class _Generated:
    """What the stages after retargeting return; see `Compiled`."""

    dispatch: Dispatch
    regions: Mapping[str, RegionCode]
    weights: WeightPlan
    state: StatePlan
    cpu_kernels: tuple[CpuKernel, ...]
    program: Program


def _state(model: Model) -> list[int]:
    """Return the numbers of the inputs that the caller keeps between runs."""
    return [number for number, info in enumerate(model.inputs) if info.name in model.state]


def _places(parameters: list[str], state: StatePlan, soc: Soc) -> dict[int, int]:
    """Return the addresses of the inputs that are in L1, by their numbers."""
    return {
        number: soc.memory(state.memory).base + state.offsets[name]
        for number, name in enumerate(parameters)
        if name in state.offsets
    }


def _generate(
    source: Model,
    target: Target,
    options: BuildOptions,
    executed: Executed,
    cost: Cost,
    progress: Progress,
) -> _Generated:
    """Run the stages after retargeting."""
    from byoc_dory.emit.symbols import Symbols
    from byoc_dory.pinning import WeightPlan
    from htvm.aot.cpu import compile_cpu
    from htvm.aot.parallel import cores_of
    from patterns.byoc.codegen import Generated, run_codegen
    from patterns.byoc.partition import partition
    from patterns.dispatch.dispatching import dispatch

    soc, accelerators, name = target.soc, target.accelerators, source.name
    symbols = Symbols(name)
    with progress.stage("partitioning", (4, _STAGES)):
        model = executed.retargeted.model
        budget = options.tiling.l1_budget
        placed = dispatch(model.graph, soc, accelerators, executed.places, executed.binding, budget)
        # Without accelerators, there is nothing to group and to generate.
        parts = partition(model.graph, placed, soc, accelerators) if accelerators else None
    with progress.stage("generating accelerator code", (5, _STAGES)):
        regions = Generated(model.module, {}, WeightPlan())
        if parts is not None:
            state = _state(source)
            regions = run_codegen(parts, cost, accelerators, name, state, symbols)
    with progress.stage("compiling CPU kernels", (6, _STAGES)):
        cpu = compile_cpu(
            regions.module,
            name,
            kernels=options.cpu_kernels,
            cores=cores_of(target, regions.state.options(options.tiling).l1_budget),
            simd=soc.host.simd,
            scarce=soc.code_memory != "L2",
            symbols=symbols,
        )
    with progress.stage("assembling", (7, _STAGES)):
        program = _program(source, target, cpu, regions)
    return _Generated(placed, regions.code, regions.weights, regions.state, cpu.kernels, program)


def _program(source: Model, target: Target, cpu: CpuCode, regions: Generated) -> Program:
    from htvm.aot.program import Assembly, assemble
    from htvm.aot.steps import Provenance

    parameters = [str(parameter.name) for parameter in cpu.module["main"].params]
    inputs, outputs = source.interface_with_layouts
    return assemble(
        Assembly(
            name=source.name,
            inputs=inputs,
            outputs=outputs,
            calls=cpu.calls,
            results=cpu.results,
            cpu_kernels=cpu.kernels,
            regions=regions.code,
            constants=cpu.constants,
            parameters=parameters,
            places=_places(parameters, regions.state, target.soc),
            origin=Provenance(__version__, source.source, source.sha256),
            stack_bytes=target.soc.host.stack,
        )
    )
