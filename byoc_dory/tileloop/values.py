"""Numbers of a tile program that may differ between tiles, as expressions.

A `Value` is a plain number if all tiles have the same, else an expression of the current tile's
ranges.  It is evaluated (`evaluate`) to count steps, cycles and bytes, and written as C
(`byoc_dory.emit.tile_text`) in the generated loop, so that both always agree.

Expressions are built with ``+`` and ``*``; `round_up` and `pick` make other ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

Field: TypeAlias = Literal["out_start", "out_size", "in_start", "in_size", "pad"]
"""The fields of a `Span`."""


class Expression:
    """An expression, which can be added and multiplied like a number."""

    def __add__(self, other: Value) -> Value:
        return add(self, other)

    def __radd__(self, other: Value) -> Value:
        return add(other, self)

    def __mul__(self, other: Value) -> Value:
        return mul(self, other)

    def __rmul__(self, other: Value) -> Value:
        return mul(other, self)

    def at(self, tile: Current) -> int:
        """Return its value for one tile."""
        raise NotImplementedError

    @property
    def parts(self) -> tuple[Value, ...]:
        """The values that it is computed from."""
        return ()

    @property
    def axes(self) -> frozenset[str]:
        """The axes along which it differs between tiles, not considering places."""
        return axes_of(*self.parts)

    @property
    def places(self) -> frozenset[str]:
        """The operands whose places in L1 it contains."""
        return places_of(*self.parts)


_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Along(Expression):
    """An expression that differs between tiles along one axis."""

    axis: str

    @property
    def axes(self) -> frozenset[str]:
        return frozenset((self.axis,))


@dataclass(frozen=True)
class Of(_Along):
    """A field of the tile's range along an axis."""

    field: Field

    def at(self, tile: Current) -> int:
        value: int = getattr(tile.spans[self.axis], self.field)
        return value


@dataclass(frozen=True)
class Index(_Along):
    """The index of the tile's range along an axis, from 0."""

    def at(self, tile: Current) -> int:
        return tile.index(self.axis)


@dataclass(frozen=True)
class Pick(_Along):
    """A number for each tile along an axis."""

    values: tuple[int, ...]

    def at(self, tile: Current) -> int:
        return self.values[tile.index(self.axis)]


@dataclass(frozen=True)
class Named(Expression):
    """A number with a name in the generated C."""

    name: str
    value: int

    def at(self, tile: Current) -> int:
        return self.value


@dataclass(frozen=True)
class Own(Expression):
    """A number of one layer that does not shape the loop, such as a multiplier.

    Layers that differ only in such numbers can share a function; it becomes an argument of this
    name.
    """

    name: str
    value: int

    def at(self, tile: Current) -> int:
        return self.value


@dataclass(frozen=True)
class Place(Expression):
    """The place in L1 of the tile of an operand, or of the result, as a byte offset."""

    operand: str

    def at(self, tile: Current) -> int:
        return tile.place(self.operand)

    @property
    def places(self) -> frozenset[str]:
        return frozenset((self.operand,))


@dataclass(frozen=True)
class Far(Expression):
    """The device address of an array of constants that is not moved into L1.

    Its value is 0: numbers count from the array's first byte.
    """

    array: str

    def at(self, tile: Current) -> int:
        return 0


@dataclass(frozen=True)
class Sum(Expression):
    """``a + b``."""

    a: Value
    b: Value

    def at(self, tile: Current) -> int:
        return evaluate(self.a, tile) + evaluate(self.b, tile)

    @property
    def parts(self) -> tuple[Value, ...]:
        return self.a, self.b


@dataclass(frozen=True)
class Product(Expression):
    """``a * b``."""

    a: Value
    b: Value

    def at(self, tile: Current) -> int:
        return evaluate(self.a, tile) * evaluate(self.b, tile)

    @property
    def parts(self) -> tuple[Value, ...]:
        return self.a, self.b


@dataclass(frozen=True)
class RoundUp(Expression):
    """``value`` rounded up to a multiple of ``step``, a power of two."""

    value: Value
    step: int

    def at(self, tile: Current) -> int:
        return -(-evaluate(self.value, tile) // self.step) * self.step

    @property
    def parts(self) -> tuple[Value, ...]:
        return (self.value,)


Value: TypeAlias = int | Expression

Entry: TypeAlias = Value | str | tuple[Value, ...]
"""A field of a call: a value, several values, or C text that is the same for all tiles."""


def add(a: Value, b: Value) -> Value:
    """Return ``a + b``, folded if both are known."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if a == 0:
        return b
    return a if b == 0 else Sum(a, b)


def mul(a: Value, b: Value) -> Value:
    """Return ``a * b``, folded if both are known."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if a == 0 or b == 0:
        return 0
    if a == 1:
        return b
    return a if b == 1 else Product(a, b)


def round_up(value: Value, step: int) -> Value:
    """Return ``value`` rounded up to a multiple of a power of two."""
    return -(-value // step) * step if isinstance(value, int) else RoundUp(value, step)


def pick(axis: str, values: Sequence[int]) -> Value:
    """Return ``values[i]`` for tile i along ``axis``; a number if all are equal."""
    return values[0] if len(set(values)) == 1 else Pick(axis, tuple(values))


def named(name: str, value: Value) -> Value:
    """Return a number with a name in C; 0 stays 0, so that it folds."""
    return Named(name, value) if isinstance(value, int) and value else value


def values_of(*entries: Entry) -> tuple[Value, ...]:
    """Return the values among these entries, without the text."""
    found: list[Value] = []
    for entry in entries:
        if isinstance(entry, tuple):
            found += entry
        elif not isinstance(entry, str):
            found.append(entry)
    return tuple(found)


def axes_of(*values: Value) -> frozenset[str]:
    """Return the axes along which any of these differ between tiles, not considering places."""
    return _NONE.union(*[value.axes for value in values if isinstance(value, Expression)])


def places_of(*values: Value) -> frozenset[str]:
    """Return the operands whose places in L1 these values contain."""
    return _NONE.union(*[value.places for value in values if isinstance(value, Expression)])


class Current(Protocol):
    """The tile for which a value is evaluated."""

    @property
    def spans(self) -> Mapping[str, object]:
        """Its range along each axis, by name."""

    def index(self, axis: str) -> int:
        """Return the index of its range along an axis."""

    def place(self, operand: str) -> int:
        """Return the place in L1 of the tile of an operand, or of the result, as a byte offset."""


def evaluate(value: Value, tile: Current) -> int:
    """Return the number that a value has for one tile."""
    return value if isinstance(value, int) else value.at(tile)


def evaluated(fields: Mapping[str, Entry], tile: Current) -> dict[str, int | str | tuple[int, ...]]:
    """Return the values of named entries for one tile; text is not changed."""
    found: dict[str, Any] = dict(fields)
    for name, entry in fields.items():
        # Most values are numbers; checking for them first makes it fast to price a tile.
        if isinstance(entry, int) or isinstance(entry, str):  # noqa: SIM101 (a union is slow)
            continue
        if isinstance(entry, tuple):
            found[name] = tuple([evaluate(value, tile) for value in entry])
        else:
            found[name] = entry.at(tile)
    return found
