"""Small helpers to write C: names, comments, folded arithmetic, templates.

`Symbols` are the C names of a program, of which no two are equal.

Layers and tensors are named by the user, so their names may be those of anything else.  Everything
at file scope that is named after them gets its name here.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

if TYPE_CHECKING:
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


def rendered(package: str, template: str, /, **values: object) -> str:
    """Return the text of a template in ``<package>/templates``, with these values."""
    return _environment(package).get_template(template).render(**values)


@cache
def _environment(package: str) -> jinja2.Environment:
    """Return a strict, deterministic environment; loaded by those that write C."""
    import jinja2

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


Part: TypeAlias = Literal[
    "weights", "packed", "constants", "commands", "fast", "table", "json",
    "arena", "late", "is_assembled", "assemble", "start", "ready",
]  # fmt: skip
"""What belongs to one function, and is named after it."""

INTERFACE = frozenset(
    "run run_in row row_in arena arena_t generate start resume caches state_t embedding rotations "
    "golden golden_t golden_check".split()
)
"""What a program declares behind the model's name, whatever its layers are called."""

_BORDER = r"(?:input_\d+(?:_in|_quantize)?|output_\d+_dequantize)"
_PART = re.compile(rf".*_(?:{'|'.join(get_args(Part))}|part\d+|{_BORDER})")


def part_name(function: str, part: Part | int) -> str:
    """Return the name of what belongs to a function: an array, or one of the parts it calls.

    `Symbols` hands out no function's name that ends like it.
    """
    return f"{function}_part{part}" if isinstance(part, int) else f"{function}_{part}"


class Symbols:
    """Hands out the names of one program.

    Args:
        model: the model's name, which all names begin with.
    """

    def __init__(self, model: str) -> None:
        self._prefix = c_identifier(model)
        self._taken = {f"{self._prefix}_{word}" for word in INTERFACE}
        self._known: dict[Hashable, str] = {}
        self._numbers: dict[str, int] = {}  # the last one behind a name, all before it are taken

    def function(self, preferred: str) -> str:
        """Return a new name for a function: the preferred one, with the model's name before it."""
        return self._new_name(preferred, function=True)

    def function_of(self, key: Hashable, preferred: str) -> str:
        """Return the name of the function for ``key``, the same each time."""
        if key not in self._known:
            self._known[key] = self.function(preferred)
        return self._known[key]

    def constant(self, preferred: str) -> str:
        """Return a new name for an array that belongs to no function still to be named."""
        return self._new_name(preferred, function=False)

    def enter(self, names: Iterable[str]) -> None:
        """Enter names that others chose: those of `part_name`, or of an accelerator's emitter."""
        self._taken.update(names)

    def _new_name(self, preferred: str, *, function: bool) -> str:
        base = f"{self._prefix}_{c_identifier(preferred)}"
        if base.isupper():
            # Macros are the model's name and a word, in capitals.
            base = f"{self._prefix}_{c_identifier(preferred).lower()}"
        name, number = base, self._numbers.get(base, 1)
        while name in self._taken or (function and _PART.fullmatch(name)):
            number += 1
            name = f"{base}_{number}"
        self._numbers[base] = number
        self._taken.add(name)
        return name
