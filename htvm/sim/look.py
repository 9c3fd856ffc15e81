"""Observing a run: memory contents at its marks, and the code that stores to memory."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec


@dataclass(frozen=True)
class Range:
    """``size`` bytes at device address ``address``: RAM, or the devices' own memory."""

    address: int
    size: int


@dataclass(frozen=True)
class Watch:
    """A range whose last store before cycle ``until`` is reported."""

    area: Range
    until: int


@dataclass(frozen=True)
class Call:
    """A call of the function at an address; ``area`` is recorded when it returns."""

    function: int
    area: Range

    @property
    def words(self) -> tuple[int, int, int]:
        """The call as the simulator reads it."""
        return self.function, self.area.address, self.area.size


@dataclass(frozen=True)
class Look:
    """What to observe during a run.  Observation does not change what a right program does.

    Attributes:
        snapshots: ranges to record at the first mark, and at every mark with an odd event (the end
            of a step).
        dirtied: at most 256 ranges that nobody has written before the first mark: they are filled
            there, so that a later store changes them, also one of zeros.
        watches: at most 8 ranges whose last stores are reported.
        stack_at: at most 8 cycles at which stores to devices are reported with their call stack.
        wakes: at most 8 numbers of wake-ups, counted from 1: who made them is reported, for each
            hart.
        functions: addresses of all functions, to recognise jumps that are calls.
        calls: calls in the order in which they come; other functions may be called between them.
    """

    snapshots: tuple[Range, ...] = ()
    dirtied: tuple[Range, ...] = ()
    watches: tuple[Watch, ...] = ()
    stack_at: tuple[int, ...] = ()
    wakes: tuple[int, ...] = ()
    functions: tuple[int, ...] = ()
    calls: tuple[Call, ...] = ()

    def options(self, folder: Path) -> list[str]:
        """Return the simulator's options; its files go into ``folder``."""
        options: list[str] = []
        for area in self.snapshots:
            options += ["--snapshot", f"{area.address:#x}:{area.size}"]
        for area in self.dirtied:
            options += ["--dirty", f"{area.address:#x}:{area.size}"]
        if self.snapshots:
            options += ["--snapshots", str(folder / "snapshots")]
        for watch in self.watches:
            area = watch.area
            options += ["--watch", f"{area.address:#x}:{area.size}:{watch.until}"]
        for cycle in self.stack_at:
            options += ["--stack-at", str(cycle)]
        for number in self.wakes:
            options += ["--wake", str(number)]
        if self.functions:
            _write_words(folder / "functions", sorted(set(self.functions)))
            options += ["--functions", str(folder / "functions")]
        if self.calls:
            _write_words(folder / "calls", [word for call in self.calls for word in call.words])
            options += ["--calls", str(folder / "calls"), "--returns", str(folder / "returns")]
        return options

    def seen_in(self, facts: Mapping[str, Any], folder: Path) -> Seen:
        """Return what the simulator reported and left in ``folder``."""
        data = (folder / "snapshots").read_bytes() if self.snapshots else b""
        marks = enumerate(event for _, event in facts["marks"])
        ends = [event for number, event in marks if event % 2 or number == 0]
        each = sum(area.size for area in self.snapshots)
        moments = {
            event: _cut(data[number * each : (number + 1) * each], self.snapshots)
            for number, event in enumerate(ends)
            if self.snapshots
        }
        cycles = facts.get("returns", ())
        areas = [call.area for call in self.calls[: len(cycles)]]
        left = _cut((folder / "returns").read_bytes(), areas) if self.calls else ()
        return Seen(
            moments,
            msgspec.convert(facts.get("last_stores", ()), tuple[Store | None, ...]),
            msgspec.convert(facts.get("stores", ()), tuple[Store, ...]),
            msgspec.convert(facts.get("wakes", ()), tuple[Wake, ...]),
            tuple(facts.get("woken", ())),
            tuple(zip(cycles, left, strict=True)),
        )


@dataclass(frozen=True)
class Store:
    """A store by a hart.

    Attributes:
        cycle: cycle of the store.
        address: address of the store.
        hart: number of the hart; 0 is the host.
        pcs: address of the store instruction and of the calls under way, innermost first.
        order: the same for the wake-up by which the hart came to this; empty for one that was
            never woken.
    """

    cycle: int
    address: int
    hart: int
    pcs: tuple[int, ...]
    order: tuple[int, ...] = ()


@dataclass(frozen=True)
class Wake:
    """A wake-up of a hart: which one of this hart's, counted from 1, and who made it.

    Attributes:
        hart: number of the hart that was woken.
        number: number of the wake-up.
        pcs: address of the instruction that made it and of the calls under way, innermost first.
    """

    hart: int
    number: int
    pcs: tuple[int, ...]


@dataclass(frozen=True)
class Seen:
    """The observations of a run.

    Attributes:
        snapshots: event of a mark -> contents of the ranges in ``snapshots``, in their order.
        last: the last store into each watched range; None if there was none.
        stores: the stores to devices at the cycles in ``stack_at``.
        wakes: the wake-ups with the numbers in ``wakes``.
        woken: number of wake-ups of each hart.
        returns: for those ``calls`` that returned, the cycle and the contents of the range.
    """

    snapshots: Mapping[int, tuple[bytes, ...]] = field(repr=False)
    last: tuple[Store | None, ...] = ()
    stores: tuple[Store, ...] = ()
    wakes: tuple[Wake, ...] = ()
    woken: tuple[int, ...] = ()
    returns: tuple[tuple[int, bytes], ...] = field(default=(), repr=False)


def _write_words(path: Path, words: Sequence[int]) -> None:
    path.write_bytes(struct.pack(f"<{len(words)}I", *words))


def _cut(data: bytes, ranges: Sequence[Range]) -> tuple[bytes, ...]:
    parts, at = [], 0
    for area in ranges:
        parts.append(data[at : at + area.size])
        at += area.size
    return tuple(parts)
