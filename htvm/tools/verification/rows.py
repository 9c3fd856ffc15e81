"""The rows of chains: memory contents when each was made, compared with the reference.

A chain is one step, and keeps a row only as long as somebody reads it.  So its rows are recorded
when the functions return that make them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from htvm.aot.entry import place
from htvm.errors import SimulationError
from htvm.sim.look import Call, Range
from htvm.tools.verification.compare import differing, largest_difference, origins
from htvm.tools.verification.observe import axes_of
from htvm.tools.verification.types import Difference, RowAt, StepCheck
from patterns.rows import has_rows

if TYPE_CHECKING:
    from byoc_dory.layers import Array
    from htvm.aot.row_calls import RowMaker
    from htvm.compiled import Compiled
    from htvm.tools.verification.observe import ObservableMachine, Observed


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a tensor that a call makes.

    Attributes:
        step: index of the step.
        maker: what makes them.
        first: number of the first one.
        count: how many there are; 0 if nothing is compared, such as padding.
        tensor: the reference's values of the whole tensor.
        call: the call, with the place of the rows.
    """

    step: int
    maker: RowMaker
    first: int
    count: int
    tensor: Array
    call: Call

    @property
    def expected(self) -> Array:
        """The reference's values, as (row, column, channel)."""
        lines: Array = _lines(self.tensor)[self.first : self.first + self.count]
        return lines

    @property
    def offsets(self) -> Array:
        """Offset of each element from the first byte, in bytes."""
        return _offsets(self.maker, self.expected)

    def values(self, data: bytes) -> Array:
        """Return the values in what was recorded."""
        expected = self.expected
        places = self.offsets.reshape(-1, 1) + np.arange(expected.dtype.itemsize)
        found = np.frombuffer(data, np.uint8)[places].reshape(-1).view(expected.dtype)
        return found.reshape(expected.shape)


@dataclass(frozen=True, eq=False)
class MadeRows:
    """The same rows in a run.

    Attributes:
        rows: the rows.
        values: their values when the call returned, as (row, column, channel).
        cycle: the cycle of that.
    """

    rows: Rows
    values: Array
    cycle: int

    @cached_property
    def wrong(self) -> Array:
        """Which elements differ."""
        return differing(self.values, self.rows.expected)


def _lines(tensor: Array) -> Array:
    """Return a tensor as (row, column, channel); one without rows is a single pixel."""
    shape = tensor.shape[1:3] if has_rows(tensor.shape) else (1, 1)
    return tensor.reshape(*shape, -1)


def _offsets(maker: RowMaker, rows: Array) -> Array:
    y, x, c = np.ogrid[tuple(slice(size) for size in rows.shape)]
    offsets: Array = y * maker.pitch + x * maker.pixel + c * rows.dtype.itemsize
    return offsets


def rows_of(
    compiled: Compiled, machine: ObservableMachine, reference: Mapping[str, Array]
) -> tuple[Rows, ...]:
    """Return the rows that chains make, in the order of the calls that make them.

    Args:
        compiled: the built model.
        machine: the machine that runs it.
        reference: results of all operators by name, in the integer form's layout.
    """
    chains = {kernel.symbol: kernel.rows for kernel in compiled.cpu_kernels}
    symbols = machine.firmware.symbols
    found = []
    for index, step in enumerate(compiled.program.steps):
        rows = chains.get(step.symbol)
        if rows is None:
            continue
        for number, first, at, count in rows.calls:
            maker = rows.makers[number]
            if maker.function not in symbols:
                continue  # the only function of its chain, which has become part of it
            tensor = reference.get(maker.tensor)
            if tensor is None or not 0 <= first < len(_lines(tensor)):
                tensor, count = np.zeros((1, 1, 1, 1), np.int8), 0
            offsets = _offsets(maker, _lines(tensor)[first : first + count])
            size = int(offsets.max()) + tensor.dtype.itemsize if count else 0
            start = machine.place(step.args[maker.parameter]) + maker.start + at * maker.pitch
            call = Call(symbols[maker.function].address, Range(start, size))
            found.append(Rows(index, maker, first, count, tensor, call))
    return tuple(found)


def made_rows(rows: Sequence[Rows], observed: Observed) -> tuple[MadeRows, ...]:
    """Return the rows that were made in a run that recorded their calls.

    Raises:
        SimulationError: a call did not come.
    """
    returns = observed.seen.returns  # of the calls that were made, in their order
    if len(returns) < len(rows):
        missing = rows[len(returns)]
        raise SimulationError(
            f"row {missing.first} of '{missing.maker.tensor}' was not made in its turn",
            where=f"function '{missing.maker.function}'",
            hint="build without memory=, or report it as a defect",
        )
    return tuple(
        MadeRows(each, each.values(data), cycle)
        for each, (cycle, data) in zip(rows, returns, strict=True)
    )


def checks_of(made: Sequence[MadeRows], step: StepCheck) -> tuple[StepCheck, ...]:
    """Return a check of each function whose rows are compared in a step, in their order."""
    of_layers: dict[str, list[MadeRows]] = {}
    for each in made:
        if each.rows.step == step.index and each.rows.count:
            of_layers.setdefault(each.rows.maker.layer, []).append(each)
    return tuple(
        StepCheck(
            step.index, layer, step.place, own[0].rows.maker.tensor,
            sum(each.wrong.size for each in own),
            sum(int(each.wrong.sum()) for each in own),
            max(largest_difference(each.values, each.rows.expected) for each in own),
        )
        for layer, own in of_layers.items()
    )  # fmt: skip


def row_difference(
    machine: ObservableMachine, observed: Observed, made: Sequence[MadeRows], found: MadeRows
) -> Difference:
    """Describe the first wrong element of rows, which were wrong when they were made.

    Args:
        machine: the machine and its program.
        observed: its run.
        made: all rows that were made.
        found: those of them.
    """
    rows, step = found.rows, machine.program.steps[found.rows.step]
    same = [each for each in made if each.rows.maker == rows.maker]
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(found.wrong)), found.wrong.shape))
    number = int(np.ravel_multi_index((rows.first + at[0], *at[1:]), _lines(rows.tensor).shape))
    address = rows.call.area.address + int(rows.offsets[at])
    return Difference(
        step=rows.step,
        layer=rows.maker.layer,
        place=place(step),
        tensor=rows.maker.tensor,
        overwritten=False,
        axes=axes_of("NHWC", rows.tensor.ndim),
        element=tuple(int(i) for i in np.unravel_index(number, rows.tensor.shape)),
        value=found.values[at].item(),
        expected=rows.expected[at].item(),
        different=sum(int(each.wrong.sum()) for each in same),
        elements=int(rows.tensor.size),
        memory="L2",
        address=address,
        row=RowAt(
            number=rows.first + at[0],
            rows=len(_lines(rows.tensor)),
            rows_different=sum(int(each.wrong.any(axis=(1, 2)).sum()) for each in same),
            function=rows.maker.function,
        ),
        origins=origins(machine, observed, address, rows.tensor.dtype.itemsize, found.cycle),
    )
