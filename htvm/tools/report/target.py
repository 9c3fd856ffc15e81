"""One target in full: its description, its rules and its objectives."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from byoc_dory.soc.base import Accelerator
from htvm.tools.report.table import Column, count, table_of, text, wrapped

if TYPE_CHECKING:
    from byoc_dory.soc.base import Memory, Soc, Target

# Fields that are printed in another way, or are of no use to the reader.
_ELSEWHERE = {field.name for field in dataclasses.fields(Accelerator)}


def target_data(target: Target) -> dict[str, Any]:
    """Return everything about a target as JSON data; sizes in bytes, times in cycles."""
    soc = target.soc
    return {
        "target": target.name,
        "soc": soc.title,
        "clock_hz": soc.clock_hz,
        "policy": target.policy,
        "parameters": parameters_data(soc),
        "memories": [
            {"name": entry.name, "title": entry.title, "base": entry.base, "bytes": entry.size,
             "adjustable": entry.name in soc.adjustable}
            for entry in soc.memories
        ],
        "host": {
            "name": soc.host.name, "isa": soc.host.isa, "stack_bytes": soc.host.stack,
            "cycles_per": _constants(soc.host.cost),
        },
        "dma": None if soc.dma is None else _constants(soc.dma),
        "accelerators": [_accelerator(entry) for entry in target.accelerators],
        "powers": _powers(target),
    }  # fmt: skip


def parameters_data(soc: Soc) -> list[dict[str, Any]]:
    """Return the parameters of a SoC and their values as JSON data."""
    return [
        {"name": entry.name, "kind": entry.kind, "unit": entry.unit, "title": entry.title,
         "value": soc.settings[entry.name], "default": entry.default, "low": entry.low,
         "high": entry.high, "step": entry.step, "choices": list(entry.choices)}
        for entry in soc.parameters
    ]  # fmt: skip


def _accelerator(entry: Accelerator) -> dict[str, Any]:
    constants = _constants(entry)
    return {
        "name": entry.name,
        "title": entry.title,
        "works_on": entry.l1,
        "family": entry.family,
        "scheme": entry.scheme.name,
        "peak_macs_per_cycle": entry.peak_macs,
        "constants": {name: constants[name] for name in constants if name not in _ELSEWHERE},
        "rules": list(entry.statements),
        "objectives": {
            name: [f"{term.name} x {term.weight:,}" for term in objective.heuristics]
            for name, objective in entry.objectives.items()
        },
    }


def _constants(described: Any) -> dict[str, Any]:
    """Return the fields of a description, with registers as addresses."""
    found = dataclasses.asdict(described)
    return {name: _plain_value(name, value) for name, value in found.items()}


def _plain_value(name: str, value: object) -> object:
    if name == "registers" and isinstance(value, int):
        return f"0x{value:08X}"
    return list(value) if isinstance(value, tuple) else value


def _powers(target: Target) -> list[dict[str, Any]]:
    """Return the published powers of the units that this target may use."""
    usable = {entry.name for entry in target.accelerators}
    return [
        {"at_work": list(power.units), "milliwatts": power.milliwatts, "source": power.source}
        for power in target.soc.powers
        if set(power.units) <= usable
    ]


# ------------------------------------------------------------------------------ as text

_SCHEMES = {
    "shift": "int8 weights, one right shift for each layer",
    "ternary": "weights -1, 0, 1; converters behind the columns, then a product and a sum for "
    "each channel",
    "mul_shift": "int8 weights, a multiplier before the right shift",
}


def target_text(target: Target, width: int | None = None) -> str:
    """Return the same as text.

    Args:
        target: what to show.
        width: characters per line, where tables and lines are wrapped; no limit by default.
    """
    data = target_data(target)
    names = ", ".join(entry.name for entry in target.accelerators) or "none"
    head = (
        f"{target.name}: {data['soc']} at {data['clock_hz'] / 1e6:g} MHz, accelerators: {names}"
        + (f", policy {data['policy']}" if len(target.accelerators) > 1 else "")
    )
    parts = [head]
    if target.soc.parameters:
        parts.append(_parameters(target, width))
    parts += [_memories(target.soc, width), _host(data["host"])]
    if data["dma"] is not None:
        parts.append(
            "DMA between L2 and L1 (bytes, cycles)\n" + _listed_constants(data["dma"], ("name",))
        )
    parts += [_accelerator_text(entry) for entry in data["accelerators"]]
    if data["powers"]:
        lines = [
            f"  {' and '.join(entry['at_work'])} at work: {entry['milliwatts']:g} mW "
            f"({entry['source']})"
            for entry in data["powers"]
        ]
        parts.append("\n".join(["average powers", *lines]))
    shown = "\n\n".join(parts)
    return shown if width is None else "\n".join(wrapped(shown.split("\n"), width, " " * 6))


def _parameters(target: Target, width: int | None) -> str:
    """Return the parameters as a table, below an example of their use."""
    soc = target.soc
    table = table_of(
        soc.parameters,
        (Column("parameter"), lambda entry: entry.name),
        (Column("value"), lambda entry: entry.text(soc.settings[entry.name])),
        (Column("default"), lambda entry: entry.text(entry.default)),
        (Column("possible", wraps=True), lambda entry: entry.domain),
        (Column("what it is", wraps=True), lambda entry: entry.title),
    )
    return text(table, width)


def _memories(soc: Soc, width: int | None) -> str:
    def size(entry: Memory) -> str:
        return count(entry.size) + (" (adjustable)" if entry.name in soc.adjustable else "")

    table = table_of(
        soc.memories,
        (Column("memory"), lambda entry: entry.name),
        (Column("bytes", number=True), size),
        (Column("from"), lambda entry: f"0x{entry.base:08X}"),
        (Column("what it is", wraps=True), lambda entry: entry.title),
    )
    return text(table, width)


def _host(host: Mapping[str, Any]) -> str:
    head = f"host: {host['name']}, {host['isa']}, stack {count(host['stack_bytes'])} B"
    return f"{head}\nestimated cycles of the host for each:\n" + _listed_constants(
        host["cycles_per"]
    )


def _accelerator_text(entry: Mapping[str, Any]) -> str:
    peak = entry["peak_macs_per_cycle"]
    lines = [
        f"{entry['name']}: {entry['title']}, works on {entry['works_on']}"
        + ("" if peak is None else f", at most {peak:,g} MAC/cycle"),
        f"  requantization: {entry['scheme']} ({_SCHEMES.get(entry['scheme'], 'its own')})",
        "  takes a layer if:",
        *(f"    {rule}" for rule in entry["rules"]),
        "  tiling objectives (beside latency):",
        *(
            f"    {name}: {', '.join(terms) or 'bytes of L1 alone'}"
            for name, terms in entry["objectives"].items()
        ),
        "  constants (bytes, cycles):",
    ]
    return "\n".join(lines) + "\n" + _listed_constants(entry["constants"], indent=4)


def _listed_constants(
    constants: Mapping[str, Any], without: tuple[str, ...] = (), indent: int = 2
) -> str:
    """Return constants as text, one per line."""
    width = max(map(len, constants), default=0)
    return "\n".join(
        f"{' ' * indent}{name:{width}}  {_value(value)}"
        for name, value in constants.items()
        if name not in without
    )


def _value(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else f"{value}"
