"""The operators of the integer form; whose arithmetic each has stands in its path."""

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
    """Every class of operators, found in the modules below this package.

    Raises:
        IntegerFormError: if one has not been checked when it was defined.
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
