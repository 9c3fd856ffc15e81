"""Comparing memory contents with the reference after each step; the first difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from byoc_dory.tileloop.elements import elements_of_tiles
from htvm.aot.entry import model_sources, place
from htvm.sim.causes import DMA
from htvm.sim.look import Look, Range, Watch
from htvm.tools.verification.types import Difference, Origin, StepCheck, TileAt

if TYPE_CHECKING:
    from byoc_dory.layers import Array
    from byoc_dory.tileloop.program import LoopTile, TileProgram
    from htvm.aot.program import Step
    from htvm.firmware.lines import SourceLine
    from htvm.sim.look import Seen, Store
    from htvm.tools.verification.observe import ObservableMachine, Observed, Result
    from htvm.tools.verification.types import Number


def compare_steps(
    machine: ObservableMachine, observed: Observed, results: Sequence[Result]
) -> tuple[tuple[StepCheck, ...], tuple[Result, int] | None]:
    """Compare all steps.

    Returns:
        One check per step, and the first wrong tensor with the step after which it is wrong: the
            step
        that wrote it, or a later one that overwrote it while it was still needed.
    """
    own_results = {result.step: result for result in results}
    checks: list[StepCheck] = []
    first: tuple[Result, int] | None = None
    living: list[Result] = []
    for index, step in enumerate(machine.program.steps):
        living = [result for result in living if result.last >= index]
        if first is None:
            spoilt = (r for r in living if _wrong(machine, observed, r, index).any())
            found = next(spoilt, None)
            first = None if found is None else (found, index)
        result = own_results.get(index)
        checks.append(_check(machine, observed, index, step, result))
        if result is not None and checks[-1].different == 0:
            living.append(result)
        elif result is not None and first is None:
            first = (result, index)
    return tuple(checks), first


def _wrong(machine: ObservableMachine, observed: Observed, result: Result, step: int) -> Array:
    """Return which elements of a tensor are wrong at the end of a step."""
    return differing(observed.values(result, machine.address(result), step), result.expected)


def differing(found: Array, expected: Array) -> Array:
    """Return which elements differ in any bit."""
    wrong = _bytes(found) != _bytes(expected)
    return wrong.reshape(*expected.shape, expected.dtype.itemsize).any(axis=-1)


def largest_difference(found: Array, expected: Array) -> Number:
    """Return the largest absolute difference of two arrays, 0 if they are equal."""
    wide = np.float64 if found.dtype.kind == "f" else np.int64
    return _number(np.abs(found.astype(wide) - expected).max(initial=0))


def _bytes(values: Array) -> Array:
    return np.asarray(values, order="C").reshape(-1).view(np.uint8)


def _check(
    machine: ObservableMachine, observed: Observed, index: int, step: Step, result: Result | None
) -> StepCheck:
    if result is None:
        return StepCheck(index, step.layer, place(step), "")
    found = observed.values(result, machine.address(result), index)
    wrong = differing(found, result.expected)
    largest = largest_difference(found[wrong], result.expected[wrong])
    return StepCheck(
        index, step.layer, place(step), result.tensor, wrong.size, int(wrong.sum()), largest
    )


def first_difference(
    machine: ObservableMachine, observed: Observed, result: Result, step: int
) -> Difference:
    """Describe the first element of a tensor that is wrong at the end of a step."""
    wrong = _wrong(machine, observed, result, step)
    address = machine.address(result)
    actual = observed.values(result, address, step)
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
        value=_number(actual[element]),
        expected=_number(result.expected[element]),
        different=int(wrong.sum()),
        elements=int(wrong.size),
        memory=result.memory,
        address=where,
        tile=within[0][0] if within else None,
        tiles_different=len(within),
        origins=origins(
            machine, observed, where, result.expected.dtype.itemsize, observed.end_of(step)
        ),
    )


def _number(value: Any) -> Number:
    number: Number = value.item()
    return number


def _wrong_tiles(program: TileProgram, offsets: Array, wrong: Array) -> list[tuple[TileAt, Array]]:
    """The tiles that contain wrong elements, in the order of execution, with these elements."""
    tiles = []
    for tile, made in elements_of_tiles(program, offsets):
        if (wrong & made).any():
            tiles.append((_tile_at(program, tile, made), wrong & made))
    return tiles


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


Event: TypeAlias = Mapping[str, Any]

_LINKS = 6
"""Most places of a byte that are looked at, one after another; a transfer moves it on."""

_HOST_HART = 0


def origins(
    machine: ObservableMachine, observed: Observed, address: int, size: int, end: int
) -> tuple[Origin, ...]:
    """Find who wrote ``size`` bytes at a device address, by running once more.

    Args:
        machine: the machine and its program.
        observed: its first run.
        address: address of the element.
        size: number of its bytes.
        end: the cycle at which the element has the value in question.

    Returns:
        The last writer first: transfers, and then the store of a hart or the trigger that computed
        the transferred data.
    """
    events = [event for event in observed.done.events if event.get("written", 0) > 0]
    links = _chain(events, address, end)
    events_found = [link.event for link in links if link.event is not None]
    transfers = [_event_number(events, event) for event in events_found if event["unit"] == DMA]
    look = Look(
        watches=tuple(Watch(Range(link.address, size), link.limit) for link in links),
        stack_at=tuple(dict.fromkeys(event["issued"] for event in events_found)),
        wakes=tuple(dict.fromkeys(transfers)),
        functions=machine.lines.functions,
    )
    seen = machine.run(look).seen
    assert seen is not None
    writer = _Writer(machine, observed.begin, events, seen)
    writers: list[Origin] = []
    for link, last in zip(links, seen.last, strict=True):
        if last is not None and (link.event is None or link.event["end"] <= last.cycle):
            return (*writers, writer.store(last))
        if link.event is not None:
            writers.append(writer.device(link.event))
    return tuple(writers)


@dataclass(frozen=True)
class _Link:
    """A place of a byte before a cycle, and the last event before it that wrote there."""

    address: int
    limit: int
    event: Event | None


def _chain(events: Sequence[Event], address: int, end: int) -> list[_Link]:
    """Return the places through which a byte got to its place, the last first."""
    chain: list[_Link] = []
    limit = end
    # A transfer copies data from elsewhere; any other event is where the data originate.
    while len(chain) < _LINKS:
        found = _last_writer(events, address, limit, inclusive=not chain)
        chain.append(_Link(address, limit, found))
        if found is None or found["unit"] != DMA:
            break
        number = _index(found, "to", address)
        assert number is not None
        address = _address(found, "from", number)
        limit = found["issued"]
    return chain


def _last_writer(
    events: Sequence[Event], address: int, limit: int, *, inclusive: bool
) -> Event | None:
    covering = [
        event
        for event in events
        if (event["end"] <= limit if inclusive else event["issued"] < limit)
        and _index(event, "to", address) is not None
    ]
    return max(covering, key=lambda event: (event["issued"], event["end"]), default=None)


def _index(event: Event, side: str, address: int) -> int | None:
    """Return which byte of an event is at an address; None if none of them."""
    offset: int = address - event[side]
    if not 0 <= offset < event["written"]:
        return None
    rows = event.get(f"{side}_rows")
    if rows is None:
        return offset
    count, stride, pixels, pixel_stride, size = rows
    row = min(offset // stride, count - 1) if count > 1 and stride else 0
    offset -= row * stride
    pixel = min(offset // pixel_stride, pixels - 1) if pixels > 1 and pixel_stride else 0
    offset -= pixel * pixel_stride
    return (row * pixels + pixel) * size + offset if offset < size else None


def _address(event: Event, side: str, number: int) -> int:
    """Return the address of a byte of an event."""
    first: int = event[side]
    rows = event.get(f"{side}_rows")
    if rows is None:
        return first + number
    _, stride, pixels, pixel_stride, size = rows
    pixel, byte = divmod(number, size)
    row, column = divmod(pixel, pixels)
    return int(first + row * stride + column * pixel_stride + byte)


def _event_number(events: Sequence[Event], event: Event) -> int:
    """Return the event's number among those of its unit, counted from 1."""
    same = [other for other in events if other["unit"] == event["unit"]]
    return 1 + next(i for i, other in enumerate(same) if other is event)


class _Writer:
    """Turns stores and events into origins."""

    def __init__(
        self, machine: ObservableMachine, begin: int, events: Sequence[Event], seen: Seen
    ) -> None:
        self._lines = machine.lines
        self._begin = begin
        self._events = events
        self._seen = seen
        self._texts = {
            name: text.splitlines() for name, text in model_sources(machine.program).items()
        }

    def store(self, store: Store) -> Origin:
        """Return the origin for a store by a hart."""
        order = () if store.hart == _HOST_HART else store.order
        place, inner = self._places((*store.pcs, *order))
        who = "the host" if store.hart == _HOST_HART else f"hart {store.hart}"
        return Origin(f"stored by {who}", store.cycle - self._begin, place, inner, store.hart)

    def device(self, event: Event) -> Origin:
        """Return the origin for a device, which a hart's store started."""
        number = _event_number(self._events, event)
        if event["unit"] == DMA:
            what = f"stored by the DMA (transfer {number}, {event['bytes']} B)"
        else:
            what = f"computed by the {event['unit']} core (trigger {number}, {event['what']})"
        place, inner = self._places(self._started(event, number))
        return Origin(what, event["issued"] - self._begin, place, inner)

    def _started(self, event: Event, number: int) -> tuple[int, ...]:
        """Return the calls under way where a device was started, and where that was ordered."""
        stores = [store for store in self._seen.stores if store.cycle == event["issued"]]
        if not stores:
            return ()
        # Two harts may store to devices in the same cycle, if one of them serves the DMA alone.
        store = max(stores, key=lambda one: one.hart) if event["unit"] == DMA else stores[0]
        if store.hart == _HOST_HART:
            return store.pcs
        # A hart that takes transfers from a queue is woken for each of them.
        transfers = sum(other["unit"] == DMA for other in self._events)
        order = next(
            (w.pcs for w in self._seen.wakes if (w.hart, w.number) == (store.hart, number)),
            store.order,
        )
        served = self._seen.woken[store.hart] == transfers
        return (*store.pcs, *(order if served else store.order))

    def _places(self, pcs: Sequence[int]) -> tuple[SourceLine | None, SourceLine | None]:
        """Return the line of generated C, and the line of the runtime it led to, if different."""
        frames = [place for pc in pcs for place in self._lines.places(pc)]
        ours = next((place for place in frames if place.file in self._texts), None)
        inner = frames[0] if frames and frames[0] != ours else None
        if ours is None:
            return None, inner
        text = self._texts[ours.file]
        line = text[ours.line - 1].strip() if ours.line <= len(text) else ""
        return replace(ours, text=line), inner
