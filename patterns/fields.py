"""Fields of operators as text, so that a Relax module can store them and return equal ones.

Numbers, strings and tuples become JSON; a frozen dataclass becomes an object with its class; an
array that the operator passes as an argument is not repeated: the text only says which argument it
is.
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from byoc_dory.errors import IntegerFormError

_CLASS, _ARRAY, _ARGUMENT = "class", "array", "argument"
_PLAIN = frozenset({bool, float, int, str, type(None)})


def encode(value: Any, arguments: Mapping[str, int]) -> str:
    """Return the fields of a dataclass as text.

    Args:
        value: the dataclass.
        arguments: fields that are passed as arguments (``weight``, or ``function.weight`` inside
            another dataclass) -> their position.

    Raises:
        IntegerFormError: a field named in ``arguments`` does not exist.
    """
    missing = set(arguments)
    content = {
        field.name: _encoded(getattr(value, field.name), field.name, arguments, missing)
        for field in fields(value)
    }
    if missing:
        raise IntegerFormError(
            f"there are no arrays {', '.join(sorted(missing))} to pass as arguments",
            where=f"operator class '{type(value).__name__}'",
        )
    return json.dumps(content, separators=(",", ":"))


def decode(cls: type[Any], text: str, arguments: Sequence[Any]) -> Any:
    """Return the dataclass that `encode` wrote.

    Args:
        cls: its class.
        text: what `encode` returned.
        arguments: the call's arguments by position; only those that are fields are used.

    Raises:
        IntegerFormError: the text does not belong to the class.
    """
    try:
        content = json.loads(text)
        return cls(**{name: _decoded(item, cls, arguments) for name, item in content.items()})
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise IntegerFormError(
            f"its fields cannot be read: {error}",
            where=f"operator '{cls.__name__}'",
            hint="build the module with the operators of this version",
        ) from error


def key_of(value: Any) -> Any:
    """A hashable key that is equal for equal values; arrays are compared element by element."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if is_dataclass(value) and not isinstance(value, type):
        own = tuple(key_of(getattr(value, field.name)) for field in fields(value))
        return type(value), own
    if isinstance(value, tuple):
        return tuple(key_of(item) for item in value)
    return value


def check_fields(cls: type[Any], where: str) -> None:
    """Refuse a class whose fields would not survive the round trip through a module.

    Raises:
        IntegerFormError: the message names the field.
    """
    for field in fields(cls):
        if not field.init:
            raise IntegerFormError(
                f"field '{field.name}' is no argument of the class, so it would not be read again",
                where=where,
                hint="compute it in a property",
            )
    for name, hint in _hints(cls, where).items():
        if not _can_be_written(hint, where):
            raise IntegerFormError(
                f"field '{name}' is of type {hint}, which a module cannot carry",
                where=where,
                hint="use numbers, strings, tuples of them, arrays, or frozen dataclasses",
            )


def _hints(cls: type[Any], where: str) -> Mapping[str, Any]:
    try:
        hints = get_type_hints(cls)
    except NameError as error:
        raise IntegerFormError(
            f"a type of its fields is not known at run time: {error}",
            where=where,
            hint="import the types of fields outside TYPE_CHECKING",
        ) from error
    return {field.name: hints[field.name] for field in fields(cls)}


def _can_be_written(hint: Any, where: str) -> bool:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return all(isinstance(item, int | str) for item in args)
    if origin in (Union, types.UnionType):
        return all(_can_be_written(item, where) for item in args)
    if origin is tuple:
        return all(item is Ellipsis or _can_be_written(item, where) for item in args)
    if origin is np.ndarray or hint is np.ndarray:
        return True
    if isinstance(hint, type) and is_dataclass(hint):
        frozen = hint.__dataclass_params__.frozen  # type: ignore[attr-defined]
        return frozen and all(_can_be_written(item, where) for item in _hints(hint, where).values())
    return hint in (int, bool, float, str, type(None))


@cache
def _classes(cls: Any) -> Mapping[str, type[Any]]:
    """Return the dataclasses that a class's fields may hold, recursively, by name."""
    found: dict[str, type[Any]] = {}
    waiting = list(_hints(cls, cls.__name__).values())
    while waiting:
        hint = waiting.pop()
        waiting.extend(get_args(hint))
        if isinstance(hint, type) and is_dataclass(hint) and hint.__name__ not in found:
            found[hint.__name__] = hint
            waiting.extend(_hints(hint, hint.__name__).values())
    return found


def _encoded(value: Any, path: str, arguments: Mapping[str, int], missing: set[str]) -> Any:
    if type(value) in _PLAIN:  # first, because lists of these can be long
        return value
    if isinstance(value, np.ndarray):
        about = {"dtype": value.dtype.str, "shape": list(value.shape)}
        if path in arguments:
            missing.discard(path)
            return {_ARGUMENT: arguments[path], **about}
        return {_ARRAY: value.reshape(-1).tolist(), **about}
    if isinstance(value, tuple):
        return [_encoded(item, path, arguments, missing) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        content = {
            field.name: _encoded(
                getattr(value, field.name), f"{path}.{field.name}", arguments, missing
            )
            for field in fields(value)
        }
        return {_CLASS: type(value).__name__, **content}
    return value.item() if isinstance(value, np.generic) else value


def _decoded(item: Any, cls: type[Any], arguments: Sequence[Any]) -> Any:
    if isinstance(item, list):
        return tuple(_decoded(part, cls, arguments) for part in item)
    if not isinstance(item, dict):
        return item
    if _CLASS in item:
        inner = _classes(cls)[item.pop(_CLASS)]  # type: ignore[arg-type]  # classes are hashable
        return inner(**{name: _decoded(part, cls, arguments) for name, part in item.items()})
    values = item[_ARRAY] if _ARRAY in item else arguments[item[_ARGUMENT]].value.numpy()
    return np.asarray(values, np.dtype(item["dtype"])).reshape(item["shape"])
