"""`build`: from a model file to a program on a simulated SoC, through all stages."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from byoc_dory.errors import TargetError
from byoc_dory.options import TilingOptions
from byoc_dory.soc.registry import resolve
from htvm.build_options import BuildOptions, Input, Memory, Platform
from htvm.compiled import STAGE_COUNT, Compiled
from htvm.integer_io import check_io, with_integer_io
from htvm.model import Model
from htvm.progress import Progress
from htvm.progress_bar import with_progress
from htvm.public import public
from htvm.stage_cache import StageCache

if TYPE_CHECKING:
    from collections.abc import Callable

    from tvm.ir import IRModule

    from byoc_dory.options import ScheduleKind
    from byoc_dory.soc.base import Soc, Target
    from htvm.aot.program import Program
    from htvm.firmware.build import Built
    from htvm.firmware.toolchain import Compiler
    from htvm.module import Module
    from htvm.policy import Policy
    from htvm.quantization.samples import Labels


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
    memory: Memory | None = None,
    input: Input = "kept",
    data: Any = None,
    labels: Labels | None = None,
    io: Literal["source", "int8"] = "source",
    cc: str | None = None,
    progress: Progress | None = None,
) -> Module:
    """Compile a model for a target and make it ready to run.

    Args:
        model: a model from `htvm.load`, or anything `htvm.load` takes; or a network of torch in
            reals, which ``data`` are then also quantized with, in the target's numbers (as by
            `htvm.quantize`).
        target: one of `htvm.targets()`, also with parameters, or what `htvm.soc` returns.
        platform: ``"rv32"``: firmware on the instruction-set simulator, with cycles; ``"arm"``:
            firmware for a Cortex-M core on an emulator, with counts of instructions; ``"qemu"``:
            the same on QEMU's machine with that core, or in QEMU's user mode for a RISC-V core with
            vectors; ``"host"``: the same C compiled natively and linked with the same device
            models, without either (some convolutions are computed by functions for this machine's
            vectors, with the same results).
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
        memory: for CPU targets: bytes of the arena at most, or ``"least"``. Operators are computed
            row by row where that is needed, in the quickest way that was found; by default, layer
            after layer.
        input: ``"overwritten"``: inputs lie in the arena, where the program says, and a run
            overwrites them, so ``memory`` counts them, too; ``"streamed"``, for CPU targets: the
            only input, a map, is handed over row by row; by default, they are the caller's and are
            kept.
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
            of rewrites is not known; or there is a limit of memory for a target with accelerators,
            or another ``input`` than ``"kept"`` for one, or for what keeps its contents.
        InputError: ``io``, the calibration data or the labels are invalid, or there are labels
            without data; or the network was quantized in other numbers than the target's.
        PolicyError: there is no such policy, or it names an unknown layer or accelerator, or an
            accelerator that cannot take the layer.
        TilingError: the smallest tile of a layer exceeds L1.
        L2OverflowError: the program exceeds L2.
        CapacityError: no arena is as small as ``memory``.
        ToolchainError: there is no C compiler, or it failed; ``cc`` is none for the core.
    """
    from htvm.firmware.user_compiler import user_compiler
    from htvm.module import Module
    from htvm.opening import with_samples
    from htvm.quantization.retarget import SOURCE
    from htvm.quantization.torch_model import is_in_reals, quantized_torch

    makers = program_makers()
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
    options = BuildOptions(cpu_kernels, whole, l2_bytes, policy, rewrites, memory, input)
    if is_in_reals(model):
        model, data = quantized_torch(model, target, data, progress=progress), None
    if io == "int8":
        model = with_integer_io(model)
    if labels is not None:
        model, data = with_samples(model, data, labels), None
    cache = StageCache.of_user()
    compiled = compile_model(model, target, options, data=data, progress=progress, cache=cache)
    # The module keeps the cache for other options, but needs no tensors of all samples.
    cache.shared(SOURCE).clear()
    with progress.stage(f"compiling C for {platform}", (STAGE_COUNT, STAGE_COUNT)):
        built = makers[platform](compiled.program, compiled.target.soc, compiler)

    def compile_with(changed: BuildOptions) -> Compiled:
        return compile_model(model, target, changed, data=data, cache=cache)

    return Module(compiled, platform, built, compile_with)


def program_makers() -> dict[str, Callable[[Program, Soc, Compiler | None], Built]]:
    """Return what compiles and links a program's C, by platform."""
    from htvm.firmware.build import build_arm, build_host, build_qemu, build_rv32

    return {
        "rv32": build_rv32,
        "arm": build_arm,
        "qemu": build_qemu,
        "host": partial(build_host, native=True),
    }


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
    return Compiled(model, target, options, data=data, progress=progress, cache=cache).finish()
