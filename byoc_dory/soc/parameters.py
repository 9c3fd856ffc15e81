"""Parameters of SoC descriptions: numbers and choices that a user may set.

A description offers parameters (:attr:`Soc.parameters`) together with a function that makes the SoC
for given values (:attr:`Soc.design`).  A target's name carries the values that make a difference to
the defaults: ``siracusa:cores=4,l1=128KiB``, in the order in which the description lists them, so
that equal designs have equal names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from byoc_dory.errors import TargetError, nearest

Value: TypeAlias = "bool | int | float | str"
"""The value of a parameter; bytes are whole numbers."""

_UNITS = {
    "": 1, "b": 1,
    "k": 1 << 10, "ki": 1 << 10, "kib": 1 << 10, "kb": 1000,
    "m": 1 << 20, "mi": 1 << 20, "mib": 1 << 20, "mb": 1000**2,
    "g": 1 << 30, "gi": 1 << 30, "gib": 1 << 30, "gb": 1000**3,
}  # fmt: skip
_SIZE = re.compile(r"(\d{1,18})(?:\.(\d{1,9}))?\s*([a-z]*)")
_WHOLE = re.compile(r"[+-]?\d{1,18}")
_REAL = re.compile(r"[+-]?(\d{1,18}(\.\d{0,18})?|\.\d{1,18})(e[+-]?\d{1,3})?", re.IGNORECASE)
_SHOWN = 12  # choices in a message
_SWITCH = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}


def parse_size(text: str) -> int | None:
    """Return the bytes of ``64k``, ``64KiB`` (65,536), ``64kB`` (64,000) or ``65536``.

    Units of one letter are powers of 1024, as in linker scripts.  None if it is not a size.
    """
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or match[3] not in _UNITS:
        return None
    digits = match[2] or ""
    scaled = int(match[1] + digits) * _UNITS[match[3]]
    whole, rest = divmod(scaled, 10 ** len(digits))
    return None if rest else whole


def size_text(size: int) -> str:
    """Return bytes as people write them, exactly: ``1MiB``, ``192KiB``, ``256000``."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


@dataclass(frozen=True)
class Parameter:
    """One parameter of a SoC; the type of its default is the type of its values.

    Attributes:
        name: name in the target's string: lower-case letters, digits and ``_``.
        default: value of the SoC as it is described; whole number, real number, text or on/off.
        title: its meaning in one line.
        unit: unit of a number; "B" for sizes, which may be written as ``64k`` or ``1MiB``.
        low, high: smallest and largest number; None for no limit.
        step: whole numbers are multiples of it.
        choices: all possible values; empty if a range says it.
        files: suffix of files whose paths are possible besides the choices; empty if none are.
        sets: the number of the description that it sets (`byoc_dory.soc.numbers`), which then has
            no other name; empty if it is more than one, or none.
    """

    name: str
    default: Value
    title: str
    unit: str = ""
    low: float | None = None
    high: float | None = None
    step: int = 1
    choices: tuple[Value, ...] = ()
    files: str = ""
    sets: str = ""

    @property
    def kind(self) -> str:
        """``"bytes"``, ``"integer"``, ``"number"``, ``"switch"`` or ``"text"``."""
        if isinstance(self.default, bool):
            return "switch"
        if isinstance(self.default, int):
            return "bytes" if self.unit == "B" else "integer"
        return "number" if isinstance(self.default, float) else "text"

    @property
    def domain(self) -> str:
        """The possible values as text."""
        if self.kind == "switch":
            return "on or off"
        if self.choices:
            texts = [self.text(choice) for choice in self.choices]
            more = f" and {len(texts) - _SHOWN} others" if len(texts) > _SHOWN else ""
            file = f", or a file *{self.files}" if self.files else ""
            return f"one of {', '.join(texts[:_SHOWN])}{more}{file}"
        ends = [None if end is None else self.text(_number(end)) for end in (self.low, self.high)]
        if ends[0] is not None and ends[1] is not None:
            bounds = f"{ends[0]} to {ends[1]}"
        elif ends[0] is not None:
            bounds = f"at least {ends[0]}"
        else:
            bounds = "any" if ends[1] is None else f"at most {ends[1]}"
        unit = f" {self.unit}" if self.unit and self.unit != "B" else ""
        steps = f", multiples of {self.text(self.step)}" if self.step > 1 else ""
        return f"{bounds}{unit}{steps}"

    def text(self, value: Value) -> str:
        """Return a value as it is written in a target's name."""
        if isinstance(value, bool):
            return "on" if value else "off"
        if self.kind == "bytes" and isinstance(value, int):
            return size_text(value)
        return f"{value:g}" if isinstance(value, float) else str(value)

    def parse(self, given: object, where: str) -> Value:
        """Return a value given as text or as a Python value.

        Args:
            given: the value.
            where: what to name in an error.

        Raises:
            TargetError: it has another type, or is out of range.
        """
        value = self._read(given)
        if value is None or not self._allows(value):
            shown = repr(given) if isinstance(given, str) else str(given)
            raise TargetError(
                f"{self.name} ({self.title}) cannot be {shown[:60]}",
                where=where,
                hint=f"{nearest(given, map(self.text, self.choices))}give {self.domain}",
            )
        return value

    def _read(self, given: object) -> Value | None:
        """Return the value in this parameter's type; None if it has another."""
        given = given.item() if hasattr(given, "item") and not isinstance(given, str) else given
        if isinstance(given, str):
            return self._read_text(given.strip())
        if isinstance(given, bool) or self.kind == "switch":
            return given if self.kind == "switch" and isinstance(given, bool) else None
        if self.kind == "number" and isinstance(given, int | float):
            return float(given)
        if self.kind in ("bytes", "integer"):
            if isinstance(given, float) and given.is_integer():
                return int(given)
            return given if isinstance(given, int) else None
        return None

    def _read_text(self, text: str) -> Value | None:
        if self.kind == "switch":
            return _SWITCH.get(text.lower())
        if self.kind == "bytes":
            return parse_size(text)
        if self.kind == "integer":
            return int(text) if _WHOLE.fullmatch(text) else None
        if self.kind == "number":
            return float(text) if _REAL.fullmatch(text) else None
        return text

    def _allows(self, value: Value) -> bool:
        if self.choices:
            return value in self.choices or bool(self.files and str(value).endswith(self.files))
        if isinstance(value, str | bool):
            return isinstance(value, bool)
        if value != value or (isinstance(value, int) and value % self.step):
            return False
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


def _number(end: float) -> Value:
    return int(end) if float(end).is_integer() else end


def described(parameters: tuple[Parameter, ...]) -> str:
    """Return the parameters' names and values in one line, for messages."""
    return "; ".join(f"{entry.name}: {entry.domain}" for entry in parameters) or "none"


def parse_parameters(
    parameters: tuple[Parameter, ...], given: Mapping[str, object], where: str
) -> dict[str, Value]:
    """Return the value of every parameter, in order: those given, and the others' defaults.

    Raises:
        TargetError: a name is unknown, or a value is not possible.
    """
    by_name = {entry.name: entry for entry in parameters}
    for name in given:
        if name not in by_name:
            raise TargetError(
                f"there is no parameter {name!r}",
                where=where,
                hint=f"its parameters are {described(parameters)}"
                if parameters
                else "it has no parameters",
            )
    return {
        name: entry.parse(given[name], where) if name in given else entry.default
        for name, entry in by_name.items()
    }


def parameters_text(parameters: tuple[Parameter, ...], values: Mapping[str, Value]) -> str:
    """Return the values that differ from the defaults, as in a target's name."""
    return ",".join(
        f"{entry.name}={entry.text(values[entry.name])}"
        for entry in parameters
        if values[entry.name] != entry.default
    )
