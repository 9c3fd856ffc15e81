"""Tables of handlers, checked when they are constructed.

A handler reads one operator of a source.  The results differ between frontends (operators, or the
values that a tensor can stand for while a graph is read), but each handler's signature states them,
so that a wrong one is found when the frontend is imported, not when a user's network has the
operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType, SimpleNamespace, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from byoc_dory.errors import IntegerFormError

_Handler = TypeVar("_Handler", bound=Callable[..., Any])


def registered(
    source: str, handlers: Mapping[str, _Handler], returns: object
) -> Mapping[str, _Handler]:
    """Return an immutable table of handlers, after checking their signatures.

    Args:
        source: name of the source, for messages.
        handlers: handlers by operator of the source.
        returns: the class, or union of classes, that a handler may return, or return a sequence of.

    Raises:
        IntegerFormError: a handler is not a function, has no annotated result, or returns something
            else.
    """
    allowed = tuple(_classes(returns))
    for name, handler in handlers.items():
        where = f"handler of {name} ({source})"
        for found in _classes(_returned(handler, where)):
            if not (isinstance(found, type) and issubclass(found, allowed)):
                names = ", ".join(sorted(cls.__name__ for cls in allowed))
                raise IntegerFormError(
                    f"it returns {getattr(found, '__name__', found)}",
                    where=where,
                    hint=f"let it return what its frontend knows: {names}",
                )
    return MappingProxyType(dict(handlers))


def _returned(handler: Any, where: str) -> Any:
    """Return the annotated type of a handler's result."""
    while isinstance(handler, partial):
        handler = handler.func
    annotation = getattr(handler, "__annotations__", {}).get("return")
    if annotation is None:
        raise IntegerFormError(
            "it does not say what it returns",
            where=where,
            hint="register a function whose return type is annotated",
        )
    try:
        holder = SimpleNamespace(__annotations__={"return": annotation})
        return get_type_hints(holder, handler.__globals__)["return"]
    except NameError as error:
        raise IntegerFormError(
            f"what it returns is not known at run time: {error}",
            where=where,
            hint="import the types that it returns outside TYPE_CHECKING",
        ) from error


def _classes(hint: Any) -> Iterator[Any]:
    """Yield the classes in a union or a sequence; anything else is yielded unchanged."""
    origin = get_origin(hint)
    if origin in (Union, UnionType, list, Sequence):
        for part in get_args(hint):
            yield from _classes(part)
    else:
        yield origin or hint
