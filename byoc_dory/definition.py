"""`Definition`: the C of a layer's function, written so that layers of equal geometry can share it.

The values that belong to one layer (places in L1, packed weights, a multiplier) are *slots* of the
text.  In a function of a single layer they are constants; a function of several layers takes those
in which the layers differ as arguments (`byoc_dory.sharing`).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection
from dataclasses import dataclass

_WIDTH = 100
_SLOT = re.compile(r"\$\{(\w+)\}")


def slot(name: str) -> str:
    """Return the placeholder of a slot in a definition's text."""
    return f"${{{name}}}"


@dataclass(frozen=True)
class Slot:
    """A number that belongs to one layer, or a pointer to its constants.

    Attributes:
        name: a C name.  A name in capitals is a place in L1, which becomes an enumerator if it is
            constant; any other constant is written as its value.
        type: C type of the argument.
        value: C expression.
        fixed: whether layers with different values cannot share the function, because the value is
            part of a static initialiser.
    """

    name: str
    type: str
    value: str
    fixed: bool = False

    @property
    def argument(self) -> str:
        """Name of the argument that it becomes."""
        return self.name.lower()


@dataclass(frozen=True)
class Definition:
    """A function before it is known which layers share it.

    Attributes:
        operator: its operator, e.g. ``gemm``; part of the name of a shared function.
        layers: names of the layers it was written for (several if they are fused), without
            characters that would end a comment.
        comment_lines: lines of the comment, likewise; the first one follows the layers' names.
        result: C type of the result.
        parameters: C declarations of its parameters.
        body: C text with placeholders (`slot`) for ``slots``, and for ``signature`` (once),
            ``symbol`` and ``enumerators``: the list of the places in L1 that are constant, on a
            line of its own.
        slots: the values that belong to the layer.
        framed: whether the comment's first and last line are empty.
        native: another body with the same results, for programs of this machine; may be empty.
    """

    operator: str
    layers: tuple[str, ...]
    comment_lines: tuple[str, ...]
    result: str
    parameters: tuple[str, ...]
    body: str
    slots: tuple[Slot, ...] = ()
    framed: bool = False
    native: str = ""

    @property
    def shape(self) -> tuple[object, ...]:
        """A key that is equal for functions that differ only in the values of slots."""
        slots = tuple((slot.name, slot.type, slot.value * slot.fixed) for slot in self.slots)
        texts = (self.body, self.native)
        return self.operator, self.comment_lines, self.result, self.parameters, texts, slots

    def prototype(self, symbol: str, arguments: Collection[str] = ()) -> str:
        """Return the declaration, without a semicolon.

        Args:
            symbol: C name.
            arguments: names of the slots that are parameters; they follow all others.
        """
        values = [
            f"{slot.type}{'' if slot.type.endswith('*') else ' '}{slot.argument}"
            for slot in self.slots
            if slot.name in arguments
        ]
        parameters = [*self.parameters, *values] or ["void"]
        lines = [f"{self.result} {symbol}({parameters[0]}"]
        for parameter in parameters[1:]:
            # The prototype of a function that is not shared is one line.
            if values and len(lines[-1]) + len(parameter) > _WIDTH - 3:
                lines += [f"    {parameter}"]
                lines[-2] += ","
            else:
                lines[-1] += f", {parameter}"
        return "\n".join(lines) + ")"

    def text(
        self,
        symbol: str,
        arguments: Collection[str] = (),
        layers: Collection[str] = (),
        *,
        native: bool = False,
    ) -> str:
        """Return the complete definition.

        Args:
            symbol, arguments: as for `prototype`.
            layers: names of all layers that share it; empty if it is not shared.
            native: whether with the body for programs of this machine, which must exist.
        """
        written = {"symbol": symbol, "signature": self.prototype(symbol, arguments)}
        constant = [slot for slot in self.slots if slot.name not in arguments]
        places = [slot for slot in constant if slot.name.isupper()]
        written |= {slot.name: slot.argument for slot in self.slots if slot.name in arguments}
        written |= {slot.name: slot.value for slot in constant}
        written |= {slot.name: slot.name for slot in places}
        written["enumerators"] = ", ".join(f"{slot.name} = {slot.value}" for slot in places)
        body = self.native if native else self.body
        if not places:
            body = re.sub(r"^.*\$\{enumerators\}.*\n", "", body, flags=re.MULTILINE)
            body = re.sub(r"^ *enum \{\s*\};\n", "", body, flags=re.MULTILINE)
        return self._comment(layers) + _SLOT.sub(lambda found: written[found[1]], body)

    def _comment(self, layers: Collection[str]) -> str:
        if not layers:
            lines = [f"{', '.join(self.layers)}: {self.comment_lines[0]}", *self.comment_lines[1:]]
        else:
            names = f"shared by {len(layers)} layers: {', '.join(layers)}"
            lines = [*self.comment_lines, *textwrap.wrap(names, _WIDTH - 4, break_on_hyphens=False)]
        text = "\n * ".join(lines)
        return f"/*\n * {text}\n */\n" if self.framed else f"/* {text} */\n"
