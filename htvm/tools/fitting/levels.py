"""Demand and limit of every memory, from a program compiled up to its C."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING

from byoc_dory.errors import DependencyError, L2OverflowError, ToolchainError
from byoc_dory.memory.arena import ALIGNMENT, live_bytes, written_over
from byoc_dory.soc.base import round_up
from htvm.firmware.build import build_arm, build_qemu, build_rv32
from htvm.firmware.sizes import tensor_bytes
from htvm.tools.report.fit import LayerDemand, Level, MemoryItem, WeightRow

if TYPE_CHECKING:
    from byoc_dory.memory.arena import BufferUse
    from byoc_dory.region import Kernel
    from htvm.aot.program import Program
    from htvm.compiled import Compiled
    from htvm.firmware.sizes import Sizes
    from htvm.firmware.toolchain import Compiler


def l2_levels(compiled: Compiled, compiler: Compiler | None = None) -> tuple[Level, ...]:
    """Return the level of L2: constants, arena, code, stack, inputs and outputs.

    Where code and constants are in a memory of their own, that has a level before it.
    Everything is exact, except for the code where no compiler can make it (`code_size`).

    Raises:
        ToolchainError: the user's compiler failed.
    """
    program, soc = compiled.program, compiled.target.soc
    plan = program.plan
    stack = soc.host.stack if soc.host.stack_memory == "L2" else 0
    constants = constants_by_layer(compiled)
    size = code_size(compiled, compiler, sum(constants.values()))
    fixed = [MemoryItem(f"constants of {layer}", taken) for layer, taken in constants.items()]
    fixed.append(MemoryItem("code", size.code, size.said))
    parts = [
        MemoryItem("arena", plan.peak, _arena_note(program)),
        MemoryItem("stack", stack, "reserved"),
        MemoryItem("inputs and outputs", size.borders),
    ]
    bound = "no smaller arena exists" if plan.optimal else f"no arena is below {plan.bound:,} B"
    notes = [bound] if plan.peak else []
    if stack:
        notes.append(f"the stack as reserved, {stack:,} B; a run reports what it used")
    if compiled.by_rows:
        notes.append(f"by rows: {compiled.by_rows}")
    note = "; ".join(notes)
    ram = soc.memory("L2").size
    if soc.code_memory == "L2":
        return (_level("L2", ram, [*fixed, *parts], size.slack, note),)
    flash = soc.memory(soc.code_memory)
    return (
        _level(flash.name, flash.size, fixed, size.slack, ""),
        _level("RAM", ram, parts, 0, note),
    )


def _level(name: str, limit: int, parts: list[MemoryItem], slack: int, note: str) -> Level:
    used = sorted((part for part in parts if part.bytes), key=lambda part: -part.bytes)
    demand = sum(part.bytes for part in used)
    return Level(name, limit, demand, demand, slack, tuple(used), note)


def constants_by_layer(compiled: Compiled) -> dict[str, int]:
    """Return the bytes of constants in L2 by the layers that read them, with alignment gaps."""
    owner = {
        constant.name: kernel.layer_name
        for _, kernel in compiled.kernels.values()
        for constant in kernel.constants
    }
    for step in compiled.program.steps:
        for operand in step.args:
            if operand.kind == "constant":
                owner.setdefault(operand.name, step.layer)
    sizes: dict[str, int] = {}
    for constant in compiled.program.constants:
        if constant.memory:
            continue
        layer = owner.get(constant.name, constant.name)
        size = round_up(int(constant.data.nbytes), max(ALIGNMENT, constant.align))
        sizes[layer] = sizes.get(layer, 0) + size
    return sizes


def _fullest(program: Program) -> tuple[str, tuple[BufferUse, ...]]:
    """Return the step with most live bytes in the arena: its layer, and the buffers by size."""

    def live(step: int) -> list[BufferUse]:
        return [use for use in program.buffers if use.first <= step <= use.last]

    counts = live_bytes(program.buffers, len(program.steps))
    step = counts.index(max(counts))
    buffers = sorted(live(step), key=lambda use: -use.bytes)
    return program.steps[step].layer, tuple(buffers)


def too_full(program: Program, allowed: int) -> tuple[BufferUse, ...]:
    """Return the buffers live at steps with more than ``allowed`` bytes, largest first."""
    counts = live_bytes(program.buffers, len(program.steps))
    steps = [step for step, count in enumerate(counts) if count > allowed]
    full_buffers = [
        use for use in program.buffers if any(use.first <= step <= use.last for step in steps)
    ]
    # If no single step exceeds the limit, holes between buffers do: shrinking any of them may close
    # one.
    return tuple(sorted(full_buffers or program.buffers, key=lambda use: -use.bytes))


def _arena_note(program: Program) -> str:
    if not program.buffers:
        return ""
    layer, buffers = _fullest(program)
    over = written_over(program.plan, program.buffers)
    notes = [f" over {over[use.name]}" if use.name in over else "" for use in buffers]
    words = ", ".join(
        f"{use.name} {use.bytes:,} B{note}" for use, note in zip(buffers[:3], notes, strict=False)
    )
    return f"fullest at {layer}: {words}" + (", ..." if len(buffers) > 3 else "")


# ------------------------------------------------------------------------------ accelerators


def layer_demands(compiled: Compiled, budget: int | None) -> tuple[LayerDemand, ...]:
    """Return each accelerated layer's demand on L1 and on the weight memory.

    A layer in several parts has that of the part that takes most.

    Args:
        compiled: the model compiled with all of L1, or with this budget.
        budget: bytes of L1 that layers may use; ``None`` for all.  If the program was compiled with
            another budget, its plan does not count.
    """
    is_planned = budget == compiled.options.tiling.l1_budget
    budget = compiled.tiling.l1_budget if is_planned else budget
    demands: dict[str, LayerDemand] = {}
    for symbol, (code, kernel) in compiled.kernels.items():
        if kernel.layer is not None:
            used = code.l1_used.get(symbol)
            found = _layer_demand(compiled, kernel, used, budget, is_planned)
            known = demands.get(found.layer, found)
            demands[found.layer] = max(known, found, key=_taken)
    return tuple(demands.values())


def _taken(demand: LayerDemand) -> tuple[int, int]:
    return demand.l1_planned or 0, demand.l1_whole


def _layer_demand(
    compiled: Compiled, kernel: Kernel, used: int | None, budget: int | None, is_planned: bool
) -> LayerDemand:
    assert kernel.layer is not None and kernel.plan is not None
    soc = compiled.target.soc
    accelerator = compiled.home(kernel.layer.name, kernel.accelerator)
    problem = accelerator.problem(
        soc, kernel.layer, replace(compiled.options.tiling, l1_budget=budget)
    )
    solution = kernel.plan.solution
    least_in, least_out, least_weights = problem.memory(problem.smallest)
    whole_in, whole_out, whole_weights = problem.memory(problem.whole)
    least, whole = least_in + least_out, whole_in + whole_out
    once, column = problem.fixed_bytes, problem.fixed.column
    weights: int | None = solution.l1_weights
    if problem.weights.in_l1:
        # There is no separate memory for weights.
        least, whole = least + least_weights, whole + whole_weights
        least_weights = whole_weights = weights = 0
    return LayerDemand(
        layer=kernel.layer_name,
        accelerator=kernel.accelerator,
        l1_planned=used if is_planned else None,
        l1_least=problem.buffering * least + once + column * problem.smallest.x,
        l1_whole=whole + once + column * problem.whole.x,
        l1_limit=problem.l1_limit,
        tile=",".join(str(size) for size in astuple(solution.tile)) if is_planned else "",
        weights_planned=weights if is_planned else None,
        weights_least=problem.buffering * least_weights,
        weights_whole=whole_weights,
        weights_limit=problem.weights.limit,
    )


def weight_levels(compiled: Compiled) -> tuple[Level, ...]:
    """Return the levels of the memories that keep whole weights of layers, and are in use."""
    plan, levels = compiled.weights, []
    for name, size in plan.capacity.items():
        inside = sorted((e for e in plan.layers if e.memory == name), key=lambda e: -e.bytes)
        if not inside:
            continue
        used = sum(entry.bytes for entry in inside)
        parts = tuple(MemoryItem(f"weights of {entry.layer}", entry.bytes) for entry in inside)
        levels.append(Level(name, size, used, used, parts=parts, note=_choice(compiled)))
    return tuple(levels)


def _choice(compiled: Compiled) -> str:
    """Return how the layers were chosen whose weights are kept; empty if all are."""
    plan = compiled.weights
    if not plan.loaded:
        return ""
    least = "no choice costs less" if plan.bound == plan.cost else f"at least {plan.bound:,}"
    return (
        f"weights of {len(plan.layers)} layers do not all fit; loading those of "
        f"{len(plan.loaded)} costs {plan.cost:,} cycles, {least}"
    )


def kept_weights(compiled: Compiled) -> tuple[WeightRow, ...]:
    """Return where the weights of layers are, if not all of them are kept."""
    plan = compiled.weights
    if not plan.loaded:
        return ()
    return tuple(
        WeightRow(entry.layer, entry.accelerator, entry.bytes, entry.memory, entry.saved_cycles)
        for entry in plan.layers
    )


def layer_levels(compiled: Compiled, demands: Sequence[LayerDemand]) -> tuple[Level, ...]:
    """Return the levels of L1 and of each accelerator's weight memory, which layers use in turn."""
    soc = compiled.target.soc
    levels = []
    for memory in dict.fromkeys(soc.accelerator(d.accelerator).l1 for d in demands):
        users = [d for d in demands if soc.accelerator(d.accelerator).l1 == memory]
        levels.append(
            _shared(
                memory,
                min(d.l1_limit for d in users),
                [(d.layer, d.l1_least, d.l1_planned, d.l1_whole) for d in users],
                compiled.state.text.rstrip("."),
            )
        )
    for name in dict.fromkeys(d.accelerator for d in demands):
        users = [d for d in demands if d.accelerator == name and d.weights_whole]
        if users:
            # For an array, the layer determines how many cells there are: the fullest layer counts.
            tightest = max(users, key=lambda d: d.weights_least / d.weights_limit)
            levels.append(
                _shared(
                    f"{name}: weights",
                    tightest.weights_limit,
                    [(d.layer, d.weights_least, d.weights_planned, d.weights_whole) for d in users],
                )
            )
    return tuple(levels)


def _shared(
    memory: str, limit: int, users: list[tuple[str, int, int | None, int]], more: str = ""
) -> Level:
    """Return the level of a memory that users need one at a time: (name, least, planned, whole)."""
    plans = [planned for _, _, planned, _ in users if planned is not None]
    order = sorted(users, key=lambda user: (-(user[2] or user[1]), -user[3]))
    largest = max(users, key=lambda user: user[3])
    tiled = sum(whole > limit for _, _, _, whole in users)
    note = f"the largest untiled layer, {largest[0]}, is {largest[3]:,} B"
    if tiled:
        note += f"; {tiled} of {len(users)} layers do not fit whole and are tiled"
    note += f"; {more}" if more else ""
    return Level(
        memory=memory,
        limit=limit,
        demand=max(least for _, least, _, _ in users),
        planned=max(plans) if len(plans) == len(users) else None,
        parts=tuple(
            MemoryItem(name, least if planned is None else planned)
            for name, least, planned, _ in order
        ),
        note=note,
    )


TOLERANCE = 0.75
"""Largest relative error of the estimate."""

WORD_BYTES = 4.5
"""Estimated bytes of code per word of generated C."""

_RESULT = 4  # bytes of the code that a run returns
_ROOMY = 1 << 26
"""Bytes of each memory where the program exceeds its own."""


@dataclass(frozen=True)
class CodeSize:
    """What a program takes beside its constants, arena and stack, in bytes.

    Attributes:
        code: machine code, with the read-only data that the program's list of constants lacks.
        borders: inputs, outputs and the runtime's variables.
        slack: largest error of the code; 0 if a compiler made it.
        said: where the number comes from.
    """

    code: int
    borders: int
    slack: int
    said: str


def code_size(compiled: Compiled, compiler: Compiler | None, constants: int) -> CodeSize:
    """Compile and link a program, and return what that takes.

    Without a compiler of the user's, a program that ziglang's cannot compile, such as one for a
    SoC whose drivers are not written yet, is estimated from the words of its C, without the
    functions of the SoC.

    Args:
        compiled: the program.
        compiler: the user's; ziglang's clang if not given.
        constants: bytes of the program's constants in the same memory, with gaps.

    Raises:
        ToolchainError: the user's compiler failed.
    """
    try:
        sizes = _measured(compiled, compiler)
    except (DependencyError, ToolchainError) as error:
        if compiler is not None:
            raise
        program = compiled.program
        words = len(f"{program.layers_source} {program.cpu_source}".split())
        code = math.ceil(WORD_BYTES * words)
        tensors = [tensor_bytes((info,)) for info in (*program.l2_inputs, *program.outputs)]
        borders = sum(round_up(size, ALIGNMENT) for size in (*tensors, _RESULT))
        said = f"estimated from the words of its C, +-{TOLERANCE:.0%}: {error.what}"
        return CodeSize(code, borders, math.ceil(TOLERANCE * code), said)
    code = sizes.code + sizes.constants - constants
    vendors = [core.vendor_driver for core in compiled.target.accelerators]
    drivers = [driver.title for driver in dict.fromkeys(vendors) if driver is not None]
    without = f", without {' and '.join(drivers)}" if drivers else ""
    said = f"and its own constants, by {sizes.compiler}{without}"
    return CodeSize(code, sizes.io + sizes.other, 0, said)


def _measured(compiled: Compiled, compiler: Compiler | None) -> Sizes:
    """Return the sizes of the linked program, in larger memories than the target's if need be."""
    soc = compiled.target.soc
    build = build_rv32 if soc.host.arm is None else build_arm
    if soc.host.is_in_user_mode:
        build = build_qemu
    try:
        return build(compiled.program, soc, compiler).sizes
    except L2OverflowError:
        memories = tuple(
            replace(memory, size=max(memory.size, _ROOMY))
            if memory.name in ("L2", soc.code_memory)
            else memory
            for memory in soc.memories
        )
        return build(compiled.program, replace(soc, memories=memories), compiler).sizes
