"""The numbers of a SoC description, by name: ``digital.row_cycles``, ``L1.size``, ``dma.granule``.

Every number of the description's records can be given like a parameter, also in a target's name:
``diana:dma.queue_depth=8``.  A name starts with that of an accelerator or memory, or with the
field of `Soc` that holds the record; a number that two records of the same name have, such as the
cores of a cluster and of its accelerator, is one number.  Addresses are not among them: the
simulated address map is no property of a design.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from byoc_dory.errors import TargetError, nearest
from byoc_dory.soc.base import Soc
from byoc_dory.soc.cores import QemuMachine
from byoc_dory.soc.header import render
from byoc_dory.soc.parameters import Parameter, Value, described
from byoc_dory.soc.parts import SimControl

_NAMED = ("memories", "accelerators")  # fields of `Soc` with records that have names
_RECORDS = ("host", "dma", "cluster")
_ADDRESSES = ("registers", "base")
_SIZES = ("size", "reserved", "stack", "worker_stack", "weight_memory")
_MOST = (1 << 31) - 1  # the C side has 32-bit constants
_STEP = 16  # bytes: what sections and stacks are aligned to


def numbers(soc: Soc) -> tuple[Parameter, ...]:
    """Return every number of a description that no parameter sets, in the description's order."""
    parameters: dict[str, Parameter] = {}
    for name, value in _all_numbers(soc):
        parameters.setdefault(name, _parameter(name, value))
    declared = {name for entry in soc.parameters for name in (entry.name, entry.sets)}
    return tuple(entry for entry in parameters.values() if entry.name not in declared)


def known_parameters(soc: Soc) -> tuple[Parameter, ...]:
    """Return all that can be given: the parameters that a SoC declares, and all its numbers."""
    return (*soc.parameters, *numbers(soc))


def adjustable(soc: Soc) -> str:
    """Return all that can be given, with the values of declared parameters, for messages."""
    names = ", ".join(entry.name for entry in numbers(soc))
    declared = f"its parameters are {described(soc.parameters)}" if soc.parameters else ""
    return "; ".join(part for part in (declared, f"numbers of its description: {names}") if part)


def unknown(soc: Soc, name: object, where: str) -> TargetError:
    """Return the error for a name that is neither a parameter nor a number of the description."""
    setting = next((entry.name for entry in soc.parameters if entry.sets == name), "")
    if setting:
        return TargetError(f"{name} is {setting} here", where=where, hint=f"give {setting}")
    near = nearest(name, [entry.name for entry in known_parameters(soc)])
    return TargetError(
        f"there is no parameter {name!r}", where=where, hint=f"{near}{adjustable(soc)}"
    )


def with_numbers(soc: Soc, given: Mapping[str, object], where: str) -> Soc:
    """Return the SoC with other values of some of its numbers.

    Args:
        soc: the description, with the host of the target.
        given: values by name, as text or Python values.
        where: what to name in an error.

    Raises:
        TargetError: a name is unknown, a value is not possible, or the description refuses it.
    """
    parameters = {entry.name: entry for entry in numbers(soc)}
    for name in given:
        if name not in parameters:
            raise unknown(soc, name, where)
    values = {name: parameters[name].parse(value, where) for name, value in given.items()}
    changed = {
        name: values[name]
        for name in parameters
        if name in values and values[name] != parameters[name].default
    }
    if not changed:
        return soc
    assignments = ", ".join(
        f"{name}={parameters[name].text(value)}" for name, value in changed.items()
    )
    try:
        changed_soc = _replaced(soc, changed)
        _check_memories(changed_soc)
        render(changed_soc)  # refuses what cannot be simulated
    except Exception as error:  # noqa: BLE001 - whatever the code of a description raises
        reason = error.what if isinstance(error, TargetError) else f"{error}"
        hint = error.hint if isinstance(error, TargetError) else ""
        raise TargetError(
            f"{soc.title} cannot have {assignments}: {reason or type(error).__name__}",
            where=where,
            hint=hint or "give another value, or the numbers that go with it",
        ) from error
    # What is known of the power is known for the numbers as described.
    return replace(changed_soc, numbers=tuple(changed.items()), powers=())


# ------------------------------------------------------------------ reading


def _all_numbers(soc: Soc) -> Iterator[tuple[str, float]]:
    yield "clock_hz", soc.clock_hz
    for group in _NAMED:
        for record in getattr(soc, group):
            yield from _numbers_of(record, record.name)
    for name in _RECORDS:
        if getattr(soc, name) is not None:
            yield from _numbers_of(getattr(soc, name), name)


def _numbers_of(value: Any, name: str) -> Iterator[tuple[str, float]]:
    """Yield the numbers of a record, number or tuple, each with its name."""
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        yield name, value
    elif isinstance(value, tuple):
        for place, entry in enumerate(value):
            yield from _numbers_of(entry, f"{name}.{place}")
    elif is_dataclass(value) and not isinstance(value, SimControl | QemuMachine):
        for field in fields(value):
            if field.name not in _ADDRESSES and field.init:
                yield from _numbers_of(getattr(value, field.name), f"{name}.{field.name}")


def _parameter(name: str, value: float) -> Parameter:
    """Return the parameter of a number: widths and counts are at least 1, cycles may be 0."""
    field = name.rpartition(".")[2]
    title = f"in the description: {value}"
    if isinstance(value, float):
        return Parameter(name, value, title, low=0, high=_MOST)
    free = value == 0 or "cycles" in name or field.isdecimal()
    unit = "B" if field in _SIZES else ""
    step = _STEP if unit and value % _STEP == 0 else 1
    return Parameter(name, value, title, unit, 0 if free else step, _MOST // step * step, step)


# ------------------------------------------------------------------ replacing


def _replaced(soc: Soc, changed: Mapping[str, Value]) -> Soc:
    fields: dict[str, Any] = {}
    if "clock_hz" in changed:
        fields["clock_hz"] = changed["clock_hz"]
    for group in _NAMED:
        fields[group] = tuple(
            _with_changes(each, each.name, changed) for each in getattr(soc, group)
        )
    for name in _RECORDS:
        fields[name] = _with_changes(getattr(soc, name), name, changed)
    return replace(soc, **fields)


def _with_changes(value: Any, name: str, changed: Mapping[str, Value]) -> Any:
    """Return a record, number or tuple with the changed numbers; itself if none is in it."""
    if name in changed:
        return changed[name]
    if not any(each.startswith(f"{name}.") for each in changed):
        return value
    if isinstance(value, tuple):
        return tuple(_with_changes(each, f"{name}.{at}", changed) for at, each in enumerate(value))
    if not is_dataclass(value) or isinstance(value, type):
        return value
    new = {
        field.name: _with_changes(getattr(value, field.name), f"{name}.{field.name}", changed)
        for field in fields(value)
        if field.init
    }
    return replace(value, **new)


def _check_memories(soc: Soc) -> None:
    """Refuse memories that overlap, or that reach into registers."""
    ordered = sorted(soc.memories, key=lambda memory: memory.base)
    for memory, next_memory in zip(ordered, ordered[1:], strict=False):
        if memory.end + memory.reserved > next_memory.base:
            room = next_memory.base - memory.base
            raise TargetError(
                f"{memory.name} would reach into {next_memory.name}",
                hint=f"it has room for {room} B",
            )
    starts = [each.registers for each in (*soc.accelerators, soc.dma, soc.cluster) if each]
    starts = [each for each in (*starts, soc.sim.putchar) if each]
    for memory in soc.memories:
        above = [start for start in starts if start >= memory.base]
        if above and memory.end + memory.reserved > min(above):
            room = min(above) - memory.base
            raise TargetError(
                f"{memory.name} would reach into registers", hint=f"it has room for {room} B"
            )
