"""The operators of the integer form; the path tells whose arithmetic they follow."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from byoc_dory.errors import IntegerFormError

if TYPE_CHECKING:
    from patterns.op import Op

__all__ = ["classes"]


@cache
def classes() -> tuple[type[Op], ...]:
    """Return every class of operators in the modules below this package.

    Raises:
        IntegerFormError: a class was not checked when it was defined.
    """
    from patterns.op import Op

    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        importlib.import_module(module.name)
    found = {
        f"{cls.__module__}.{cls.__name__}": cls
        for cls in _subclasses(Op)
        if cls.kind and cls.__module__.startswith(f"{__name__}.")
    }
    for name, cls in found.items():
        if cls.checked is not cls:
            raise IntegerFormError(
                "it has a kind, but nobody has checked its fields",
                where=f"operator class '{name}'",
                hint="write @operator above @dataclass(frozen=True, eq=False)",
            )
    return tuple(found[name] for name in sorted(found))


def _subclasses(cls: type[Op]) -> Iterator[type[Op]]:
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)
