"""Small helpers to write C: names, comments, folded arithmetic, the template environment."""

from __future__ import annotations

import re
from typing import TypeAlias

import jinja2

_KEYWORDS = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while asm typeof".split()
)

# A C expression: a number known at compile time, or text evaluated at run time.
Expr: TypeAlias = int | str


def _atom(value: Expr) -> str:
    text = str(value)
    return text if re.fullmatch(r"[\w.\[\]]+|\$\{\w+\}", text) else f"({text})"


def mul(a: Expr, b: Expr) -> Expr:
    """Return ``a * b``, folded if both are known."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if a == 0 or b == 0:
        return 0
    if a == 1:
        return b
    if b == 1:
        return a
    return f"{_atom(a)} * {_atom(b)}"


def add(a: Expr, b: Expr) -> Expr:
    """Return ``a + b``, folded if both are known."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if a == 0:
        return b
    if b == 0:
        return a
    return f"{a} + {b}"


def round_up_expr(value: Expr, step: int) -> Expr:
    """Return ``value`` rounded up to a multiple of a power of two."""
    if isinstance(value, int):
        return -(-value // step) * step
    return f"({value} + {step - 1}u) & ~{step - 1}u"


def c_identifier(text: str) -> str:
    """Turn ``text`` into a C name: ``_`` for other characters, ``t`` before reserved names."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII)
    if not name or name.startswith("_"):
        return f"t{name}"
    return f"t_{name}" if name[0].isdigit() or name in _KEYWORDS else name


def comment(text: str) -> str:
    """Return ``text`` in a form allowed in a C comment."""
    printable = "".join(char if char.isprintable() else " " for char in text)
    return printable.replace("*/", "* /").replace("/*", "/ *").replace("??/", "?? /")


def environment(package: str) -> jinja2.Environment:
    """Return a strict, deterministic template environment for ``<package>/templates``."""
    env = jinja2.Environment(
        loader=jinja2.PackageLoader(package, "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    env.filters["comment"] = comment
    return env
