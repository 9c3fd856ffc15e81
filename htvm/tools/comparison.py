"""`compare`: one model in several configurations, with the same inputs and published figures."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from byoc_dory.errors import L2OverflowError
from byoc_dory.options import TilingOptions
from byoc_dory.soc.registry import cpu_target, resolve, split_name, targets
from htvm.firmware.build import sizes_on_chip
from htvm.inputs import Inputs, bind_inputs, seeded_inputs
from htvm.model import Model
from htvm.pipeline import build
from htvm.policy import check_policy
from htvm.progress import Progress
from htvm.progress_bar import with_progress
from htvm.public import public
from htvm.tools.baselines import apply_pipeline, build_pipeline, check_pipelines
from htvm.tools.facts.report import macs_of, memory_of
from htvm.tools.facts.run import decided, decisions_of
from htvm.tools.report.compare import (
    DIGITAL,
    WHY_FASTER,
    Agreement,
    Comparison,
    ComparisonRow,
    published,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray
    from tvm.ir import IRModule
    from tvm.ir.transform import Pass

    from byoc_dory.options import ScheduleKind
    from byoc_dory.soc.base import Target
    from htvm.compiled import Compiled
    from htvm.model import TensorInfo
    from htvm.module import Module
    from htvm.policy import Policy
    from htvm.quantization.samples import Data, Labels
    from htvm.result import RunResult
    from htvm.tools.report.compare import Published

_log = logging.getLogger(__name__)

PLAIN_TVM = (
    "plain TVM: the same network as unmodified TVM compiles it to C, untuned, with the same memory "
    "planning, compiler and core as ours."
)
"""What the first configuration is."""

_PIPELINES = (
    "{names}: the model's module after the given passes, otherwise as for plain TVM; not exact if "
    "the passes change what it computes."
)
"""What the configurations of `compare`'s baselines are."""

_SCALAR_NOTE = (
    "The simulated host is an RV32IMC core without SIMD and hardware loops; the published CPU "
    "figures were compiled for a core that has both."
)
_SIMD_NOTE = (
    "The simulated host is an RV32IMC core with SIMD in CORE-V encoding. The chip's core has the "
    "same operations in the older XpulpV2 encoding; the published CPU figures, 2.8 "
    "cycles per MAC on ResNet-8, imply kernels without them."
)


@dataclass(frozen=True)
class _Configuration:
    name: str
    target: str
    cpu_kernels: Literal["scheduled", "default"]
    policy: Policy | None = None
    schedule: ScheduleKind | None = None
    module: IRModule | None = None  # after the passes of a baseline


@public
@with_progress
def compare(
    model: Model | IRModule | str | Path,
    target: str | Target = "diana",
    inputs: Inputs | Sequence[Inputs] | None = None,
    *,
    policy: Policy | None = None,
    schedule: ScheduleKind | None = None,
    baselines: Mapping[str, Pass] | None = None,
    data: Data | None = None,
    labels: Labels | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Build and run a model with plain TVM, with our CPU schedules, and for the target.

    Args:
        model: a model from `htvm.load`, or anything `htvm.load` takes.
        target: the configuration to compare with the CPU of the same SoC.
        inputs: inputs of one inference, or a list of dicts for several; seeded random ones by
            default. Cycles are those of the first inference.
        policy, schedule: policy and schedule of the target's configuration, as for `htvm.build`.
        baselines: passes by the name of a further configuration, such as a
            ``tvm.transform.Sequential``: each is applied to the model's module (`Model.module`,
            with ``Target("c")`` as the current target), and the result lowered by plain TVM for one
            core, compiled and run like the others. It must keep the inputs and outputs of ``main``.
        data, labels: calibration inputs and their classes, as for `htvm.build`; with labels, each
            row has the accuracy (top-1) of source and build on all of these inputs.
        progress: receives the stages of the comparison; by default a bar on a terminal
            and in a notebook, if it takes a while.

    Returns:
        One row per configuration; the baseline of the speed-ups is the fastest configuration that
        runs only on the SoC's CPU. Rows of emulated cores have instructions, and predicted cycles
        of accelerators, in place of cycles, and are without speed-ups.

    Raises:
        The errors of `htvm.build` and `Module.run`; a configuration that exceeds L2 becomes a row
        that says so.
        InputError: a baseline is no pass, has another configuration's name, or fails, which the
            message says of which pass; what it raised is the cause.
        ModelError: its module has no function ``main``, or other inputs or outputs.
        UnsupportedError: its module has unknown sizes, or TVM cannot lower it to C.
    """
    from htvm.aot.reference import build_llvm_reference
    from htvm.opening import with_samples

    progress = progress or Progress()
    place = resolve(target)
    configurations = _configurations(place.name, policy, schedule)
    # Report errors of the last configuration before the others are built.
    if policy is not None:
        check_policy(policy)
    if schedule is not None:
        TilingOptions(schedule=schedule)
    passes = check_pipelines(baselines or {}, [entry.name for entry in configurations])
    source = with_samples(model, data, labels)
    configurations[1:1] = [
        _Configuration(
            name, configurations[0].target, "default", module=apply_pipeline(source, name, given)
        )
        for name, given in passes.items()
    ]
    samples = _samples(source.inputs, inputs)
    with progress.stage("computing what the source model says"):
        oracle = build_llvm_reference(source.module)
        wanted = [oracle(sample) for sample in samples]
        classes = None if source.labels is None else decided(source, oracle)
    rows: list[ComparisonRow] = []
    for number, configuration in enumerate(configurations, 1):
        with progress.stage(configuration.name, (number, len(configurations))):
            rows.append(_row(source, configuration, samples, wanted, classes, progress))
    macs = _macs(source)
    beside = published(macs, place.name)
    return Comparison(
        network=source.name,
        macs=macs,
        clock_hz=place.soc.clock_hz,
        rows=tuple(rows),
        baseline=_fastest_on_cpu(rows, configurations[0].target),
        published=beside,
        notes=(*_notes(rows[-1], place, beside), *_said_of(passes)),
    )


def _said_of(pipelines: Mapping[str, Pass]) -> tuple[str, ...]:
    return (_PIPELINES.format(names=", ".join(pipelines)),) if pipelines else ()


def _notes(row: ComparisonRow, target: Target, beside: Sequence[Published]) -> tuple[str, ...]:
    """Return notes without which a target's figures next to published ones would mislead."""
    if not beside:
        return (PLAIN_TVM,)
    host = _SIMD_NOTE if target.soc.host.corev else _SCALAR_NOTE
    if row.cycles is None or not target.accelerators or beside[-1].configuration != DIGITAL:
        return (PLAIN_TVM, host)
    theirs = beside[-1].latency_ms
    faster = theirs is not None and target.soc.cycles_to_ms(row.cycles) < theirs
    return (PLAIN_TVM, host, WHY_FASTER) if faster else (PLAIN_TVM, host)


def _samples(
    infos: Sequence[TensorInfo], inputs: Inputs | Sequence[Inputs] | None
) -> list[list[NDArray[np.generic]]]:
    if inputs is None:
        return [seeded_inputs(infos)]
    if isinstance(inputs, (list, tuple)) and inputs and isinstance(inputs[0], dict):
        return [bind_inputs(infos, sample) for sample in inputs]
    return [bind_inputs(infos, inputs)]


def _configurations(
    target: str, policy: Policy | None, schedule: ScheduleKind | None
) -> list[_Configuration]:
    cpu = cpu_target(target)
    listed = [
        _Configuration(f"{cpu}, plain TVM", cpu, "default"),
        _Configuration(f"{cpu}, our schedules", cpu, "scheduled"),
    ]
    cores = _cores_only(target)
    if cores is not None:
        listed.append(_Configuration(cores, cores, "scheduled"))
    if target != cpu:
        name = target
        if policy is not None:
            name += f", policy {policy}" if isinstance(policy, str) else ", the user's policy"
        if schedule is not None:
            name += f", schedule {schedule}"
        listed.append(_Configuration(name, target, "scheduled", policy, schedule))
    return listed


def _cores_only(target: str) -> str | None:
    """Return the target that only uses the cores of the SoC's cluster; None if that is this one."""
    soc = resolve(target).soc
    base, _ = split_name(target)
    for name in targets() if soc.cluster is not None else ():
        if name == base or resolve(name).soc.name != soc.name:
            continue
        if [entry.name for entry in resolve(name).accelerators] == ["cluster"]:
            return name + target[len(base) :]
    return None


def _fastest_on_cpu(rows: Sequence[ComparisonRow], cpu: str) -> str:
    """Return the name of the fastest CPU configuration, or of the first if none fits L2.

    One whose outputs are wrong is none to compare with.
    """
    on_cpu = [row for row in rows if row.target == cpu and row.exact is not False]
    ran = [row for row in on_cpu if _cost(row) is not None]
    return min(ran or on_cpu, key=lambda row: _cost(row) or 0).configuration


def _cost(row: ComparisonRow) -> int | None:
    return row.instructions if row.cycles is None else row.cycles


def _accelerator_cycles(result: RunResult) -> int | None:
    """Return the predicted cycles of accelerators beside a core whose instructions are counted."""
    steps = [step for step in result.layers if step.kind == "layer"]
    if result.instructions is None or not steps:
        return None
    return sum(step.predicted_cycles for step in steps)


def _row(
    source: Model,
    configuration: _Configuration,
    samples: Sequence[Sequence[NDArray[np.generic]]],
    wanted: Sequence[Sequence[NDArray[np.generic]]],
    classes: NDArray[np.int64] | None,
    progress: Progress,
) -> ComparisonRow:
    try:
        module = _built(source, configuration, progress)
    except L2OverflowError as error:
        _log.warning("%s: %s", configuration.name, error)
        return ComparisonRow(configuration.name, configuration.target, failure="does not fit L2")
    compiled = module.compiled
    results = [module.run(list(sample)) for sample in samples]
    outputs = [result.outputs for result in results]
    exact = all(
        np.array_equal(ours, theirs)
        for sample, made in zip(samples, outputs, strict=True)
        for ours, theirs in zip(made, module.reference(list(sample)), strict=True)
    )
    return ComparisonRow(
        configuration=configuration.name,
        target=configuration.target,
        cycles=results[0].cycles,
        memory=memory_of(compiled, sizes_on_chip(module.built), results[0]),
        agreement=agreement(source.outputs, wanted, outputs),
        exact=exact,
        scores_sqnr_db=_scores_sqnr_db(compiled),
        decisions=None if classes is None else decisions_of(source, module.reference, classes),
        policy=compiled.planned.policy if compiled.target.accelerators else "",
        schedule=compiled.options.tiling.schedule if compiled.target.accelerators else "",
        instructions=results[0].instructions,
        accelerator_cycles=_accelerator_cycles(results[0]),
    )


def _built(source: Model, configuration: _Configuration, progress: Progress) -> Module:
    target = configuration.target
    if configuration.module is not None:
        return build_pipeline(source, configuration.name, configuration.module, target, progress)
    return build(
        source, target, cpu_kernels=configuration.cpu_kernels,
        policy=configuration.policy, schedule=configuration.schedule, progress=progress,
    )  # fmt: skip


def _scores_sqnr_db(compiled: Compiled) -> float | None:
    """Return the loss before a softmax at the end; None without one, or in the source's numbers."""
    kinds = list(compiled.dispatch.kinds.values())
    ends = bool(kinds) and kinds[-1] == "softmax"
    return compiled.retargeted.report.output_sqnr_db if ends else None


def agreement(
    infos: Sequence[TensorInfo],
    wanted: Sequence[Sequence[NDArray[np.generic]]],
    made: Sequence[Sequence[NDArray[np.generic]]],
) -> Agreement:
    """Compare outputs with the source model's.

    Args:
        infos: the model's outputs.
        wanted, made: per input tried, one array per output.

    Returns:
        The agreement, with SQNR over all outputs in real values, 10 log10(sum wanted^2 / sum
        difference^2), in dB; and top-1 if the model's only output is a vector of 2 to 100 classes.
    """
    pairs: list[tuple[TensorInfo, Any, Any]] = [
        (info, _wide(a), _wide(b))
        for one, other in zip(wanted, made, strict=True)
        for info, a, b in zip(infos, one, other, strict=True)
    ]
    equal = sum(
        all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
        for one, other in zip(wanted, made, strict=True)
    )
    difference = max(np.abs(a - b).max().item() for _, a, b in pairs)
    signal = noise = 0.0
    for info, a, b in pairs:
        scale = info.scale or 1.0
        signal += float(np.sum(((a - (info.zero_point or 0)) * scale) ** 2))
        noise += float(np.sum(((a - b) * scale) ** 2))
    classifier = len(infos) == 1 and _is_classifier(infos[0])
    top1 = sum(int(a.argmax() == b.argmax()) for _, a, b in pairs) if classifier else None
    return Agreement(
        inputs=len(wanted),
        equal=equal,
        max_difference=difference,
        top1=top1,
        sqnr_db=None if noise == 0 or signal == 0 else 10 * float(np.log10(signal / noise)),
    )


def _wide(values: NDArray[np.generic]) -> NDArray[Any]:
    """Return numbers whose differences do not overflow: integers as int64, reals as float64."""
    return np.asarray(values).astype(np.float64 if values.dtype.kind == "f" else np.int64)


def _is_classifier(info: TensorInfo) -> bool:
    # A softmax in TFLite's fixed output quantization, or the scores before a softmax.
    return len(info.shape) == 2 and info.shape[0] == 1 and 2 <= info.shape[1] <= 100


def _macs(source: Model) -> int:
    return sum(map(macs_of, source.graph.in_order))
