"""`Chain`: units that advance together; its strips, and the order in which rows are computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from htvm.aot.chains.network import RowTensor
from patterns.rows import RowWindow

if TYPE_CHECKING:
    from htvm.aot.chains.network import Network, Unit


@dataclass(frozen=True)
class Strip:
    """The rows of a tensor that a chain keeps: contiguous, with their padding; they slide.

    Attributes:
        tensor: the tensor.
        rows: number of rows for which there is room.
        top: rows of padding above the first row.
        left, right: pixels of padding beside each row.
        fill: value of the padding.
        copied: whether its rows are copied from the whole tensor, to get their padding.
        pixel: bytes of a pixel; copies may get channels of zeros, which make words.
        summed: whether it is the sum of all rows instead, int32 for each element.
        band: rows that come at once; those of padding come alone.
    """

    tensor: RowTensor
    rows: int
    top: int = 0
    left: int = 0
    right: int = 0
    fill: int = 0
    copied: bool = False
    pixel: int = 0
    summed: bool = False
    band: int = 1

    @property
    def row(self) -> int:
        """Bytes of a row with its padding."""
        return (self.left + self.tensor.width + self.right) * self.pixel

    @property
    def pitch(self) -> int:
        """Bytes from one row to the next."""
        return 0 if self.summed else self.row

    @property
    def bytes(self) -> int:
        """Bytes of all its rows."""
        return self.row if self.summed else self.rows * self.row


@dataclass(frozen=True)
class Source:
    """Where a unit finds the rows that it reads.

    Attributes:
        tensor: the tensor.
        window: the rows.
        strip: whether they are in the tensor's strip, else in the whole tensor.
    """

    tensor: str
    window: RowWindow
    strip: bool


@dataclass(frozen=True)
class Stage:
    """What makes rows: a unit, or the copy of a row into a strip.

    Attributes:
        name: name of the tensor.
        unit: the unit, by its number in the network; ``None`` copies, or adds to sums.
        strip: whether the rows go into a strip, else into the whole tensor.
        sources: what it reads for them.
        band: how many rows it makes at once.
    """

    name: str
    unit: int | None
    strip: bool
    sources: tuple[Source, ...]
    band: int = 1


@dataclass(frozen=True, eq=False)
class Chain:
    """Consecutive units that are computed row by row.

    Attributes:
        units: numbers of the first unit and of the one behind the last.
        inputs: the tensors that it reads as a whole.
        outputs: the tensors that it computes as a whole; the last unit's comes last.
        strips: the strips, by tensor.
        stages: what makes rows.
        order: the stage that makes the next rows, from the first row to the last.
        below: for each input, how many bytes before it the only output may start at least.
        kept: by tensor, whenever rows go into its strip, the first one that is still read.
        passing: the tensors of strips without padding for the rows that come at once, which only
            exist until their readers have made theirs.
        together: for each stage, all sets of these whose rows exist at once while it runs, its own
            among them.
        bands: by number of a unit, what `chain_of` was given.
    """

    units: tuple[int, int]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    strips: Mapping[str, Strip]
    stages: tuple[Stage, ...]
    order: tuple[int, ...]
    below: Mapping[str, int]
    kept: Mapping[str, tuple[int, ...]]
    passing: tuple[str, ...]
    together: tuple[tuple[int, frozenset[str]], ...]
    bands: Mapping[int, int]

    @property
    def copied(self) -> int:
        """Bytes that are copied from whole tensors into strips."""
        return sum(strip.tensor.bytes for strip in self.strips.values() if strip.copied)

    @property
    def moved(self) -> int:
        """Bytes that strips move when they slide."""
        return sum(self.moved_by(strip) for strip in self.strips.values())

    def moved_by(self, strip: Strip) -> int:
        """Return the bytes that a strip moves, given its room."""
        return strip.pitch * sum(moved for *_, moved in self.arrivals(strip))

    def arrivals(self, strip: Strip) -> Iterator[tuple[int, int, int]]:
        """Yield whenever rows come into a strip: the first, their place, and the rows moved."""
        y = first = -strip.top
        for kept in self.kept[strip.tensor.name]:
            count, moved = strip.band if 0 <= y < strip.tensor.rows else 1, 0
            if y + count - first > strip.rows:
                first = min(kept, y)
                moved = y - first
            yield y, y - first, moved
            y += count

    def with_room(self, tensor: str, rows: int) -> Chain:
        """Return the chain with room for this many rows in a strip."""
        strip = replace(self.strips[tensor], rows=rows)
        return replace(self, strips={**self.strips, tensor: strip})


def chain_of(
    network: Network,
    first: int,
    behind: int,
    wide: Mapping[str, int] | None = None,
    bands: Mapping[int, int] | None = None,
) -> Chain | None:
    """Return the chain of consecutive units with the fewest rows in its strips.

    Args:
        network: the units.
        first, behind: numbers of the first unit and of the one behind the last.
        wide: by name of a unit, bytes of the pixels that it reads with channels of zeros.
        bands: by number of a unit, how many rows it makes at once; all of its rows in such bands.
            Others make single rows.

    Returns:
        ``None`` if they cannot advance together: one reads a tensor as a whole, or two need
        different paddings of one.
    """
    units = network.units[first:behind]
    if not all(unit.has_rows for unit in units):
        return None
    layout = _Layout(network, first, behind, wide or {}, bands or {})
    strips = layout.strips()
    if strips is None:
        return None
    return _Run(network, layout, strips).chain()


def sums_of(unit: Unit) -> str:
    """Return the name of the sums of all rows that a unit reads; operators have no such names."""
    return f"{unit.result} (sums)"


class _Layout:
    """What a chain's tensors are: whole, in strips, or both."""

    def __init__(
        self,
        network: Network,
        first: int,
        behind: int,
        wide: Mapping[str, int],
        bands: Mapping[int, int],
    ) -> None:
        self.network = network
        self.wide = wide
        self.bands = bands
        self.tensors = dict(network.tensors)
        self.bounds = first, behind
        self.units = dict(enumerate(network.units))
        self.numbers = range(first, behind)
        self.made = {network.units[number].result: number for number in self.numbers}
        self.outputs = tuple(name for name in self.made if network.dies(name) >= behind)
        read = [reading.tensor for unit in self._units() for reading in unit.reads]
        self.inputs = tuple(dict.fromkeys(name for name in read if name not in self.made))
        self.whole = {*self.inputs, *self.outputs} - {network.streamed}

    def _units(self) -> Sequence[Unit]:
        return [self.units[number] for number in self.numbers]

    def readers(self, tensor: str) -> Iterator[tuple[Unit, RowWindow]]:
        """Yield the chain's units that read a tensor, and how."""
        for number, unit in zip(self.numbers, self._units(), strict=True):
            for reading in unit.reads:
                if reading.tensor == tensor and reading.window is not None:
                    # Sums are of one row at a time.
                    window = reading.window.of_band(self.bands.get(number, 1))
                    yield unit, RowWindow() if unit.of_sums else window

    def strips(self) -> dict[str, Strip] | None:
        """Return the strips, still without rows; ``None`` if readers contradict each other."""
        found = {}
        for name in (*self.inputs, *self.made):
            readers = [
                (unit, window)
                for unit, window in self.readers(name)
                if window.is_padded or name not in self.whole
            ]
            windows = [window for _, window in readers]
            if not windows:
                if name not in self.whole:  # nobody reads it
                    return None
                continue
            padded = [each for each in windows if each.is_padded]
            tensor = self.tensors[name]
            pixel = tensor.pixel
            copied = name in self.whole or name == self.network.streamed
            if len(readers) == 1 and copied:
                pixel = self.wide.get(readers[0][0].name, pixel)
            strip = Strip(
                tensor,
                0,
                max((each.top for each in padded), default=0),
                max((each.left for each in padded), default=0),
                max((each.right for each in padded), default=0),
                padded[0].fill if padded else 0,
                copied,
                pixel,
                band=1 if copied else self.bands.get(self.made[name], 1),
            )
            fills = {each.fill for each in padded}
            wide = [each for each in windows if each.size > 1]
            sides = (strip.left, strip.right)
            if len(fills) > 1 or any((each.left, each.right) != sides for each in wide):
                return None
            if padded and not tensor.is_of_one_byte(strip.fill):
                return None  # rows are filled byte by byte
            found[name] = strip
        for unit in self._units():
            if unit.of_sums is not None:
                source = self.tensors[unit.reads[0].tensor]
                sums = RowTensor.of(sums_of(unit), (1, source.rows, 1, source.shape[3]), "int32")
                self.tensors[sums.name] = sums
                found[sums.name] = Strip(sums, 0, pixel=sums.pixel, summed=True)
        return found

    def stages(self, strips: Mapping[str, Strip]) -> tuple[Stage, ...]:
        """Return what makes rows, in the order of the units."""
        found = [self._copy(name) for name in self.inputs if name in strips]
        for name, number in self.made.items():
            unit, sources = self.units[number], []
            for reading in unit.reads:
                assert reading.window is not None
                window = reading.window.of_band(self.bands.get(number, 1))
                strip = window.is_padded or reading.tensor not in self.whole
                sources.append(Source(reading.tensor, window, strip))
            if unit.of_sums is not None:
                sums = sums_of(unit)
                found.append(Stage(sums, None, True, (replace(sources[0], window=RowWindow()),)))
                rows = self.tensors[sums].rows
                sources = [Source(sums, RowWindow(rows, rows), True)]
            band = self.bands.get(number, 1)
            found.append(Stage(name, number, name not in self.whole, tuple(sources), band))
            if name in self.whole and name in strips:
                found.append(self._copy(name))
        return tuple(found)

    @staticmethod
    def _copy(name: str) -> Stage:
        return Stage(name, None, True, (Source(name, RowWindow(), False),))


class _Run:
    """Advances a chain row by row, on demand, and notes what that needs."""

    def __init__(
        self,
        network: Network,
        layout: _Layout,
        strips: Mapping[str, Strip],
    ) -> None:
        self.tensors = layout.tensors
        self.layout = layout
        self.outputs = layout.outputs
        self.strips = strips
        self.stages = layout.stages(strips)
        self.maker = {(stage.name, stage.strip): at for at, stage in enumerate(self.stages)}
        self.needs: list[list[tuple[int, int, int]]] = []
        """For each stage, the stages that it reads; for row y, up to row y * stride + ahead."""
        self.readers: dict[tuple[str, bool], list[tuple[int, int, int]]] = {}
        for at, stage in enumerate(self.stages):
            needs = []
            for source in stage.sources:
                key, window = (source.tensor, source.strip), source.window
                self.readers.setdefault(key, []).append((at, window.stride, window.top))
                if key in self.maker:
                    needs.append((self.maker[key], window.stride, window.size - 1 - window.top))
            self.needs.append(needs)
        self.next = [-strips[stage.name].top if stage.strip else 0 for stage in self.stages]
        self.order: list[int] = []
        self.inside: list[bool] = []  # whether these rows are no padding
        self.rows: dict[str, int] = {}
        self.written: list[tuple[int, dict[str, int]]] = []
        self.kept: dict[str, list[int]] = {}

    def chain(self) -> Chain:
        layout = self.layout
        self._make_outputs()
        strips = {name: replace(strip, rows=self.rows[name]) for name, strip in self.strips.items()}
        passing = [
            name
            for name, strip in strips.items()
            if strip.rows == strip.band
            and not strip.summed
            and not strip.copied
            # Padding is there from the beginning.
            and strip.row == strip.tensor.row
            and self.next[self.maker[name, True]] == strip.tensor.rows
        ]
        return Chain(
            layout.bounds,
            layout.inputs,
            layout.outputs,
            strips,
            self.stages,
            tuple(self.order),
            self._below(),
            {name: tuple(rows) for name, rows in self.kept.items()},
            tuple(passing),
            self._together(passing),
            layout.bands,
        )

    def _together(self, passing: Sequence[str]) -> tuple[tuple[int, frozenset[str]], ...]:
        """Return the rows that exist at once while each stage runs, from the last one back."""
        bits = {name: 1 << at for at, name in enumerate(passing)}
        own = [bits.get(stage.name, 0) if stage.strip else 0 for stage in self.stages]
        read = [
            sum({bits[source.tensor] for source in stage.sources if source.tensor in bits})
            for stage in self.stages
        ]
        found: dict[tuple[int, int], None] = {}
        later = 0
        for at, inside in zip(reversed(self.order), reversed(self.inside), strict=True):
            now = later | (read[at] | own[at] if inside else 0)
            found[at, now] = None
            later = now & ~own[at]
        return tuple(
            (at, frozenset(name for name, bit in bits.items() if now & bit)) for at, now in found
        )

    def _make_outputs(self) -> None:
        """Make all rows of the outputs, always of the one of which the least is there."""
        waiting = [(self.maker[name, False], self.tensors[name].rows) for name in self.outputs]
        while waiting:
            at, rows = min(waiting, key=lambda each: (self.next[each[0]] + 1) / each[1])
            self._supply(at, self.next[at])
            waiting = [(at, rows) for at, rows in waiting if self.next[at] < rows]

    def _supply(self, stage: int, last: int) -> None:
        """Make the rows of a stage up to this one."""
        while self.next[stage] <= last:
            self._advance(stage)

    def _advance(self, at: int) -> None:
        stage, y = self.stages[at], self.next[at]
        inside = 0 <= y < self.tensors[stage.name].rows
        behind = y + (stage.band if inside else 1)
        if inside:
            for maker, stride, ahead in self.needs[at]:
                self._supply(maker, y * stride + ahead)
        if stage.strip:
            kept = self.keep(stage.name, strip=True)
            need = behind - min(kept, y)
            self.rows[stage.name] = max(self.rows.get(stage.name, 1), need)
            self.kept.setdefault(stage.name, []).append(min(kept, y))
        elif len(self.layout.outputs) == 1:
            reads = {name: self.keep(name, strip=False) for name in self.layout.inputs}
            self.written.append((behind, reads))
        self.order.append(at)
        self.inside.append(inside)
        self.next[at] = behind

    def keep(self, tensor: str, *, strip: bool) -> int:
        """Return the first row of a tensor that somebody still reads."""
        return min(
            [
                max(self.next[at], 0) * stride - top
                for at, stride, top in self.readers.get((tensor, strip), ())
            ],
            default=self.tensors[tensor].rows,
        )

    def _below(self) -> dict[str, int]:
        """Return for each input how far before it the output must start, so that no row of it
        meets a row of the input that is still read."""
        if len(self.layout.outputs) != 1:
            return {}
        output = self.tensors[self.layout.outputs[0]]
        found = {}
        for name in self.layout.inputs:
            source = self.tensors[name]
            found[name] = max(
                behind * output.row - min(reads[name], source.rows) * source.row
                for behind, reads in self.written
            )
        return {name: max(bytes_, 0) for name, bytes_ in found.items()}
