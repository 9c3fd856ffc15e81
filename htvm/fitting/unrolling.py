"""Estimate of kernels that the compiler unrolls: loops of few turns, written out turn by turn.

Below limits, a loop becomes as many copies of its body, and a loop around it may follow.  What is
left has no counters and hardly any addresses to compute, so its bytes follow from the accesses and
the operations on reals, which are calls.  Measured with clang -O2 for RV32IMC on paddings, products
and choices of the larger of two reals: sizes of 100 to 2,400 B within 35 % where loops unroll.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["unrolled_bytes"]

_LOOP = re.compile(r"for \(int32_t (\w+) = 0; \1 < (\d+); \+\+\1\) \{")
_ELEMENT = re.compile(r"\w+\[[^\[\]]*\]")
_ARITHMETIC = re.compile(r" (?:[-+*/<>]|<=|>=) ")
# Bytes of an access and of an operation on reals.
_ACCESS, _REAL = 4, 9
# What operations on reals count towards the limit, up to which a loop is unrolled with all loops
# inside; loops with divisions are not.
_REAL_WEIGHT, _DIVISION_WEIGHT, _LIMIT = 6, 40, 700
# More turns than these stay a loop, or become a call of memcpy: of one without loops inside, the
# same with reals, and of others.
_TURNS, _REAL_TURNS, _OUTER_TURNS = 12, 16, 8


def unrolled_bytes(source: str) -> int:
    """Return the estimated bytes of a kernel's C if loops of it are unrolled, else 0.

    Args:
        source: its C, with loops over constants; whatever else has braces is a block executed once.
    """
    reals = "float " in source
    body = source[source.index("{") + 1 : source.rindex("}")]
    found = _block(body, reals, set())
    return found.bytes if found.unrolls else 0


@dataclass
class _Size:
    """The bytes of a block, and what it counts towards the limit."""

    bytes: int = 0
    weight: int = 0
    loops: bool = False
    unrolls: bool = False

    def add(self, other: _Size, turns: int = 1) -> None:
        """Add a block that is executed, or written out, this often."""
        self.bytes += turns * other.bytes
        self.weight += turns * other.weight
        self.loops |= other.loops
        self.unrolls |= other.unrolls


def _block(text: str, reals: bool, known: set[str]) -> _Size:
    """Return the size of a block; elements that are ``known`` are in registers already."""
    size, at = _Size(), 0
    while at < len(text):
        brace = text.find("{", at)
        end = len(text) if brace < 0 else brace
        loop = None if brace < 0 else _LOOP.search(text, at, brace + 1)
        size.add(_plain(text[at : end if loop is None else loop.start()], reals, known))
        if brace < 0:
            break
        at = _closing(text, brace)
        inside = text[brace + 1 : at]
        if loop is None:
            size.add(_block(inside, reals, known))
        else:
            size.add(_loop(_block(inside, reals, set()), int(loop[2]), reals))
        at += 1
    return size


def _loop(body: _Size, turns: int, reals: bool) -> _Size:
    """Return the size of a loop, unrolled if its turns and its size allow that."""
    most = _OUTER_TURNS if body.loops else _REAL_TURNS if reals else _TURNS
    unrolls = turns <= most and turns * body.weight <= _LIMIT
    size = _Size(loops=True, unrolls=unrolls)
    size.add(body, turns if unrolls else 1)
    return size


def _plain(text: str, reals: bool, known: set[str]) -> _Size:
    """Return the size of statements without loops."""
    accesses = set(_ELEMENT.findall(text)) - known
    known |= accesses
    operations = len(_ARITHMETIC.findall(_ELEMENT.sub("x", text))) if reals else 0
    weight = _REAL_WEIGHT * operations + _DIVISION_WEIGHT * (text.count(" / ") if reals else 0)
    return _Size(_ACCESS * len(accesses) + _REAL * operations, len(accesses) + weight)


def _closing(text: str, brace: int) -> int:
    """Return where the block that a brace opens is closed."""
    depth = 0
    for found in re.compile(r"[{}]").finditer(text, brace):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return found.start()
    return len(text)
