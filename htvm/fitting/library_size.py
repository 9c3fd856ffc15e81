"""Estimate of the machine code of the runtime's functions that a program calls.

Drivers and libraries of kernels are read after preprocessing.  A function is counted once, and not
at all if nothing calls it, because the linker drops it.  An inline function is counted for each
place in the source where a called function, or another inline one, calls it: where it is inlined
again with other constants, most of it goes.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from byoc_dory.soc.header import render
from htvm.firmware.host import driver_sources
from htvm.firmware.isa import compiled_isa
from htvm.firmware.paths import driver_folders, runtime_c, simd_folders
from htvm.firmware.rv32 import platform_sources
from htvm.fitting.preprocessing import LITERAL, preprocessed

if TYPE_CHECKING:
    from byoc_dory.soc.base import Soc
    from htvm.aot.program import Program

__all__ = ["WORD", "called_functions", "library_bytes"]

WORD = re.compile(r"[A-Za-z_]\w*|\d+|[-+*/<>=&|^%!?:]+|\[|\(|;")
"""What counts as a word of C."""

# Bytes per word of C, and per instruction in assembly, which is not compressed.
_WORD_BYTES, _INSTRUCTION = 1.0, 4

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_NAME = re.compile(r"[A-Za-z_]\w*")
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
# Functions of the HAL become an instruction, which stands for the words of the call.
_HAL = "htvm_hal_"
# A definition: what stands before the name, the name, its parameters.
_FUNCTION = re.compile(r"([A-Za-z_][\w \t\n*()]*?)\b(\w+)\s*\(([^;{}]*)\)\s*\{")
_ATTRIBUTE = re.compile(r"__attribute__\s*\(\((\w+)(?:\([^()]*\))?(?:,[^()]*)?\)\)")
# A number, or an expression of numbers, as the macros of registers become.
_NUMBER = re.compile(r"\b0[xX][0-9a-fA-F]+[uUlL]*\b|\b\d+[uUlL]+\b")
_CONSTANT = re.compile(r"(?<!\w)\(\s*\d+(?:\s*[-+*/<>&|]+\s*\d+)*\s*\)")
_ASSEMBLY = re.compile(r"\b__asm__\s*(?:volatile\s*)?\(")
_TEMPLATE = re.compile(r'(?:\s*"(?:[^"\\\n]|\\.)*")*')
# Lines of assembly without an instruction: empty, a label alone, or a directive.
_INSERTED = re.compile(r"\s*(?:\w+:\s*)?(?!\.(?!insn|word))\S")


@dataclass(frozen=True)
class _Function:
    """A function: its own bytes, how often it names others, and how it is compiled."""

    bytes: float
    names: Counter[str]
    inline: bool
    static: bool


_Unit = dict[str, _Function]


def library_bytes(program: Program, soc: Soc) -> float:
    """Return the estimated bytes of all functions of the SoC's drivers that a program calls."""
    return sum(called_functions(program, soc).values())


def called_functions(program: Program, soc: Soc) -> dict[tuple[int, str], float]:
    """Return the estimated bytes of each function that a program calls, by its file and name.

    Files are numbered as in `driver_sources`.  What generated C itself has of headers is part of
    its own estimate.
    """
    units = _units(soc)
    public = {
        name: number
        for number, unit in enumerate(units)
        for name, function in unit.items()
        if not function.static and not function.inline
    }
    waiting = [(public[name], name) for name in sorted(_named(program, soc) & public.keys())]
    found: dict[tuple[int, str], float] = {}
    while waiting:
        number, name = waiting.pop()
        if (number, name) in found:
            continue
        found[number, name], names = _with_inlined(units[number], name)
        for other in sorted(names):
            if other in units[number]:
                waiting.append((number, other))
            elif other in public:
                waiting.append((public[other], other))
    return found


def _named(program: Program, soc: Soc) -> set[str]:
    """Return all names in generated C and the start-up, and in inline functions they call."""
    start = (path.read_text(encoding="utf-8") for path in platform_sources())
    source = _COMMENT.sub(" ", "\n".join([program.layers_source, program.cpu_source, *start]))
    root = _Function(0, Counter(_NAME.findall(source)), inline=False, static=False)
    headers = tuple(sorted({*program.headers, *program.cpu_headers}))
    return _with_inlined({**_generated(soc, headers), "": root}, "")[1]


def _with_inlined(unit: _Unit, name: str) -> tuple[float, set[str]]:
    """Return the bytes of a function with what is inlined, and the names of all others in it."""
    total, names, waiting = unit[name].bytes, set(), [name]
    inlined: set[str] = set()
    while waiting:
        for other, times in unit[waiting.pop()].names.items():
            known = unit.get(other)
            if known is None or not known.inline:
                names.add(other)
                continue
            total += times * known.bytes
            if other not in inlined:
                inlined.add(other)
                waiting.append(other)
    return total, names


@lru_cache(maxsize=8)
def _units(soc: Soc) -> tuple[_Unit, ...]:
    """Return the functions of each C file of the SoC's drivers, with those of its headers."""
    return tuple(
        _read(path.read_text(encoding="utf-8"), path.name, soc, path.parent)
        for path in driver_sources(soc)
    )


@lru_cache(maxsize=8)
def _generated(soc: Soc, headers: tuple[str, ...]) -> _Unit:
    """Return the functions of headers that generated C includes."""
    text = "\n".join(f'#include "{header}"' for header in headers)
    return _read(text, "the generated C", soc)


def _read(text: str, name: str, soc: Soc, *folders: Path) -> _Unit:
    root = runtime_c()
    places = (
        *folders, *driver_folders(soc), *simd_folders(soc),
        root / "include", root / "platform" / "rv32",
    )  # fmt: skip
    _, *extensions = compiled_isa(soc.host).split("_")
    macros = {"__riscv": "1", **{f"__riscv_{extension}": "1" for extension in extensions}}
    return _functions(preprocessed(text, name, places, macros, {"htvm_soc.h": render(soc)}))


def _functions(text: str) -> _Unit:
    """Return the functions that preprocessed C defines."""
    text = _NUMBER.sub("1", _ATTRIBUTE.sub(r"\1", text))
    folds = 1
    while folds:
        text, folds = _CONSTANT.subn("1", text)
    found: _Unit = {}
    at = 0
    while (head := _FUNCTION.search(text, at)) is not None:
        at = _end(text, head.end(), "{}")
        body = text[head.end() : at]
        code, instructions = _without_assembly(body)
        words = len(WORD.findall(_STRING.sub(" x ", code)))
        before = head[1]
        found[head[2]] = _Function(
            0 if head[2].startswith(_HAL) else _WORD_BYTES * words + _INSTRUCTION * instructions,
            Counter(_NAME.findall(code)),
            inline="inline" in _NAME.findall(before) and "noinline" not in before,
            static="static" in _NAME.findall(before),
        )
    return found


def _without_assembly(body: str) -> tuple[str, int]:
    """Return a body without its assembly, and the number of instructions in that."""
    parts, at, count = [], 0, 0
    while (found := _ASSEMBLY.search(body, at)) is not None:
        parts.append(body[at : found.start()])
        at = _end(body, found.end(), "()")
        template = _TEMPLATE.match(body, found.end())
        assert template is not None
        lines = "".join(_STRING.findall(template[0])).replace("\\n", "\n").split("\n")
        count += sum(_INSERTED.match(line) is not None for line in lines)
    return "".join([*parts, body[at:]]), count


def _end(text: str, at: int, brackets: str) -> int:
    """Return where the bracket that is open at a place is closed."""
    depth = 1
    for found in re.compile(LITERAL + f"|[{re.escape(brackets)}]").finditer(text, at):
        depth += {brackets[0]: 1, brackets[1]: -1}.get(found[0], 0)
        if depth == 0:
            return found.end()
    return len(text)
