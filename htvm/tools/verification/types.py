"""The findings of a verification, as frozen values and as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from htvm.firmware.lines import SourceLine
from htvm.shown import Shown
from htvm.tools.plots.bars import Bar, bar_figure
from htvm.tools.plots.colours import unit_class
from htvm.tools.report.table import wrapped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Difference",
    "GoldenCheck",
    "Number",
    "Origin",
    "RowAt",
    "SourceLine",
    "StepCheck",
    "Stray",
    "TileAt",
    "Verification",
]

Number: TypeAlias = "int | float"


@dataclass(frozen=True)
class Origin:
    """The writer of an element.

    Attributes:
        what: a description, e.g. "stored by the host", "computed by trigger 5 of digital".
        cycle: cycle of the store or command, counted from the entry function's call.
        place: the line of generated C that did it or led to it; None if there is no such line.
        inner: the line of runtime or driver that did it; None if that is ``place``.
        hart: number of the hart that stored it; None for devices.
    """

    what: str
    cycle: int
    place: SourceLine | None
    inner: SourceLine | None = None
    hart: int | None = None


@dataclass(frozen=True)
class TileAt:
    """The tile of a layer that an element belongs to.

    Attributes:
        number: its number in the order of execution, from 0.
        tiles: number of tiles of the layer.
        index: position along each loop, outermost first, in tiles.
        start: first output channel, row and column; for a vector, the first channel.
        size: number of output channels, rows and columns.
    """

    number: int
    tiles: int
    index: tuple[int, ...]
    start: tuple[int, ...]
    size: tuple[int, ...]


@dataclass(frozen=True)
class RowAt:
    """The row of an operator in a chain that an element belongs to.

    Attributes:
        number: its number, from 0.
        rows: number of rows of the tensor.
        rows_different: number of rows with elements that differ.
        function: the C function that made it.
    """

    number: int
    rows: int
    rows_different: int
    function: str


@dataclass(frozen=True)
class StepCheck:
    """One step of the entry function.

    Attributes:
        index: index of the step, from 0.
        layer: name of its layer; several are joined by "+".
        place: accelerator or "cpu"; conversions are "cpu, prologue" and the like.
        tensor: the tensor compared; empty if the step writes no tensor with a reference.
        elements: number of elements compared.
        different: number of elements that differ.
        largest: largest absolute difference, in quantized steps (of reals: in units).
        members: of a chain, what makes its rows, compared row by row when they are made.
    """

    index: int
    layer: str
    place: str
    tensor: str
    elements: int = 0
    different: int = 0
    largest: Number = 0
    members: tuple[StepCheck, ...] = ()

    @property
    def parts(self) -> tuple[StepCheck, ...]:
        """Its members, or itself if it has none."""
        return self.members or (self,)

    @property
    def compared(self) -> bool:
        """Whether the step's result was compared."""
        return any(part.elements > 0 for part in self.parts)


@dataclass(frozen=True)
class Difference:
    """The first difference from the reference.

    Attributes:
        step: index of the step after which the difference was found.
        layer: name of that step's layer; of a chain, the operator whose row differs.
        place: accelerator or "cpu"; conversions are "cpu, prologue" and the like.
        tensor: the tensor that differs.
        overwritten: whether an earlier step had written the tensor correctly, and this step
            overwrote it, although it should not touch it.
        axes: names of the element's coordinates, e.g. ("K", "oy", "ox").
        element: the coordinates of the first element that differs, in the order of execution of
            tiles, and within a tile channel by channel, row by row.
        value: the simulated SoC's value.
        expected: the reference's value.
        different, elements: number of elements that differ, and of all elements of the tensor.
        memory, address: name of the memory and device address of the element.
        tile: the tile it belongs to; None off accelerators.
        tiles_different: number of tiles with elements that differ; 0 off accelerators.
        origins: writers of the element, the last first; empty if nothing wrote it in this run, or
            if unknown.
        row: the row it belongs to, if it was wrong when a chain made that row.
    """

    step: int
    layer: str
    place: str
    tensor: str
    overwritten: bool
    axes: tuple[str, ...]
    element: tuple[int, ...]
    value: Number
    expected: Number
    different: int
    elements: int
    memory: str
    address: int
    tile: TileAt | None = None
    tiles_different: int = 0
    origins: tuple[Origin, ...] = ()
    row: RowAt | None = None

    @property
    def where(self) -> SourceLine | None:
        """The line of generated C that wrote the element."""
        return next((origin.place for origin in self.origins if origin.place), None)


@dataclass(frozen=True)
class Stray:
    """Bytes that a step changed outside of its results.

    Attributes:
        step: index of the step.
        layer: name of its layer.
        place: accelerator or "cpu", as in `Difference`.
        memory, address: the first of these bytes: name of the memory and device address.
        bytes: number of bytes that changed.
        beside: where the first one is, e.g. "0 B past the end of conv2d_0, in the arena".
        origins: writers of the first one, the last first; empty if unknown.
    """

    step: int
    layer: str
    place: str
    memory: str
    address: int
    bytes: int
    beside: str
    origins: tuple[Origin, ...] = ()

    def __str__(self) -> str:
        """The step, the bytes and where they are, as text."""
        return "\n".join(f"  {name:8s} {text}" for name, text in _stray_rows(self))


@dataclass(frozen=True)
class GoldenCheck:
    """One output, compared with the user's own.

    Attributes:
        output: name of the output.
        elements: number of its elements.
        different: number of the run's elements that differ from the golden.
        sqnr_db: SQNR of the run against the golden, in dB; None if they are equal.
        largest: largest absolute difference, in quantized steps (for reals: in units).
        element, value, expected: the first element that differs, in the output's own axes.
        source_different: number of elements that differ in the source model as imported, before
            retargeting.
    """

    output: str
    elements: int
    different: int
    sqnr_db: float | None = None
    largest: Number = 0
    element: tuple[int, ...] = ()
    value: Number = 0
    expected: Number = 0
    source_different: int = 0


@dataclass(frozen=True, repr=False)
class Verification(Shown):
    """The findings of `Module.verify`.

    Attributes:
        network, target: names of the network and the target.
        steps: one entry per step of the entry function.
        difference: the first difference from the reference; None if there is no difference.
        stray: what the first step that writes outside of its results changes there; None if no
            step does.
        golden: one entry per output that the user gave; empty without.
        retargeted: whether the network was rewritten for the target, so that its outputs may differ
            from the source model's.
        executed: the simulated core that executed the target's C, if that is not its own.
    """

    network: str
    target: str
    steps: tuple[StepCheck, ...]
    difference: Difference | None
    golden: tuple[GoldenCheck, ...] = ()
    retargeted: bool = False
    stray: Stray | None = None
    executed: str = ""

    def _rows(self) -> tuple[object, ...]:
        return self.steps

    @property
    def equal(self) -> bool:
        """Whether the run equals the reference, element for element."""
        return self.difference is None

    @property
    def contained(self) -> bool:
        """Whether every step wrote its own results and nothing else."""
        return self.stray is None

    @property
    def agrees(self) -> bool:
        """Whether the run equals the user's golden; true without one."""
        return all(check.different == 0 for check in self.golden)

    def __str__(self) -> str:
        """The findings as text."""
        return "\n".join(_lines(self))

    def __repr__(self) -> str:
        """Return the findings in lines of 80 characters; paths and lines of C stay whole."""
        return "\n".join(wrapped(_lines(self), 80))

    def plot_layers(self) -> Figure:
        """Plot the share of each compared step's elements that differ, and the largest difference.

        Steps have the colours of the units that run them; without a difference there are only
        names and words.

        Raises:
            DependencyError: matplotlib is not installed.
        """
        bars = [
            Bar(step.layer, 100 * step.different / step.elements, _differs(step),
                unit_class(step.place.split(",")[0]))
            for whole in self.steps
            for step in whole.parts
            if step.elements
        ]  # fmt: skip
        title = f"{self.network} on {self.target}: elements that differ from the reference"
        figure = bar_figure(title, bars, "% of the elements")
        figure.axes[0].set_xlim(0, 150)
        figure.axes[0].set_xticks(range(0, 101, 20))
        return figure


def _differs(step: StepCheck) -> str:
    if not step.different:
        return f"equal, {step.elements:,} elements"
    return f"{step.different:,} of {step.elements:,} elements, by up to {step.largest:,}"


def _lines(verification: Verification) -> Iterator[str]:
    yield f"{verification.network} on {verification.target}: {_verdict(verification)}"
    yield _coverage(verification)
    if verification.executed:
        yield f"its C was executed by the {verification.executed}, which lacks its core's assembly"
    if verification.difference is not None:
        yield ""
        yield from _difference(verification.difference)
    if verification.stray is not None:
        yield ""
        yield from _stray_lines(verification.stray)
    for check in verification.golden:
        yield ""
        yield from _golden(check, verification)


def _verdict(verification: Verification) -> str:
    if verification.difference is not None:
        return f"differs from the reference at step {verification.difference.step}, " \
            f"layer {verification.difference.layer}"  # fmt: skip
    if verification.stray is not None:
        return f"equal to the reference, but step {verification.stray.step}, " \
            f"layer {verification.stray.layer}, writes outside of its results"  # fmt: skip
    return "equal to the reference"


def _coverage(verification: Verification) -> str:
    compared = [step for step in verification.steps if step.compared]
    elements = sum(part.elements for step in compared for part in step.parts)
    inside = len(verification.steps) - len(compared)
    text = f"{len(compared)} of {len(verification.steps)} steps compared, {elements:,} elements"
    members = sum(len(step.members) for step in compared)
    text += f", {members} tensors of chains row by row" if members else ""
    return f"{text}; the other {inside} work inside of an operator" if inside else text


def _difference(difference: Difference) -> Iterator[str]:
    axes = ", ".join(f"{n} {i}" for n, i in zip(difference.axes, difference.element, strict=True))
    rows = [("layer", f"{difference.layer} (step {difference.step}, {difference.place})")]
    if difference.overwritten:
        rows.append(("tensor", f"{difference.tensor}, which was right before this step"))
    elif difference.tensor != difference.layer:
        rows.append(("tensor", difference.tensor))
    if difference.tile is not None:
        rows.append(("tile", _tile(difference)))
    if difference.row is not None:
        rows.append(("row", _row(difference.row)))
    rows.append(("element", f"{axes} in {difference.memory} at 0x{difference.address:08X}"))
    rows.append(("values", f"{difference.value} instead of {difference.expected}"))
    rows.append(("differ", f"{difference.different:,} of {difference.elements:,} elements"))
    rows += _origins(difference.origins)
    for name, text in rows:
        yield f"  {name:8s} {text}".rstrip()


def _stray_lines(stray: Stray) -> Iterator[str]:
    for name, text in (*_stray_rows(stray), *_origins(stray.origins)):
        yield f"  {name:8s} {text}".rstrip()


def _stray_rows(stray: Stray) -> Iterator[tuple[str, str]]:
    yield "layer", f"{stray.layer} (step {stray.step}, {stray.place})"
    yield "outside", f"{stray.bytes:,} B in {stray.memory} from 0x{stray.address:08X} on"
    yield "where", stray.beside


def _tile(difference: Difference) -> str:
    tile = difference.tile
    assert tile is not None
    spans = ", ".join(
        f"{axis} {start}..{start + size - 1}"
        for axis, start, size in zip(difference.axes, tile.start, tile.size, strict=True)
    )
    more = f"; {difference.tiles_different} tiles differ" if difference.tiles_different > 1 else ""
    return f"{tile.number} of {tile.tiles} ({spans}){more}"


def _row(row: RowAt) -> str:
    more = f"; {row.rows_different} rows differ" if row.rows_different > 1 else ""
    return f"{row.number} of {row.rows}, made by {row.function}{more}"


def _origins(origins: tuple[Origin, ...]) -> Iterator[tuple[str, str]]:
    if not origins:
        yield "written", "by nobody in this run"
    for origin in origins:
        yield "written" if origin is origins[0] else "", f"{origin.what}, cycle {origin.cycle:,}"
        if origin.place is not None:
            yield "", f"  {origin.place}"
            if origin.place.text:
                yield "", f"    {origin.place.text}"
        if origin.inner is not None:
            yield "", f"  through {origin.inner}"


def _golden(check: GoldenCheck, verification: Verification) -> Iterator[str]:
    if check.different == 0:
        yield f"golden {check.output}: equal, {check.elements:,} elements"
        return
    yield (
        f"golden {check.output}: {check.different:,} of {check.elements:,} elements differ, "
        f"SQNR {check.sqnr_db:.1f} dB, largest difference {check.largest}"
    )
    yield (f"  first at {list(check.element)}: {check.value} instead of {check.expected}")
    yield f"  {_reason(check, verification)}"


def _reason(check: GoldenCheck, verification: Verification) -> str:
    """Say where a difference comes from: the program, retargeting, or the golden itself."""
    if verification.difference is not None:
        return "mend the difference from the reference first: it may be the cause"
    if not verification.retargeted:
        return (
            "no bug of the build: it computes what the file says, so the golden comes from other "
            "arithmetic, other inputs, or another file"
        )
    if check.source_different == 0:
        return (
            "no bug of the build: the network as imported gives the golden exactly, and rewriting "
            "it for the target's arithmetic changed it; target generic.cpu keeps it exact"
        )
    return (
        f"no bug of the build: rewriting the network for the target's arithmetic changed it; as "
        f"imported {check.source_different:,} elements differ from the golden already"
    )
