"""`Definition`: the C of a layer's function, written so that layers of equal geometry can share it.

What only this layer has (places in L1, packed weights, a multiplier) are *slots* of the text.  A
function of one layer has them as constants; a function of several layers is passed those in which
the layers differ (`byoc_dory.sharing`).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection
from dataclasses import dataclass

__all__ = ["Definition", "Slot", "slot"]

_WIDTH = 100
_SLOT = re.compile(r"\$\{(\w+)\}")


def slot(name: str) -> str:
    """What stands for a slot in a definition's text."""
    return f"${{{name}}}"


@dataclass(frozen=True)
class Slot:
    """A number of one layer, or a pointer to constants of it.

    Attributes:
        name: a C name.  In capitals it is a place in L1, which is an enumerator where it is
            constant; others are written as their value then.
        type: in C, as an argument.
        value: in C.
        fixed: whether layers that differ in it cannot share the function, because the value is in
            a static initialiser.
    """

    name: str
    type: str
    value: str
    fixed: bool = False

    @property
    def argument(self) -> str:
        """The name of the argument that it becomes."""
        return self.name.lower()


@dataclass(frozen=True)
class Definition:
    """A function before it is known which layers share it.

    Attributes:
        what: one word for functions that several layers share, e.g. ``gemm``.
        layers: those that it was written for (several where they are fused), fit for a comment.
        about: lines of the comment, fit for one; the first follows the layer's name.
        result: C type of what it returns.
        parameters: C declarations of its parameters.
        body: C with `slot` texts; further slots are ``signature`` (once), ``symbol`` and
            ``enumerators``, a list of the places in L1 that are constant, in a line of its own.
        slots: what of the layer is in it.
        framed: whether the comment has a line of its own for its beginning and its end.
    """

    what: str
    layers: tuple[str, ...]
    about: tuple[str, ...]
    result: str
    parameters: tuple[str, ...]
    body: str
    slots: tuple[Slot, ...] = ()
    framed: bool = False

    @property
    def shape(self) -> tuple[object, ...]:
        """Equal for functions that differ in the values of slots alone."""
        slots = tuple((slot.name, slot.type, slot.value * slot.fixed) for slot in self.slots)
        return self.what, self.about, self.result, self.parameters, self.body, slots

    def prototype(self, symbol: str, passed: Collection[str] = ()) -> str:
        """The declaration, without a semicolon.

        Args:
            symbol: C name.
            passed: names of the slots that are parameters, after all others.
        """
        values = [
            f"{slot.type}{'' if slot.type.endswith('*') else ' '}{slot.argument}"
            for slot in self.slots
            if slot.name in passed
        ]
        parameters = [*self.parameters, *values] or ["void"]
        lines = [f"{self.result} {symbol}({parameters[0]}"]
        for parameter in parameters[1:]:
            # What a function takes alone is in one line.
            if values and len(lines[-1]) + len(parameter) > _WIDTH - 3:
                lines += [f"    {parameter}"]
                lines[-2] += ","
            else:
                lines[-1] += f", {parameter}"
        return "\n".join(lines) + ")"

    def text(self, symbol: str, passed: Collection[str] = (), layers: Collection[str] = ()) -> str:
        """The complete definition.

        Args:
            symbol, passed: as for `prototype`.
            layers: names of all that share it; none if it is these layers' alone.
        """
        written = {"symbol": symbol, "signature": self.prototype(symbol, passed)}
        constant = [slot for slot in self.slots if slot.name not in passed]
        places = [slot for slot in constant if slot.name.isupper()]
        written |= {slot.name: slot.argument for slot in self.slots if slot.name in passed}
        written |= {slot.name: slot.value for slot in constant}
        written |= {slot.name: slot.name for slot in places}
        written["enumerators"] = ", ".join(f"{slot.name} = {slot.value}" for slot in places)
        body = self.body
        if not places:
            body = re.sub(r"^.*\$\{enumerators\}.*\n", "", body, flags=re.MULTILINE)
            body = re.sub(r"^ *enum \{\s*\};\n", "", body, flags=re.MULTILINE)
        return self._comment(layers) + _SLOT.sub(lambda found: written[found[1]], body)

    def _comment(self, layers: Collection[str]) -> str:
        if not layers:
            lines = [f"{', '.join(self.layers)}: {self.about[0]}", *self.about[1:]]
        else:
            names = f"shared by {len(layers)} layers: {', '.join(layers)}"
            lines = [*self.about, *textwrap.wrap(names, _WIDTH - 4, break_on_hyphens=False)]
        text = "\n * ".join(lines)
        return f"/*\n * {text}\n */\n" if self.framed else f"/* {text} */\n"
