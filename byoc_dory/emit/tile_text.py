"""Values of a tile program as C: numbers if they are the same for all tiles, else expressions;
and the comment that explains a pipelined loop: its prologue, steady state and epilogue.

Expressions use the loops' indices (named like the axes) and ``tile``, the tile's number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from byoc_dory.definition import slot
from byoc_dory.emit.text import Expr, add, mul, round_up_expr
from byoc_dory.plan import Preload
from byoc_dory.tileloop.axes import TileAxis
from byoc_dory.tileloop.pipeline import Block
from byoc_dory.tileloop.program import Operand, TileProgram
from byoc_dory.tileloop.values import (
    Entry,
    Far,
    Index,
    Named,
    Of,
    Own,
    Pick,
    Place,
    Product,
    RoundUp,
    Sum,
    Value,
    places_of,
)

NEXT = "next"
"""Name of the next layer's constants where a layer loads them."""


def place_name(operand: str) -> str:
    """Return the name of the C constant for an operand's place in L1."""
    return f"L1_{operand.upper()}"


@dataclass(frozen=True)
class Transfer:
    """One transfer as C expressions.

    Attributes:
        operand: the tensor to move; the program's result is stored, all others are loaded.
        when: C condition for starting it; empty: for each tile.
        l1: byte offset in L1.
        l2: pointer to the tile in L2.
        bytes, rows: bytes per row, and number of rows; 1 if everything is contiguous.
        channels: number of blocks of rows.
        l1_pitch, l2_pitch: distance between rows in bytes.
        l1_channel, l2_channel: distance between channels in bytes.
        contiguous: whether it is one run of bytes for every tile.
    """

    operand: Operand
    when: str
    l1: Expr
    l2: Expr
    bytes: Expr
    rows: Expr
    channels: Expr
    l1_pitch: Expr
    l2_pitch: Expr
    l1_channel: Expr
    l2_channel: Expr
    contiguous: bool

    @property
    def what(self) -> str:
        """Description of the data that is moved."""
        return self.operand.title or self.operand.name


class TileWriter:
    """Writes values of a program as C.

    Args:
        program: the program.  Everything in which layers of equal geometry may differ is written
            as a slot (`byoc_dory.definition`): places in L1, arrays of constants, `Own` numbers.
        address: format of a place in L1 as the accelerator's calls take it.
        suffix: suffix of constants in indices and offsets, "u" or empty.
    """

    def __init__(
        self,
        program: TileProgram,
        address: str = "{}",
        suffix: str = "u",
    ) -> None:
        self.program = program
        self.address = address
        self.suffix = suffix
        self._axes = {axis.name: axis for axis in program.axes}

    # ------------------------------------------------------------------ values

    def value(self, value: Value, *, offset: bool = False) -> Expr:
        """Return a value as C; numbers in an ``offset`` have the suffix."""
        if isinstance(value, int):
            return value
        if isinstance(value, Sum):
            return add(self.value(value.a, offset=offset), self.value(value.b, offset=offset))
        if isinstance(value, Product):
            a, b = self.value(value.a), self.value(value.b)
            return mul(a, f"{b}{self.suffix}" if offset and isinstance(b, int) else b)
        if isinstance(value, RoundUp):
            return round_up_expr(self.value(value.value), value.step)
        if isinstance(value, Named):
            return value.name
        if isinstance(value, Own):
            return slot(value.name)
        if isinstance(value, Place):
            return self.place(self.program.tensor[value.operand])
        if isinstance(value, Far):
            return f"htvm_hal_addr({slot(value.array)})"
        if isinstance(value, Index):
            return value.axis
        if isinstance(value, Pick):
            return self._indexed_value(value.axis, value.values)
        assert isinstance(value, Of), value
        return self._axis_value(self._axes[value.axis], value)

    def _axis_value(self, axis: TileAxis, value: Of) -> Expr:
        if not axis.strided:
            return f"{axis.name}_tiles[{axis.name}].{value.field}"
        if value.field in ("out_start", "in_start"):
            return axis.name if axis.step == 1 else mul(axis.name, f"{axis.step}{self.suffix}")
        sizes = tuple(span.out_size for span in axis.spans)
        return self._indexed_value(axis.name, sizes)

    def _indexed_value(self, axis: str, values: tuple[int, ...]) -> Expr:
        """Return a value by an axis' index, where all values but the last are equal."""
        assert len(set(values[:-1])) == 1, values
        u = self.suffix
        return f"({axis} + 1{u} < {len(values)}{u} ? {values[0]}{u} : {values[-1]}{u})"

    def entry(self, entry: Entry) -> Expr:
        """Return a field of a call: a number, text, or an address if it contains a place in L1."""
        if isinstance(entry, str):
            return entry
        if isinstance(entry, tuple):
            return "{" + ", ".join(str(self.entry(value)) for value in entry) + "}"
        if places_of(entry):
            return self.address.format(self.value(entry, offset=True))
        return self.value(entry)

    def fields(self, fields: Mapping[str, Entry]) -> dict[str, Expr]:
        """Return all fields of a call."""
        return {name: self.entry(entry) for name, entry in fields.items()}

    # ------------------------------------------------------------------ places and transfers

    def place(self, operand: Operand) -> Expr:
        """Return the byte offset in L1 of a tile of an operand, or of the result."""
        name = slot(place_name(operand.name))
        if operand.resident:
            return add(name, self.value(operand.inside, offset=True))
        buffers = self.program.buffers(operand)
        if buffers == 1:
            return name
        u = self.suffix
        return add(name, f"{self.moves(operand)} % {buffers}{u} * {operand.l1_bytes}{u}")

    def moves(self, operand: Operand) -> str:
        """Return how many tiles of an operand were moved before this one."""
        axes = self.program.axes
        depth = self.program.depth(operand)
        if all(axis.count == 1 for axis in axes[depth:]):
            # Also if this is one loop's index: the tile's number is available.
            inner = [axis for axis in axes[:depth] if axis.count > 1]
            return "tile" if depth == len(axes) or len(inner) != 1 else inner[0].name
        found: Expr = 0
        for axis in axes[:depth]:
            if axis.count > 1:
                found = add(mul(found, f"{axis.count}{self.suffix}"), axis.name)
        return str(found)

    def when(self, operand: Operand) -> str:
        """Return the condition for a tile to move an operand; empty if every tile does."""
        own = self._when(operand)
        if not operand.preloaded:
            return own
        return " && ".join(part for part in (own, f"tile != 0{self.suffix}") if part)

    def _when(self, operand: Operand) -> str:
        inside = [
            axis.name for axis in self.program.axes[self.program.depth(operand) :] if axis.count > 1
        ]
        if not inside:
            return ""
        u = self.suffix
        if self.program.moves(operand) == 1:
            return f"tile == 0{u}"
        return " && ".join(f"{name} == 0{u}" for name in inside)

    def preload(self, preload: Preload) -> Transfer:
        """Return the transfer of the next layer's constants."""
        following = Operand(
            NEXT,
            0,
            Block.run(preload.bytes),
            preload.l1,
            preload.bytes,
            resident=True,
            constant=True,
            reloaded=True,
            title="constants of the next layer",
        )
        last = self.program.tiles - 1
        when = f"tile == {last}{self.suffix}" if last else ""
        return replace(self.transfer(following), when=when)

    def transfer(self, operand: Operand) -> Transfer:
        """Return the transfer of an operand's tile, or of the result's."""
        block = operand.block
        source = add(
            slot(operand.name) if operand.constant else operand.name,
            self.value(operand.offset, offset=True),
        )
        rows, size = block.rows, block.bytes
        # Rows that are contiguous in both memories are one run.
        contiguous = block.channels == 1 and size == block.l2_row_stride == block.l1_row_stride
        if contiguous:
            rows, size = 1, rows * size
        return Transfer(
            operand=operand,
            when=self.when(operand),
            l1=self.place(operand),
            l2=source,
            bytes=self.value(size),
            rows=self.value(rows),
            channels=self.value(block.channels),
            l1_pitch=self.value(block.l1_row_stride),
            l2_pitch=self.value(block.l2_row_stride),
            l1_channel=self.value(block.l1_channel_stride),
            l2_channel=self.value(block.l2_channel_stride),
            contiguous=contiguous,
        )

    # ------------------------------------------------------------------ names

    def index(self, axis: TileAxis) -> str:
        """Return an axis' index, computed from the number of the tile."""
        axes = self.program.axes
        position = axes.index(axis)
        u = self.suffix
        inner = 1
        for other in axes[position + 1 :]:
            inner *= other.count
        text = "tile" if inner == 1 else f"tile / {inner}{u}"
        if all(other.count == 1 for other in axes[:position]):
            return text
        return f"{text} % {axis.count}{u}"

    @property
    def tables(self) -> tuple[TileAxis, ...]:
        """The axes whose ranges are tabulated in C."""
        fields = ("out_start", "out_size", "in_start", "in_size", "pad")
        return tuple(
            axis
            for axis in self.program.axes
            if not axis.strided and any(not isinstance(getattr(axis, f), int) for f in fields)
        )


_INDEX = "step"  # what the loop in C counts


@dataclass(frozen=True)
class Stage:
    """What a step of the loop does for one of the tiles in flight.

    Attributes:
        title: the actions in words, e.g. ``finish, store``.
        distance: step s does this for tile s - distance.
        code: C statements.
    """

    title: str
    distance: int
    code: str

    @property
    def tile(self) -> str:
        """C expression of the tile's number."""
        return f"{_INDEX} - {self.distance}" if self.distance else _INDEX


def condition(stage: Stage, tiles: int, steps: int) -> str:
    """Return the C condition under which there is a tile for this stage."""
    begun = [f"{_INDEX} >= {stage.distance}u"] if stage.distance else []
    end = tiles + stage.distance
    return " && ".join([*begun, *([f"{_INDEX} < {end}u"] if end < steps else [])])


def phases(stages: Sequence[Stage], tiles: int) -> str:
    """Return a C comment with a table of the tile that each stage works on in each step.

    Args:
        stages: the stages of a step, at least one of them at a distance.
        tiles: number of tiles.
    """
    ordered = sorted(stages, key=lambda stage: stage.distance)
    longest = ordered[-1].distance
    rows = [(_INDEX, *(stage.title for stage in ordered), "")]
    rows += [_phase_row(step, ordered, tiles, "prologue") for step in range(min(longest, tiles))]
    if tiles == longest + 1:
        rows.append(_phase_row(longest, ordered, tiles, "steady state"))
    elif tiles > longest:
        numbers = [f"tile {stage.tile}" for stage in ordered]
        rows.append((f"{longest} to {tiles - 1}", *numbers, "steady state"))
    begin = max(longest, tiles)
    rows += [_phase_row(step, ordered, tiles, "epilogue") for step in range(begin, tiles + longest)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    if tiles <= longest:
        lines.append("There are too few tiles for a steady state.")
    return (
        "/* Several tiles are under way at a time, each at a different stage:\n *\n"
        + "".join(f" *   {line}\n" for line in lines)
        + " */\n"
    )


def _phase_row(step: int, stages: Sequence[Stage], tiles: int, phase: str) -> tuple[str, ...]:
    """Return the row of one step, with the numbers of its tiles."""
    numbers = [step - stage.distance for stage in stages]
    found = [f"tile {number}" if 0 <= number < tiles else "-" for number in numbers]
    return (str(step), *found, phase)
