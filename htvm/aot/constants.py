"""Distinct names, and constants: ``conv2d_0_weight``, no ``param_3``, equal ones stored once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from byoc_dory.region import Constant, Kernel, RegionCode
from htvm.aot.literals import shape_text


def distinct(names: Iterable[str]) -> list[str]:
    """Return the names, with a number appended to repeated ones."""
    seen: Counter[str] = Counter()
    result = []
    for name in names:
        result.append(f"{name}_{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return result


class FreshNames:
    """Hands out distinct names.

    Args:
        taken: names that are in use.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}  # the last one behind a name, all before it are taken

    def fresh(self, wish: str) -> str:
        """Return a name that nothing has, with a number behind it if need be."""
        name, number = wish, self._numbers.get(wish, 1)
        while name in self._taken:
            number += 1
            name = f"{wish}_{number}"
        self._numbers[wish] = number
        self._taken.add(name)
        return name


@dataclass
class ConstantPool:
    """Collects constants; equal ones are stored once."""

    constants: dict[str, Constant] = field(default_factory=dict)
    _known: dict[tuple[str, tuple[int, ...], bytes], str] = field(default_factory=dict)

    def elsewhere(self) -> ConstantPool:
        """Return these constants for another program, which is linked with the one so far."""
        constants = {name: replace(each, elsewhere=True) for name, each in self.constants.items()}
        return ConstantPool(constants, dict(self._known))

    def add(self, name: str, symbol: str, value: Any, comment: str) -> str:
        """Enter an array; return its name, or that of an equal array entered before.

        Args:
            name: how calls refer to it.
            symbol: its name in C.
            value: its elements.
            comment: of its declaration.
        """
        data = np.asarray(value, order="C")
        key = (data.dtype.name, data.shape, data.tobytes())
        if key not in self._known:
            shape = shape_text(data.shape) or "1"
            flat = data.reshape(-1)
            self.constants[name] = Constant(symbol, flat, f"{comment}, {data.dtype.name} {shape}")
            self._known[key] = name
        return self._known[key]


def stored_once(regions: Mapping[str, RegionCode]) -> dict[str, RegionCode]:
    """Return the code of regions, with layers that have equal constants reading the first's.

    The sums of an encoder have the same weights on a matrix accelerator: 8 % of its constants.
    """
    kernels = [kernel for code in regions.values() for kernel in code.kernels]
    # A layer may load the next one's constants, whose name is then only there.
    named = {
        slot.value
        for kernel in kernels
        if kernel.definition is not None
        for slot in kernel.definition.slots
    }
    first: dict[object, Constant] = {}
    moved: dict[str, Constant] = {}
    for constant in (each for kernel in kernels for each in kernel.constants):
        stored = first.setdefault(_contents(constant), constant)
        if stored.name != constant.name and constant.name in named:
            moved[constant.name] = stored

    def kernel_of(kernel: Kernel) -> Kernel:
        constants = tuple(moved.get(each.name, each) for each in kernel.constants)
        slots = () if kernel.definition is None else kernel.definition.slots
        if kernel.definition is None or not {each.value for each in slots} & moved.keys():
            return replace(kernel, constants=constants)
        definition = replace(
            kernel.definition,
            slots=tuple(
                replace(each, value=moved[each.value].name) if each.value in moved else each
                for each in slots
            ),
        )
        source = definition.text(kernel.symbol)
        return replace(kernel, definition=definition, source=source, constants=constants)

    return {
        name: replace(code, kernels=tuple(kernel_of(kernel) for kernel in code.kernels))
        for name, code in regions.items()
    }


def _contents(constant: Constant) -> object:
    """Return what is equal for constants of which one serves both; a file is its layer's own."""
    if constant.file or constant.elsewhere:
        return constant.name
    data = constant.data
    return constant.memory, constant.align, data.dtype.name, data.tobytes()
