"""What users call: named as they import it, and left by no error but ours and the caller's own."""

from __future__ import annotations

import functools
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any, TypeVar, cast

from byoc_dory.errors import HtvmError, InternalError
from htvm.version import __version__

Named = TypeVar("Named")

_CHECKED = {
    "None", "bool", "float", "int", "str", "Path", "PathLike[str]", "Limits", "Model", "Progress",
}  # fmt: skip
"""Words of annotations that are types by themselves: others may be names of unions."""
_OURS = ("htvm", "patterns", "byoc_dory")
_LONGEST = 60  # characters of an argument in a message
_LONGEST_REASON = 300


def public(named: Named) -> Named:
    """Return a class or function that messages, tracebacks and help call ``htvm.NAME``.

    It is a `boundary`, too.
    """
    named = boundary(named)
    named.__module__ = "htvm"
    return named


def boundary(named: Named) -> Named:
    """Turn what a function, or the public methods of a class, did not foresee into `InternalError`.

    The caller's own exceptions pass: those of the caller's functions and iterables, of a call that
    does not fit the signature, and what is no `Exception`; so does `MemoryError`.  An argument of
    another type than it is declared as is a `TypeError`.  Calls from our own packages are no
    boundary: what they meet reaches the outermost one.
    """
    if isinstance(named, type):
        for name, member in list(vars(named).items()):
            if name.startswith("_"):
                continue
            if isinstance(member, FunctionType):
                setattr(named, name, _guarded(member))
            elif isinstance(member, property) and member.fget is not None:
                setattr(named, name, property(_guarded(member.fget), doc=member.__doc__))
            elif isinstance(member, functools.cached_property):
                member.func = _guarded(member.func)
            elif isinstance(member, classmethod):
                setattr(named, name, classmethod(_guarded(member.__func__)))
        return named
    return cast(Named, _guarded(cast(Callable[..., Any], named)))


def internal_error(tried: str, error: Exception) -> InternalError:
    """Return what to raise because of an unexpected error, which is its cause.

    Args:
        tried: what was to be done.
        error: the error, with its traceback.
    """
    where = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if _package(frame) in _OURS:
            where = f"{frame.f_globals['__name__']}, line {line}"
    found = InternalError(
        f"{tried} failed with {type(error).__name__}: {str(error)[:_LONGEST_REASON]}".rstrip(": "),
        where=where,
        hint=f"if its arguments are as documented, this is a defect of htvm {__version__}: please "
        "report it with the traceback and, if you may, the model",
    )
    found.__cause__ = error
    return found


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (HtvmError, MemoryError):
            raise
        except Exception as error:
            caller = _package(sys._getframe(1))
            if caller in (*_OURS, *map(_package, _frames(error)[1:])):
                raise
            if isinstance(error, TypeError) and not _fits(function, args, kwargs):
                raise
            mistake = _mistake(function, args, kwargs)
            if mistake:
                raise TypeError(f"{_call(guarded, args, kwargs)}: {mistake}") from error
            raise internal_error(_call(guarded, args, kwargs), error) from error

    return guarded


def _frames(error: Exception) -> list[FrameType]:
    return [frame for frame, _ in traceback.walk_tb(error.__traceback__)]


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _fits(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _mistake(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """Return which argument is of none of the types that it is declared as; empty if none is."""
    signature = inspect.signature(function)
    for name, value in signature.bind(*args, **kwargs).arguments.items():
        declared = str(signature.parameters[name].annotation)
        words, kinds = set(declared.split(" | ")), {kind.__name__ for kind in type(value).__mro__}
        kinds |= {"Path", "PathLike[str]"} if isinstance(value, PathLike) else set()
        kinds |= {"float"} if isinstance(value, int) else {"None"} if value is None else set()
        if words <= _CHECKED and not words & kinds:
            return f"{name} is a {type(value).__name__}, not {declared.replace(' | ', ' or ')}"
    return ""


def _call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """Return a call as a user writes it, with short values, and types in place of long ones."""
    method = "." in function.__qualname__
    module = "htvm" if method else function.__module__.replace("htvm.tools.", "htvm.")
    name = f"{module}.{function.__qualname__}"
    given = [_value(value) for value in args[method:]]
    given += [f"{key}={_value(value)}" for key, value in kwargs.items()]
    return f"{name}({', '.join(given)})"


def _value(value: object) -> str:
    plain = isinstance(value, str | int | float | Path | None)
    text = repr(value) if plain else type(value).__name__
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
