"""Running a built program on any platform, and what users get of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from byoc_dory.errors import SimulationError
from htvm.aot.program import Program
from htvm.firmware.build import RUN_MARK, Built
from htvm.firmware.project import check_arrays
from htvm.firmware.sizes import tensor_bytes
from htvm.result import LayerResult, RunResult
from htvm.sim.arm import run_arm
from htvm.sim.arm_run import ArmRun
from htvm.sim.causes import EventLog
from htvm.sim.host import run_host
from htvm.sim.qemu import run_qemu
from htvm.sim.qemu_user import run_qemu_user
from htvm.sim.rv32 import run_rv32
from htvm.sim.thumb import estimate, sum_of

if TYPE_CHECKING:
    from byoc_dory.soc.base import Soc
    from htvm.aot.steps import Step

_CODE = "htvm_run_code"  # symbol of what the entry function returned

Array: TypeAlias = npt.NDArray[np.generic]


@dataclass(frozen=True, eq=False)
class RawResult:
    """The raw results of one inference.

    Attributes:
        outputs: outputs in the model's order, shapes and dtypes.
        cycles: cycles from the call of the entry function to its return; None on the host platform.
        spans: (begin, end) cycle of every step, counted from the call; empty on the host platform.
        events: device events, and the times when the host waited (unit "host"), counted from the
            call (on the host platform: in accesses and waited device cycles since the start).
        stack_used: largest use of the stack in bytes; None on the host platform.
        instructions: instructions from the call of the entry function to its return, without those
            of device models; None on platforms that do not count them.
        step_instructions: (first, last) instruction of every step, counted from the call; None for
            a copy, which is a part of the entry function, and for a step of an accelerator; empty
            without counts.
        estimated_cycles: the fewest and the most cycles that the manual of the core gives for these
            instructions; None without counts, or if it gives none.
        step_estimates: the same of every step, as ``step_instructions``.
        core_instructions: executed by each core, if several are emulated.
    """

    outputs: tuple[Array, ...]
    cycles: int | None
    spans: tuple[tuple[int, int], ...]
    events: tuple[Mapping[str, Any], ...] = field(repr=False)
    stack_used: int | None
    instructions: int | None = None
    step_instructions: tuple[tuple[int, int] | None, ...] = ()
    estimated_cycles: tuple[int, int] | None = None
    step_estimates: tuple[tuple[int, int] | None, ...] = ()
    core_instructions: tuple[int, ...] = ()

    @property
    def step_cycles(self) -> list[int]:
        """Cycles of every step, including waiting for devices; empty on the host platform."""
        return [end - begin for begin, end in self.spans]


def run(
    built: Built,
    inputs: Sequence[Array],
    settings: Mapping[int, int] | None = None,
    arena: bytes | None = None,
) -> RawResult:
    """Run one inference.

    Args:
        built: a program from `htvm.firmware.build`; it can be run any number of times.
        inputs: one array per input, in the model's shapes and dtypes.
        settings: settings of the device models: register -> value written before the first cycle.
        arena: contents of the arena at the beginning, for a firmware that has them from outside.

    Raises:
        InputError: number, shape or dtype of the inputs is wrong.
        SimulationError: a device complained, the core trapped, or the program returned an error.
    """
    program = built.program
    check_arrays("input", program.inputs, inputs)
    data = [array.tobytes() for array in inputs]
    sizes = [tensor_bytes((info,)) for info in program.outputs]
    if built.native is not None:
        events: list[dict[str, Any]] = []
        raw = run_host(built.native, data, sizes, events=events, settings=settings)
        return RawResult(_arrays(program, raw), None, (), tuple(events), None)
    result_sizes = {f"htvm_run_output_{i}": size for i, size in enumerate(sizes)} | {_CODE: 4}
    if built.arm is not None:
        return _run_arm(built, data, result_sizes)
    assert built.firmware is not None
    places = dict(program.places)
    input_data = {f"htvm_run_input_{i}": value for i, value in enumerate(data) if i not in places}
    result = run_rv32(
        built.firmware,
        input_data if arena is None else {**input_data, "htvm_run_arena": arena},
        result_sizes,
        settings=settings,
        compiler=built.compiler,
        placed={address: data[i] for i, address in places.items()},
    )
    outputs = _outputs(built, result.outputs, result.marks)
    begin, end, spans = _step_spans(program, result.marks)
    return RawResult(
        outputs=outputs,
        cycles=end - begin,
        spans=spans,
        events=tuple(
            {**event, "start": event["start"] - begin, "end": event["end"] - begin}
            for event in result.events
        ),
        stack_used=result.stack_used,
    )


def _run_arm(built: Built, data: Sequence[bytes], result_sizes: Mapping[str, int]) -> RawResult:
    program, entry = built.program, f"{built.program.name}_run"
    assert built.arm is not None
    functions = [step.function or step.symbol for step in program.steps if step.kind != "copy"]
    input_data = {f"htvm_run_input_{i}": value for i, value in enumerate(data)}
    core = built.soc.host.arm
    if core is None:
        result = run_qemu_user(
            built.arm,
            input_data,
            result_sizes,
            entry=entry,
            kernels=functions,
            compiler=built.compiler,
        )
    elif built.platform == "qemu":
        result = run_qemu(built.arm, input_data, result_sizes, entry=entry, kernels=functions)
    else:
        result = run_arm(
            built.arm,
            input_data,
            result_sizes,
            entry=entry,
            kernels=functions,
            compiler=built.compiler,
        )
    outputs = _outputs(built, result.outputs, ())
    cycles, executed = None if core is None else core.cycles, result.executed
    flash = built.soc.memory(built.soc.code_memory).reads
    if program.streamed is not None:
        result = _with_rows_together(result)
    counted, known = _step_instructions(program, functions, result), iter(result.step_executed)
    # A device's model computes on the same core; what it takes is nobody's instructions.
    modelled = [
        span if step.kind == "layer" else None
        for step, span in zip(program.steps, counted, strict=True)
    ]
    apart = sum(span[1] - span[0] for span in modelled if span is not None)
    counted = tuple(
        None if at is not None else span for at, span in zip(modelled, counted, strict=True)
    )
    return RawResult(
        outputs=outputs,
        cycles=None,
        spans=(),
        events=(),
        stack_used=result.stack_used,
        instructions=None if result.instructions is None else result.instructions - apart,
        step_instructions=counted,
        estimated_cycles=(
            None if cycles is None or executed is None else estimate(executed, cycles, flash)
        ),
        step_estimates=tuple(
            None if cycles is None or span is None else estimate(next(known), cycles, flash)
            for span in (counted if executed is not None else ())
        ),
        core_instructions=result.core_instructions,
    )


def _with_rows_together(result: ArmRun) -> ArmRun:
    """Return a run in which the calls of the first kernel, one for each row, are one step."""
    (name, begin, _), *_ = result.steps
    rows = [at for at, step in enumerate(result.steps) if step[0] == name]
    total = sum(result.steps[at][2] - result.steps[at][1] for at in rows)
    others = [at for at in range(len(result.steps)) if at not in rows]
    known = result.step_executed
    return replace(
        result,
        steps=((name, begin, begin + total), *(result.steps[at] for at in others)),
        step_executed=known and (sum_of([known[at] for at in rows]), *(known[at] for at in others)),
    )


def _step_instructions(
    program: Program, functions: Sequence[str], result: ArmRun
) -> tuple[tuple[int, int] | None, ...]:
    if [name for name, _, _ in result.steps] != list(functions):
        raise SimulationError(
            f"the firmware called {len(result.steps)} kernels, the program has {len(functions)}",
            where=f"program '{program.name}'",
        )
    counted = iter(result.steps)
    spans: list[tuple[int, int] | None] = []
    for step in program.steps:
        spans.append(None if step.kind == "copy" else next(counted)[1:])
    return tuple(spans)


def _outputs(
    built: Built, results: Mapping[str, bytes], marks: Sequence[tuple[int, int]]
) -> tuple[Array, ...]:
    """Return the outputs that a firmware has left, unless its entry function returned an error."""
    code = int.from_bytes(results[_CODE], "little", signed=True)
    if code != 0:
        raise failure(built, code, marks)
    names = (f"htvm_run_output_{i}" for i in range(len(built.program.outputs)))
    return _arrays(built.program, [results[name] for name in names])


def _arrays(program: Program, raw: Sequence[bytes]) -> tuple[Array, ...]:
    # Copied: an array over bytes is read-only.
    return tuple(
        np.frombuffer(data, np.dtype(info.dtype)).reshape(tuple(info.shape)).copy()
        for info, data in zip(program.outputs, raw, strict=True)
    )


def _step_spans(
    program: Program, marks: Sequence[tuple[int, int]]
) -> tuple[int, int, tuple[tuple[int, int], ...]]:
    """Return begin and end of the run, and of each step relative to the run's begin."""
    cycle_of = {event: cycle for cycle, event in marks}
    try:
        begin, end = cycle_of[RUN_MARK], cycle_of[RUN_MARK + 1]
        spans = tuple(
            (cycle_of[2 * index] - begin, cycle_of[2 * index + 1] - begin)
            for index in range(len(program.steps))
        )
    except KeyError as error:
        raise SimulationError(
            f"the firmware never made mark {error}", where=f"program '{program.name}'"
        ) from error
    return begin, end, spans


def failure(built: Built, code: int, marks: Sequence[tuple[int, int]]) -> SimulationError:
    """Return the error for a program that returned an error code."""
    steps = [event // 2 for _, event in marks if event < RUN_MARK]
    where = f"{built.program.name} on {built.soc.name}"
    if steps:
        step = built.program.steps[steps[-1]]
        where += f", step {steps[-1]}, layer {step.layer} on {step.accelerator}"
    return SimulationError(f"{built.program.name}_run returned {code}", where=where)


def outcome(raw: RawResult, steps: Sequence[Step], soc: Soc) -> RunResult:
    """Return the outputs of a run, and its cycles by cause.

    Args:
        raw: the raw results of the run.
        steps: steps of the program.
        soc: the SoC, whose clock converts cycles to milliseconds.
    """
    timeline = EventLog(raw.events)
    spans: Sequence[tuple[int, int] | None] = raw.spans or [None] * len(steps)
    counts: Sequence[tuple[int, int] | None] = raw.step_instructions or [None] * len(steps)
    estimates: Sequence[tuple[int, int] | None] = raw.step_estimates or [None] * len(steps)
    layers = tuple(
        LayerResult(
            step.layer,
            step.accelerator,
            step.kind,
            None if span is None else span[1] - span[0],
            step.predicted_cycles,
            step.macs,
            None if span is None else timeline.causes(*span),
            None if span is None else span[0],
            None if count is None else count[1] - count[0],
            estimated,
        )
        for step, span, count, estimated in zip(steps, spans, counts, estimates, strict=True)
    )
    return RunResult(
        outputs=list(raw.outputs),
        cycles=raw.cycles,
        latency_ms=None if raw.cycles is None else soc.cycles_to_ms(raw.cycles),
        layers=layers,
        stack_bytes=raw.stack_used,
        units=timeline.busy(),
        causes=None if raw.cycles is None else timeline.causes(0, raw.cycles),
        timeline=() if raw.cycles is None else timeline.intervals(),
        instructions=raw.instructions,
        estimated_cycles=raw.estimated_cycles,
        core_instructions=raw.core_instructions,
    )
