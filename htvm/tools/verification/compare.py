"""Comparing memory contents with the reference after each step; the first difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from byoc_dory.tileloop.elements import elements_of_tiles
from htvm.aot.entry import place
from htvm.tools.verification.origin import origins
from htvm.tools.verification.types import Difference, StepCheck, TileAt

if TYPE_CHECKING:
    from byoc_dory.tileloop.program import LoopTile, TileProgram
    from htvm.aot.program import Step
    from htvm.tools.verification.observe import ObservableMachine, Observed
    from htvm.tools.verification.results import Result
    from htvm.tools.verification.types import Number

Array: TypeAlias = npt.NDArray[Any]


def compare_steps(
    machine: ObservableMachine, observed: Observed, results: Sequence[Result]
) -> tuple[tuple[StepCheck, ...], tuple[Result, int] | None]:
    """Compare all steps.

    Returns:
        One check per step, and the first wrong tensor with the step after which it is wrong: the
            step
        that wrote it, or a later one that overwrote it while it was still needed.
    """
    own = {result.step: result for result in results}
    checks: list[StepCheck] = []
    first: tuple[Result, int] | None = None
    living: list[Result] = []
    for index, step in enumerate(machine.program.steps):
        living = [result for result in living if result.last >= index]
        if first is None:
            spoilt = (r for r in living if _wrong(machine, observed, r, index).any())
            found = next(spoilt, None)
            first = None if found is None else (found, index)
        result = own.get(index)
        checks.append(_check(machine, observed, index, step, result))
        if result is not None and checks[-1].different == 0:
            living.append(result)
        elif result is not None and first is None:
            first = (result, index)
    return tuple(checks), first


def _wrong(machine: ObservableMachine, observed: Observed, result: Result, step: int) -> Array:
    """Return which elements of a tensor are wrong at the end of a step."""
    found = observed.values(result, machine.address(result), step)
    wrong: Array = found.reshape(-1).view(np.uint8) != _bytes(result.expected)
    return wrong.reshape(result.expected.size, -1).any(axis=1).reshape(result.expected.shape)


def _bytes(values: Array) -> Array:
    return np.asarray(values, order="C").reshape(-1).view(np.uint8)


def _check(
    machine: ObservableMachine, observed: Observed, index: int, step: Step, result: Result | None
) -> StepCheck:
    if result is None:
        return StepCheck(index, step.layer, place(step), "")
    wrong = _wrong(machine, observed, result, index)
    largest: Number = 0
    if wrong.any():
        found = observed.values(result, machine.address(result), index)
        wide = np.float64 if found.dtype.kind == "f" else np.int64
        largest = _number(np.abs(found[wrong].astype(wide) - result.expected[wrong]).max())
    return StepCheck(
        index, step.layer, place(step), result.tensor, wrong.size, int(wrong.sum()), largest
    )


def first_difference(
    machine: ObservableMachine, observed: Observed, result: Result, step: int
) -> Difference:
    """Describe the first element of a tensor that is wrong at the end of a step."""
    wrong = _wrong(machine, observed, result, step)
    address = machine.address(result)
    found = observed.values(result, address, step)
    within = [] if result.program is None else _wrong_tiles(result.program, result.offsets, wrong)
    first = within[0][1] if within else wrong
    element = tuple(int(i) for i in np.unravel_index(int(np.argmax(first)), wrong.shape))
    where = address + int(result.offsets[element])
    program_step = machine.program.steps[step]
    return Difference(
        step=step,
        layer=program_step.layer,
        place=place(program_step),
        tensor=result.tensor,
        overwritten=step != result.step,
        axes=result.axes,
        element=element,
        value=_number(found[element]),
        expected=_number(result.expected[element]),
        different=int(wrong.sum()),
        elements=int(wrong.size),
        memory=result.memory,
        address=where,
        tile=within[0][0] if within else None,
        tiles_different=len(within),
        origins=origins(machine, observed, where, result.expected.dtype.itemsize, step),
    )


def _number(value: Any) -> Number:
    number: Number = value.item()
    return number


def _wrong_tiles(program: TileProgram, offsets: Array, wrong: Array) -> list[tuple[TileAt, Array]]:
    """The tiles that contain wrong elements, in the order of execution, with these elements."""
    found = []
    for tile, made in elements_of_tiles(program, offsets):
        if (wrong & made).any():
            found.append((_tile_at(program, tile, made), wrong & made))
    return found


def _tile_at(program: TileProgram, tile: LoopTile, made: Array) -> TileAt:
    """Return a tile, with the bounding box of its elements."""
    corners = [(int(axis.min()), int(axis.max())) for axis in np.nonzero(made)]
    return TileAt(
        number=tile.number,
        tiles=program.tiles,
        index=tile.indices,
        start=tuple(low for low, _ in corners),
        size=tuple(high - low + 1 for low, high in corners),
    )
