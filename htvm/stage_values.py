"""What stages take and return, as data: equal values have equal documents, which execute nothing.

A value is made of numbers, texts, bytes and ``None``; tuples, lists, dicts, and frozensets of
these; arrays; frozen dataclasses, members of enums, and classes of both kinds.  Equal parts are
written once, in the order in which they occur, so that the hash of a document is a key of its
value.  Decoding makes one object of equal parts: nobody may change it, and arrays are read-only.

The document is MessagePack: the classes, the parts, each of which may refer to earlier ones, and
the value.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cached_property
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np
from msgspec.msgpack import decode as unpacked
from msgspec.msgpack import encode as packed

from htvm.errors import HtvmError

# Kinds of parts that are no dataclasses; a dataclass has the number of its class.
_TUPLE, _LIST, _DICT, _SET, _ARRAY, _NUMBER, _MEMBER, _CLASS, _FUNCTION = range(-9, 0)
_SCALARS = frozenset((bool, bytes, float, int, str, type(None)))
# Kinds of numpy's types whose elements are numbers.
_NUMBERS = frozenset("biufc")


class NotDataError(Exception):
    """A value is not made of data, or a document is not one of a value."""


def encode(value: object) -> tuple[bytes, frozenset[str]]:
    """Return a value's document, and the modules that define the classes and functions in it.

    Functions are written by name, for keys; `decode` makes none.

    Raises:
        NotDataError: a part of the value is no data, or of a class that no module has by its name.
    """
    writer = _Writer()
    try:
        found = writer.item(value)
        return packed([writer.classes, writer.parts, found]), frozenset(writer.modules)
    except (OverflowError, RecursionError, UnicodeEncodeError) as error:
        raise NotDataError(str(error)) from error


def decode(document: bytes | memoryview, packages: Collection[str]) -> Any:
    """Return the value of a document.

    Only numbers, texts, containers, arrays, and what these packages define is made: members of
    enums, and frozen dataclasses with the very fields that they have.

    Raises:
        NotDataError: it is no document, or of something else.
    """
    try:
        classes, parts, value = unpacked(document)
        found = [(_defined(packages, *entry), entry[2]) for entry in classes]
        made: list[Any] = []
        for kind, *items in [*parts, [_TUPLE, value]]:
            items = [made[item[0]] if type(item) is list else item for item in items]
            made.append(_part(found, kind, items))
        return made[-1][0]
    except (
        ArithmeticError, AssertionError, AttributeError, HtvmError, ImportError, LookupError,
        RecursionError, TypeError, ValueError,
    ) as error:  # fmt: skip
        raise NotDataError(str(error)) from error


class _Writer:
    """Numbers the parts of a value: an item is a scalar, or a list with the number of a part."""

    def __init__(self) -> None:
        self.classes: list[tuple[str, str, tuple[str, ...]]] = []
        self.parts: list[Any] = []
        self.modules: set[str] = set()
        self._classes: dict[type, tuple[int, tuple[str, ...], frozenset[str]]] = {}
        self._parts: dict[bytes, list[int]] = {}
        # By identity, with the object, so that it lives as long as its identity is used.
        self._known: dict[int, tuple[object, list[int]]] = {}

    def item(self, value: Any) -> Any:
        """Return the item of a value."""
        if type(value) in _SCALARS:
            return value
        if isinstance(value, str) and not isinstance(value, Enum):  # TVM's own
            return "".join(value)
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        part = self._part(value)
        text = packed(part)
        found = self._parts.get(text)
        if found is None:
            found = self._parts[text] = [len(self.parts)]
            self.parts.append(part)
        self._known[id(value)] = value, found
        return found

    def _part(self, value: Any) -> tuple[Any, ...]:
        kind = type(value)
        if kind is tuple or kind is list:
            return (_TUPLE if kind is tuple else _LIST, *map(self.item, value))
        if kind is dict:
            return (_DICT, *(self.item(item) for pair in value.items() for item in pair))
        if kind is frozenset:
            if not _SCALARS.issuperset(map(type, value)):
                raise NotDataError("the order of a set of containers is not known")
            return (_SET, *sorted(value, key=packed))
        if kind is np.ndarray or isinstance(value, np.generic):
            if value.dtype.kind not in _NUMBERS:
                raise NotDataError(f"an array of {value.dtype}")
            number = _NUMBER if isinstance(value, np.generic) else _ARRAY
            return number, value.dtype.str, value.tobytes(), *value.shape
        if kind is FunctionType:
            self._enter(value, [value])
            return _FUNCTION, value.__module__, value.__qualname__
        if isinstance(value, type):
            return _CLASS, self._class(value)[0]
        number, names, attributes = self._class(kind)
        if isinstance(value, Enum):
            return _MEMBER, number, value.name
        if not attributes.issuperset(getattr(value, "__dict__", ())):
            raise NotDataError(f"a {kind.__qualname__} has attributes that are no fields")
        return (number, *[self.item(getattr(value, name)) for name in names])

    def _class(self, kind: type) -> tuple[int, tuple[str, ...], frozenset[str]]:
        """Return a class's number, the fields it is made of, and all that an object may have."""
        if kind not in self._classes:
            names = _names(kind)
            self._enter(kind, kind.__mro__)
            self._classes[kind] = len(self.classes), names, _attributes(kind)
            self.classes.append((kind.__module__, kind.__qualname__, names))
        return self._classes[kind]

    def _enter(self, value: type | FunctionType, parents: Sequence[type | FunctionType]) -> None:
        """Note the modules of a class or function, which must be found by its name."""
        if _named(value.__module__, value.__qualname__) is not value:
            raise NotDataError(f"{value.__module__} has no {value.__qualname__} of its own")
        self.modules.update(parent.__module__ for parent in parents)


def _part(classes: list[tuple[Any, list[str]]], kind: int, items: list[Any]) -> Any:
    """Return a part of a document, given its classes and their fields."""
    if kind >= 0:
        found, names = classes[kind]
        return found(**dict(zip(names, items, strict=True)))
    if kind == _TUPLE:
        return tuple(items)
    if kind == _LIST:
        return items
    if kind == _DICT:
        return dict(zip(items[::2], items[1::2], strict=True))
    if kind == _SET:
        return frozenset(items)
    if kind in (_ARRAY, _NUMBER):
        dtype, data, *shape = items
        array = np.frombuffer(data, dtype).reshape(shape)  # which refuses objects
        return array if kind == _ARRAY else array[()]
    if kind == _CLASS:
        return classes[items[0]][0]
    if kind == _MEMBER:
        return classes[items[0]][0][items[1]]
    raise NotDataError(f"there is no kind {kind} of parts")


def _defined(packages: Collection[str], module: str, name: str, names: list[str]) -> type:
    """Return the enum or dataclass of a package, if it has these fields.

    Raises:
        NotDataError: there is none.
    """
    found = _named(module, name) if module.partition(".")[0] in packages else None
    if not isinstance(found, type) or found.__module__ != module or _names(found) != tuple(names):
        raise NotDataError(f"no class {module}.{name} with these fields")
    return found


def _named(module: str, name: str) -> object:
    found: object = import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _names(kind: type) -> tuple[str, ...]:
    """Return the fields that a frozen dataclass is made of, none for an enum.

    Raises:
        NotDataError: it is neither.
    """
    if issubclass(kind, Enum):
        return ()
    if not is_dataclass(kind) or not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise NotDataError(f"{kind.__qualname__} is no frozen dataclass")
    return tuple(entry.name for entry in fields(kind) if entry.init)


def _attributes(kind: type) -> frozenset[str]:
    """Return what objects of a class may have: fields, and what is derived of them."""
    if issubclass(kind, Enum):
        return frozenset()
    parts = {name: part for parent in kind.__mro__ for name, part in vars(parent).items()}
    derived = [name for name, part in parts.items() if isinstance(part, cached_property)]
    return frozenset((*derived, *kind.__dataclass_fields__))  # type: ignore[attr-defined]
