"""`Symbols`: the C names of a program, of which no two are equal.

Layers and tensors are named by the user, so their names may be those of anything else.  Everything
at file scope that is named after them gets its name here.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from typing import Literal, TypeAlias, get_args

from byoc_dory.emit.text import c_identifier

Part: TypeAlias = Literal[
    "weights", "packed", "constants", "commands", "table", "json",
    "arena", "late", "is_assembled", "assemble",
]  # fmt: skip
"""What belongs to one function, and is named after it."""

INTERFACE = frozenset(
    "run run_in arena arena_t generate start resume caches state_t embedding rotations golden "
    "golden_t golden_check".split()
)
"""What a program declares behind the model's name, whatever its layers are called."""

_CONVERSION = r"(?:input_\d+_quantize|output_\d+_dequantize)"
_PART = re.compile(rf".*_(?:{'|'.join(get_args(Part))}|part\d+|{_CONVERSION})")


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

    def function(self, wish: str) -> str:
        """Return a new name of a function: the wish behind the model's name, or with a number."""
        return self._new(wish, function=True)

    def function_of(self, what: Hashable, wish: str) -> str:
        """Return the function's name of a thing, the same each time."""
        if what not in self._known:
            self._known[what] = self.function(wish)
        return self._known[what]

    def constant(self, wish: str) -> str:
        """Return a new name of an array that belongs to no function that is yet to be named."""
        return self._new(wish, function=False)

    def enter(self, names: Iterable[str]) -> None:
        """Enter names that others chose: those of `part_name`, or of an accelerator's emitter."""
        self._taken.update(names)

    def _new(self, wish: str, *, function: bool) -> str:
        base = f"{self._prefix}_{c_identifier(wish)}"
        if base.isupper():
            # Macros are the model's name and a word, in capitals.
            base = f"{self._prefix}_{c_identifier(wish).lower()}"
        name, number = base, self._numbers.get(base, 1)
        while name in self._taken or (function and _PART.fullmatch(name)):
            number += 1
            name = f"{base}_{number}"
        self._numbers[base] = number
        self._taken.add(name)
        return name
