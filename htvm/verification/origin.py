"""The origin of an element: from its address back through transfers and triggers to lines of C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from htvm.aot.entry import model_sources
from htvm.sim.causes import DMA, HOST
from htvm.sim.look import HostStore, Look, Range
from htvm.verification.types import Origin

if TYPE_CHECKING:
    from htvm.firmware.lines import SourceLine
    from htvm.verification.observe import ObservableMachine, Observed

__all__ = ["origins"]

Event: TypeAlias = Mapping[str, Any]


def origins(
    machine: ObservableMachine, observed: Observed, address: int, size: int, step: int
) -> tuple[Origin, ...]:
    """Find who wrote ``size`` bytes at a device address, by running once more.

    Args:
        machine: the machine and its program.
        observed: its first run.
        address: address of the element.
        size: number of its bytes.
        step: the step after which the element has the value in question.

    Returns:
        The last writer first: a store of the host, or a transfer and the trigger that computed the
        transferred data.  Without lines and without stores of the host if the machine's harts
        cannot be watched.
    """
    end = observed.marks[2 * step + 1]
    events = [event for event in observed.done.events if event["unit"] != HOST]
    chain = _chain(events, address, end)
    if not machine.watchable:
        return tuple(
            Origin(_said(event, _number(events, event)), event["issued"] - observed.begin, None)
            for event in chain
        )
    look = Look(
        watch=Range(address, size),
        until=2 * step + 1,
        stack_at=tuple(dict.fromkeys(event["issued"] for event in chain)),
        functions=machine.lines.functions,
    )
    seen = machine.run(look).seen
    assert seen is not None
    writer = _Writer(machine, observed.begin)
    if seen.last is not None and (not chain or chain[0]["end"] < seen.last.cycle):
        return (writer.store(seen.last),)
    at = {store.cycle: store for store in seen.stores}
    return tuple(
        writer.device(event, _number(events, event), at.get(event["issued"])) for event in chain
    )


def _chain(events: Sequence[Event], address: int, end: int) -> list[Event]:
    """Return the device events through which a byte got to its place, the last first."""
    chain: list[Event] = []
    limit = end
    # A transfer copies data from elsewhere; any other event is where the data originate.
    for _ in range(4):
        found = _last_writer(events, address, limit, inclusive=not chain)
        if found is None:
            break
        chain.append(found)
        if found["unit"] != DMA:
            break
        address = found["from"] + (address - found["to"])
        limit = found["issued"]
    return chain


def _last_writer(
    events: Sequence[Event], address: int, limit: int, *, inclusive: bool
) -> Event | None:
    covering = [
        event
        for event in events
        if 0 <= address - event.get("to", address + 1) < event.get("written", 0)
        and (event["end"] <= limit if inclusive else event["issued"] < limit)
    ]
    return max(covering, key=lambda event: (event["issued"], event["end"]), default=None)


def _number(events: Sequence[Event], event: Event) -> int:
    """Return the event's number among those of its unit, counted from 1."""
    same = [other for other in events if other["unit"] == event["unit"]]
    return 1 + next(i for i, other in enumerate(same) if other is event)


def _said(event: Event, number: int) -> str:
    if event["unit"] == DMA:
        return f"stored by the DMA (transfer {number}, {event['written']} B)"
    return f"computed by the {event['unit']} core (trigger {number}, {event['what']})"


class _Writer:
    """Turns stores and events into origins."""

    def __init__(self, machine: ObservableMachine, begin: int) -> None:
        self._lines = machine.lines
        self._begin = begin
        self._texts = {
            name: text.splitlines() for name, text in model_sources(machine.program).items()
        }

    def store(self, store: HostStore) -> Origin:
        """Return the origin for a store by the host."""
        place, inner = self._places(store)
        return Origin("stored by the host", store.cycle - self._begin, place, inner)

    def device(self, event: Event, number: int, store: HostStore | None) -> Origin:
        """Return the origin for a device; ``store`` is the host's store that started it."""
        what = _said(event, number)
        place, inner = (None, None) if store is None else self._places(store)
        return Origin(what, event["issued"] - self._begin, place, inner)

    def _places(self, store: HostStore) -> tuple[SourceLine | None, SourceLine | None]:
        """Return the line of generated C, and the line of the runtime it led to, if different."""
        frames = [place for pc in store.pcs for place in self._lines.places(pc)]
        ours = next((place for place in frames if place.file in self._texts), None)
        inner = frames[0] if frames and frames[0] != ours else None
        if ours is None:
            return None, inner
        text = self._texts[ours.file]
        line = text[ours.line - 1].strip() if ours.line <= len(text) else ""
        return replace(ours, text=line), inner
