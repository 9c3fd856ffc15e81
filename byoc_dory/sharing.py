"""`share_functions`: write functions of equal geometry once, with arguments for what differs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from byoc_dory.definition import Definition, Slot
from byoc_dory.emit.text import c_identifier


class Defined(Protocol):
    """A kernel: the function of one layer, not shared."""

    @property
    def symbol(self) -> str: ...

    @property
    def source(self) -> str: ...

    @property
    def prototype(self) -> str: ...

    @property
    def definition(self) -> Definition | None:
        """The function with slots; ``None`` if it cannot be shared."""


@dataclass(frozen=True)
class Function:
    """A C function that is called for one layer or several.

    Attributes:
        symbol: C name.
        source: complete definition.
        prototype: declaration.
        native: the definition for programs of this machine, if that is another one, else empty.
    """

    symbol: str
    source: str
    prototype: str
    native: str = ""


@dataclass(frozen=True)
class Sharing:
    """Which function computes which kernel.

    Attributes:
        functions: all functions, in order of first use.
        function_of: the function of each kernel, by the kernel's symbol.
        values: the arguments of each kernel's call after the tensors, by the kernel's symbol.
    """

    functions: tuple[Function, ...]
    function_of: Mapping[str, Function]
    values: Mapping[str, tuple[Slot, ...]]

    @property
    def source(self) -> str:
        """C of all functions."""
        return "\n".join(function.source.strip() + "\n" for function in self.functions)

    def merged_with(self, other: Sharing) -> Sharing:
        """Return this together with the sharing of other kernels."""
        functions = (*self.functions, *other.functions)
        return Sharing(
            functions, {**self.function_of, **other.function_of}, {**self.values, **other.values}
        )


def share_functions(
    kernels: Sequence[Defined], prefix: str, used_names: Collection[str] = ()
) -> Sharing:
    """Find the kernels that one function can compute.

    Args:
        kernels: kernels with different symbols, in the order of their use.
        prefix: prefix of all C names.
        used_names: names that are in use, besides those of the kernels.

    Returns:
        The functions.  A kernel that shares with no other stays as it is.  A shared function is
        called ``<prefix>_shared_<operator>_<number>`` and takes the values in which its layers
        differ as arguments.
    """
    groups: dict[object, list[Defined]] = {}
    for kernel in kernels:
        key = kernel.symbol if kernel.definition is None else kernel.definition.shape
        groups.setdefault(key, []).append(kernel)
    names = _Names({kernel.symbol for kernel in kernels} | set(used_names), prefix)
    functions: list[Function] = []
    function_of: dict[str, Function] = {}
    values: dict[str, tuple[Slot, ...]] = {}
    for group in groups.values():
        definitions = [kernel.definition for kernel in group if kernel.definition is not None]
        if len(definitions) < 2:
            (kernel,) = group
            native = _native_definition(kernel.definition, kernel.symbol)
            function = Function(kernel.symbol, kernel.source, kernel.prototype, native)
            argument_slots: list[int] = []
        else:
            function, argument_slots = _shared_function(definitions, names)
        functions.append(function)
        for number, kernel in enumerate(group):
            function_of[kernel.symbol] = function
            values[kernel.symbol] = tuple(
                definitions[number].slots[place] for place in argument_slots
            )
    return Sharing(tuple(functions), function_of, values)


def _shared_function(
    definitions: Sequence[Definition], names: _Names
) -> tuple[Function, list[int]]:
    """Return one function for these definitions, and the indices of the slots it takes."""
    first = definitions[0]
    argument_slots = [
        place
        for place in range(len(first.slots))
        if len({definition.slots[place].value for definition in definitions}) > 1
    ]
    arguments = [first.slots[place].name for place in argument_slots]
    symbol = names.new_name(first.operator)
    layers = ["+".join(definition.layers) for definition in definitions]
    source = first.text(symbol, arguments, layers)
    native = _native_definition(first, symbol, arguments, layers)
    return Function(symbol, source, first.prototype(symbol, arguments), native), argument_slots


def _native_definition(
    definition: Definition | None,
    symbol: str,
    arguments: Collection[str] = (),
    layers: Collection[str] = (),
) -> str:
    if definition is None or not definition.native:
        return ""
    return definition.text(symbol, arguments, layers, native=True)


class _Names:
    """Hands out names of shared functions."""

    def __init__(self, used_names: Collection[str], prefix: str) -> None:
        self._used_names = set(used_names)
        self._prefix = prefix

    def new_name(self, operator: str) -> str:
        number = 1
        while (
            name := f"{self._prefix}_shared_{c_identifier(operator)}_{number}"
        ) in self._used_names:
            number += 1
        self._used_names.add(name)
        return name
