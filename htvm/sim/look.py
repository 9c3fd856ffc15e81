"""Observing a run: memory contents at its marks, and the code that stores to memory."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Look", "Range", "Seen", "HostStore"]


@dataclass(frozen=True)
class Range:
    """``size`` bytes at device address ``address``: RAM, or the devices' own memory."""

    address: int
    size: int


@dataclass(frozen=True)
class Look:
    """What to observe during a run.  Observation does not change a run.

    Attributes:
        snapshots: ranges to record at every mark with an odd event (the end of a step).
        watch: range whose last store before the mark ``until`` is reported.
        until: event of that mark.
        stack_at: cycles at which stores are reported with their call stack.
        functions: addresses of all functions, to recognise jumps that are calls.
    """

    snapshots: tuple[Range, ...] = ()
    watch: Range | None = None
    until: int = 0
    stack_at: tuple[int, ...] = ()
    functions: tuple[int, ...] = ()

    def options(self, folder: Path) -> list[str]:
        """Return the simulator's options; its files go into ``folder``."""
        options: list[str] = []
        for area in self.snapshots:
            options += ["--snapshot", f"{area.address:#x}:{area.size}"]
        if self.snapshots:
            options += ["--snapshots", str(folder / "snapshots")]
        if self.watch is not None:
            area = self.watch
            options += ["--watch", f"{area.address:#x}:{area.size}:{self.until}"]
        for cycle in self.stack_at:
            options += ["--stack-at", str(cycle)]
        if self.functions:
            words = sorted(set(self.functions))
            (folder / "functions").write_bytes(struct.pack(f"<{len(words)}I", *words))
            options += ["--functions", str(folder / "functions")]
        return options

    def seen(self, facts: Mapping[str, Any], folder: Path) -> Seen:
        """Return what the simulator reported and left in ``folder``."""
        data = (folder / "snapshots").read_bytes() if self.snapshots else b""
        ends = [event for _, event in facts["marks"] if event % 2]
        each = sum(area.size for area in self.snapshots)
        moments = {
            event: _cut(data[number * each : (number + 1) * each], self.snapshots)
            for number, event in enumerate(ends)
            if self.snapshots
        }
        last = facts.get("last_store")
        return Seen(
            moments,
            None if last is None else _store(last),
            tuple(_store(store) for store in facts.get("stores", ())),
        )


@dataclass(frozen=True)
class HostStore:
    """A store by the host.

    Attributes:
        cycle: cycle of the store.
        address: address of the store.
        pcs: address of the store instruction and of the calls under way, innermost first.
    """

    cycle: int
    address: int
    pcs: tuple[int, ...]


@dataclass(frozen=True)
class Seen:
    """The observations of a run.

    Attributes:
        snapshots: event of a mark -> contents of the ranges in ``snapshots``, in their order.
        last: the last store into the watched range; None if there was none.
        stores: the stores at the cycles in ``stack_at``.
    """

    snapshots: Mapping[int, tuple[bytes, ...]] = field(repr=False)
    last: HostStore | None
    stores: tuple[HostStore, ...]


def _cut(data: bytes, ranges: Sequence[Range]) -> tuple[bytes, ...]:
    parts, at = [], 0
    for area in ranges:
        parts.append(data[at : at + area.size])
        at += area.size
    return tuple(parts)


def _store(facts: Mapping[str, Any]) -> HostStore:
    return HostStore(facts["cycle"], facts["address"], tuple(facts["pcs"]))
