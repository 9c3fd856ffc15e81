"""Changes that would make a model fit; every change is tried, not guessed.

Changes of options and targets are planned: the whole model is compiled again, up to its C. Changes
of a layer's channels are computed from the packed sizes of the changed layer.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from byoc_dory.codegen import generate
from byoc_dory.errors import DefectError, HtvmError
from byoc_dory.layers import Convolution, Dense, Weighted
from byoc_dory.memory.arena import plan_memory
from byoc_dory.region import Region
from byoc_dory.soc.registry import board_target, resolve, targets
from byoc_dory.soc.schemes import TernaryScheme
from byoc_dory.verdict import CPU
from htvm.tools.explain.variants import is_resizable, resized
from htvm.tools.fitting.levels import constants_by_layer, too_full
from htvm.tools.report.fit import Answer, Change, Level

if TYPE_CHECKING:
    from byoc_dory.layers import Layer
    from byoc_dory.memory.arena import BufferUse
    from byoc_dory.options import ScheduleKind
    from byoc_dory.soc.base import Accelerator
    from htvm.build_options import BuildOptions
    from htvm.compiled import Compiled

Attempt = Callable[[str, "BuildOptions"], "tuple[Answer, tuple[Level, ...]]"]
"""Plans the model for a target with options; returns whether it fits, and its levels."""

_STEP = 16


def nearest_first(changes: list[Change]) -> tuple[Change, ...]:
    """Sort changes that make the model fit before the others, each in their order."""
    order = {"yes": 0, "close": 1, "no": 2}
    return tuple(sorted(changes, key=lambda change: order[change.fits]))


# ------------------------------------------------------------------------------ L2


def changes_for_l2(compiled: Compiled, level: Level, attempt: Attempt) -> Iterator[Change]:
    """Yield other schedules, other targets, and fewer channels where most bytes are."""
    options = compiled.options
    if compiled.target.accelerators:
        other: ScheduleKind = "published" if options.tiling.overlapping else "overlapped"
        tiling = replace(options.tiling, schedule=other)
        yield _planned_change(
            compiled, f"use the {other} schedule (--schedule {other})",
            level, attempt, compiled.target.name, replace(options, tiling=tiling),
        )  # fmt: skip
    board = _larger_board(compiled, level)
    if board is not None:
        yield _planned_change(
            compiled, f"use the board {board} (--board {board})", level, attempt,
            board_target(board), replace(options, l2_bytes=None),
        )  # fmt: skip
    same_chip, larger = _other_targets(compiled)
    # A policy names this target's accelerators, and the budget is for its L1.
    elsewhere = replace(options, policy=None, tiling=replace(options.tiling, l1_budget=None))
    for name in same_chip:
        what = f"build for {name} (--target {name})"
        yield _planned_change(compiled, what, level, attempt, name, elsewhere)
    for name in larger:
        what = f"build for {name} (--target {name})"
        change = _planned_change(
            compiled, what, level, attempt, name, replace(elsewhere, l2_bytes=None)
        )
        yield change
        if change.fits == "yes":
            break  # the others are larger still
    # Another network comes last: it must be trained again.
    if level.memory != "RAM":
        yield from _fewer_channels(compiled, level)
    if level.memory != compiled.target.soc.code_memory or level.memory == "L2":
        yield from _smaller_maps(compiled, level)


def _planned_change(
    compiled: Compiled,
    what: str,
    level: Level,
    attempt: Attempt,
    target: str,
    options: BuildOptions,
) -> Change:
    soc = resolve(target, l2_bytes=options.l2_bytes).soc
    least_weights, code_bytes = _least_weights(compiled, target), soc.memory(soc.code_memory).size
    if least_weights > code_bytes:
        # Planning a network that is much too large takes as long as building it.
        said = "the weights alone take more"
        return Change(what, soc.code_memory, least_weights, code_bytes, "no", "computed", said)
    try:
        fits, levels = attempt(target, options)
    except DefectError:
        raise
    except HtvmError as error:
        return Change(what, level.memory, None, level.limit, "no", "planned", error.what)
    planned_level = next((entry for entry in levels if entry.memory == level.memory), None)
    if planned_level is None:
        return Change(what, level.memory, None, level.limit, fits, "planned")
    return Change(what, level.memory, planned_level.demand, planned_level.limit, fits, "planned")


def _least_weights(compiled: Compiled, target: str) -> int:
    """Return bytes that a target's constants take at least; 0 if it keeps weights elsewhere."""
    accelerators = resolve(target).accelerators
    if any(entry.weight_memories for entry in accelerators):
        return 0
    # Equal weights are stored once, ternary ones in two bits.
    weights = {
        hashlib.sha256(layer.weight.tobytes()).digest(): int(layer.weight.size)
        for layer in compiled.dispatch.layers.values()
        if isinstance(layer, Weighted)
    }
    ternary = any(isinstance(entry.scheme, TernaryScheme) for entry in accelerators)
    return sum(weights.values()) // (4 if ternary else 1)


def _other_targets(compiled: Compiled) -> tuple[list[str], list[str]]:
    """Return targets with other accelerators of the same SoC, and one of each SoC with more L2, the
    smallest first."""
    own, limit = compiled.target, compiled.target.soc.memory("L2").size
    cores = [entry.name for entry in own.accelerators]
    same_chip, larger, seen_names = [], [], set[str]()
    for name in targets():
        target = resolve(name)
        if target.soc.name == own.soc.name:
            others = [entry.name for entry in target.accelerators]
            if target.soc.host == own.soc.host and others != cores:
                same_chip.append(name)
        elif target.soc.host.platform != own.soc.host.platform:
            continue  # another instruction set does not help a program that is too large
        elif any(parameter.name == "board" for parameter in target.soc.parameters):
            continue  # without a board its memories are only large
        elif target.soc.memory("L2").size > limit and target.soc.name not in seen_names:
            seen_names.add(target.soc.name)
            larger.append(name)
    return same_chip, sorted(larger, key=lambda name: resolve(name).soc.memory("L2").size)


def _larger_board(compiled: Compiled, level: Level) -> str | None:
    """Return the board with the least memory that is enough, one with the same core if there is.

    ``None`` if there is none.
    """
    soc, need = compiled.target.soc, level.demand + level.slack
    memory = "L2" if level.memory == "RAM" else level.memory
    # What the other memory needs at least; whether it is enough is planned.
    demands = {soc.code_memory: compiled.program.constant_bytes, "L2": compiled.program.plan.peak}
    demands[memory] = need
    boards = []
    for parameter in soc.parameters:
        if parameter.name != "board":
            continue
        for choice in parameter.choices:
            other = soc.designed({"board": choice})
            if choice == parameter.default or other.host.platform != soc.host.platform:
                continue
            sizes = {name: other.memory(name).size for name in demands}
            if all(sizes[name] >= demands[name] for name in demands):
                rank = (other.host != soc.host, sizes[memory], sum(sizes.values()))
                boards.append((*rank, str(choice)))
    return min(boards)[-1] if boards else None


def _fewer_channels(compiled: Compiled, level: Level) -> Iterator[Change]:
    """Yield the smallest reduction of output channels, for the layer with most constants."""
    sizes = constants_by_layer(compiled)
    known = compiled.dispatch.layers
    candidates = [name for name in sizes if isinstance(known.get(name), Convolution | Dense)]
    if not candidates:
        return
    name = max(candidates, key=lambda layer: sizes[layer])
    layer, excess = known[name], level.demand + level.slack - level.limit
    weigh = _weigher(compiled, layer, sizes[name])
    counts = [k for k in range(layer.K - layer.K % _STEP, 0, -_STEP) if k < layer.K] or [1]
    # The smallest number of channels shows whether it can be enough at all.
    if sizes[name] - weigh(counts[-1]) < excess:
        saved = sizes[name] - weigh(counts[-1])
        yield _channels(layer, counts[-1], saved, level, "even this is not enough by itself")
        return
    enough = _first(counts, lambda k: sizes[name] - weigh(k) >= excess)
    saved = sizes[name] - weigh(enough)
    yield _channels(layer, enough, saved, level, "layers that read it shrink as well")


def _channels(layer: Layer, k: int, saved: int, level: Level, note: str) -> Change:
    demand = level.demand - saved
    fits = replace(level, demand=demand).fits
    return Change(
        f"give {layer.name} {k} instead of {layer.K} output channels "
        f"(-{saved:,} B of its constants)",
        level.memory, demand, level.limit, fits, "computed", note,
    )  # fmt: skip


def _weigher(compiled: Compiled, layer: Layer, now: int) -> Callable[[int], int]:
    """Return a function from a number of output channels to the bytes of the layer's constants."""
    place = compiled.dispatch.placement[layer.name]
    if place == CPU or not is_resizable(layer):
        # The CPU's weights and biases are stored one after another.
        return lambda k: math.ceil(now * k / layer.K)
    accelerator = compiled.target.soc.accelerator(place)
    return lambda k: _packed(accelerator, resized(layer, K=k), compiled)


def _packed(accelerator: Accelerator, layer: Layer, compiled: Compiled) -> int:
    """Return the bytes of the constants of a layer that the accelerator runs alone."""
    form = accelerator.scheme.form_of(layer)
    inputs = tuple(replace(tensor, layout="CHW") for tensor in form.inputs)
    output = replace(form.output, layout="CHW")
    region = Region("alone", (replace(form, inputs=inputs, output=output),), inputs, (output,))
    code = generate(region, compiled.cost, "alone", accelerator.name)
    return sum(int(entry.data.nbytes) for kernel in code.kernels for entry in kernel.constants)


def _first(values: list[int], holds: Callable[[int], bool]) -> int:
    """The first value for which the condition holds; it must then hold for all later ones."""
    low, high = 0, len(values) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(values[middle]) else (middle + 1, high)
    return values[low]


def _smaller_maps(compiled: Compiled, level: Level) -> Iterator[Change]:
    """Yield the smallest reduction of the tensors at steps that exceed L2."""
    program, excess = compiled.program, level.demand + level.slack - level.limit
    allowed = program.plan.peak - excess
    if allowed <= 0:
        return
    large = too_full(program, allowed)
    names = {use.name for use in large}

    def peak(percent: int) -> int:
        return plan_memory(
            [
                replace(use, bytes=use.bytes * (100 - percent) // 100) if use.name in names else use
                for use in program.buffers
            ]
        ).peak

    percent = _first(list(range(1, 101)), lambda value: peak(value) <= allowed)
    demand = level.demand - program.plan.peak + peak(percent)
    yield Change(
        f"make what lies in the arena at its fullest {percent} % smaller ({_listing(large)}): "
        "fewer channels, or a smaller input",
        level.memory, demand, level.limit, replace(level, demand=demand).fits, "computed",
    )  # fmt: skip


# ------------------------------------------------------------------------------ L1


def changes_for_l1(
    compiled: Compiled, level: Level, lacking: tuple[str, ...], attempt: Attempt
) -> Iterator[Change]:
    """Yield a larger budget, the CPU for layers that lack memory, and fewer channels.

    Args:
        compiled: the model compiled with all of L1.
        level: the level of L1, with the budget.
        lacking: layers whose smallest tile exceeds the budget.
        attempt: plans a variant.
    """
    name, options = compiled.target.name, compiled.options
    # The compiled model may use all of L1; the variants are for the budget.
    given = replace(options, tiling=replace(options.tiling, l1_budget=level.limit))
    larger = replace(options, tiling=replace(options.tiling, l1_budget=level.demand))
    what = f"raise the L1 budget to {level.demand:,} B (--l1 {level.demand})"
    yield _planned_change(compiled, what, level, attempt, name, larger)
    places: dict[str, str] = dict(compiled.planned.places)
    places.update(dict.fromkeys(lacking, CPU))
    what = f"leave {_listing(lacking)} to the CPU (htvm.fit(..., policy={{layer: 'cpu'}}))"
    yield _planned_change(compiled, what, level, attempt, name, replace(given, policy=places))
    for layer in lacking:
        yield from _narrower(compiled, compiled.dispatch.layers[layer], level)


def _narrower(compiled: Compiled, layer: Layer, level: Level) -> Iterator[Change]:
    """Yield the smallest reduction of input channels with which the smallest tile fits."""
    if not is_resizable(layer) or layer.groups > 1:
        return
    accelerator = compiled.target.soc.accelerator(compiled.dispatch.placement[layer.name])
    options = replace(compiled.options.tiling, l1_budget=level.limit)

    def least(channels: int) -> int:
        form: Any = accelerator.scheme.form_of(resized(layer, C=channels))
        problem = accelerator.problem(compiled.target.soc, form, options)
        used_in, used_out, _ = problem.memory(problem.smallest)
        return problem.buffering * (used_in + used_out)

    counts = list(range(layer.C - 1, 0, -1))
    if not counts or least(counts[-1]) > level.limit:
        return
    enough = _first(counts, lambda channels: least(channels) <= level.limit)
    yield Change(
        f"give {layer.name} {enough} instead of {layer.C} input channels",
        level.memory, least(enough), level.limit, "yes", "computed",
        "for this layer; layers that write its input shrink as well",
    )  # fmt: skip


def _listing(entries: Sequence[str | BufferUse]) -> str:
    words = [
        thing if isinstance(thing, str) else f"{thing.name} {thing.bytes:,} B"
        for thing in entries[:3]
    ]
    return ", ".join(words) + (f" and {len(entries) - 3} more" if len(entries) > 3 else "")
