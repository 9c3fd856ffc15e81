"""The lists of docs/operators.md, from the handlers and rules themselves.

    python -m benchmarks.operators_page [--write]

What a handler of ONNX reads of a node is found in its code, and that of the functions that it
calls: attributes by the names that they are asked for.  Whatever else a node has set is refused
when a file is read (`htvm.frontend.onnx.schema`).
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from byoc_dory.soc.registry import resolve
from htvm.frontend.onnx.affine.functions import FUNCTIONS
from htvm.frontend.onnx.dialect import READERS
from htvm.frontend.onnx.tflite_qdq import HANDLERS as RELAX_TFLITE
from htvm.frontend.relax_onnx import HANDLERS as RELAX_ONNX
from htvm.frontend.tflite import HANDLERS as TFLITE
from htvm.frontend.tflite import WIDE_HANDLERS as WIDE

__all__ = ["PAGE", "attributes_of", "page", "sections"]

PAGE = Path(__file__).parents[1] / "docs" / "operators.md"
_READ = re.compile(
    r'node\.(?:number|integer|int32|integers|text)\(\s*"(\w+)"|"(\w+)" in node\.attributes'
    r'|attributes\.get\("(\w+)"'
)
_ACCELERATORS = {
    "DIANA's digital core": ("diana", "digital"),
    "DIANA's analog core": ("diana", "analog"),
    "N-EUREKA": ("siracusa", "neureka"),
    "ITA": ("snitch_ita", "ita"),
    "The cores of a cluster": ("siracusa", "cluster"),
    "dla": ("dla", "dla"),
    "Ethos-U55": ("ethos_u55", "ethos_u55"),
}
_PAIR = re.compile(r'(?:pair|_pair)\((?:node, )?"(\w+)"')


def sections() -> dict[str, list[str]]:
    """Return heading -> the lines of its list."""
    found = {
        "TFLite": first_lines(TFLITE[name] for name in sorted(TFLITE)),
        "TFLite with int16 activations": [", ".join(sorted(WIDE))],
        "Relax from TFLite": [_entries(RELAX_TFLITE)],
        "Relax from ONNX and torch": [_relax_names(RELAX_ONNX)],
    }
    for dialect, entry in READERS.items():
        handlers = entry.load().handlers
        found[f"`{dialect}`: {entry.title}"] = [
            _entries(handlers),
            f"Types: {entry.types}.",
            f"Oracle: {entry.oracle}.",
        ]
    for heading, (target, name) in _ACCELERATORS.items():
        found[heading] = list(resolve(target).soc.accelerator(name).statements)
    return found


def _relax_names(handlers: Iterable[str]) -> str:
    return ", ".join(f"`{name.removeprefix('relax.')}`" for name in sorted(handlers))


def first_lines(things: Iterable[Any]) -> list[str]:
    """Return the public statements of functions, each once."""
    functions = (thing.func if isinstance(thing, partial) else thing for thing in things)
    return list(dict.fromkeys((each.__doc__ or "").strip().split("\n")[0] for each in functions))


def _entries(handlers: Mapping[str, Any]) -> str:
    return ", ".join(_entry(name, handlers[name]) for name in sorted(handlers))


def _entry(name: str, handler: Any) -> str:
    attributes = attributes_of(handler, name)
    return f"`{name}`" + (f" ({', '.join(attributes)})" if attributes else "")


def attributes_of(handler: Any, name: str) -> tuple[str, ...]:
    """Return the attributes that a handler of an ONNX operator reads, sorted."""
    found: set[str] = set()
    parts = [handler]
    while isinstance(parts[-1], partial):
        held = parts.pop()
        parts += [value for value in held.keywords.values() if inspect.isfunction(value)]
        parts.append(held.func)
    for part in parts:
        found |= _reached(inspect.unwrap(part), 0)
    function = FUNCTIONS.get(name.removeprefix("QLinear"))
    if function is not None and any("FUNCTIONS" in _source(part) for part in parts):
        found |= set(function.attributes)
    standard = _standard(name)
    return tuple(sorted(found & standard if standard else found))


@cache
def _standard(name: str) -> frozenset[str]:
    from onnx import defs

    return frozenset(
        attribute
        for schema in defs.get_all_schemas_with_history()
        if schema.name == name and not schema.domain
        for attribute in schema.attributes
    )


@cache
def _source(function: Any) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return ""


_DEEPEST = 5


@cache
def _reached(function: Any, depth: int) -> frozenset[str]:
    """Return the attributes that a function and those that it calls ask for."""
    source = _source(function)
    found = {part for match in _READ.finditer(source) for part in match.groups() if part}
    found |= {match.group(1) for match in _PAIR.finditer(source)}
    if depth >= _DEEPEST:
        return frozenset(found)
    scope = getattr(function, "__globals__", {})
    closed = inspect.getclosurevars(function).nonlocals if inspect.isfunction(function) else {}
    called = set(re.findall(r"\b(?:(\w+)\.)?(\w+)\(", source))
    for module, name in called:
        holder = scope.get(module) if module else None
        made = getattr(holder, name, None) if inspect.ismodule(holder) else None
        made = made or (None if module else closed.get(name, scope.get(name)))
        if inspect.isfunction(made) and made.__module__.startswith("htvm.frontend"):
            found |= _reached(made, depth + 1)
    return frozenset(found)


def page(text: str) -> str:
    """Return the page with the lists that the code gives instead of those that it has."""
    lists, heading, kept, done = sections(), "", [], set()
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        if not line.startswith("- ") or heading not in lists:
            kept.append(line)
        elif heading not in done:
            done.add(heading)
            kept += [f"- {item}" for item in lists[heading]]
    return "\n".join(kept) + "\n"


def main() -> None:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/operators.md")
    arguments = parser.parse_args()
    made = page(PAGE.read_text(encoding="utf-8"))
    if arguments.write:
        PAGE.write_text(made, encoding="utf-8")
    else:
        sys.stdout.write(made)


if __name__ == "__main__":
    main()
