"""The operators of the integer form; whose arithmetic each has stands in its path."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from patterns.op import Op

__all__ = ["classes"]


@cache
def classes() -> tuple[type[Op], ...]:
    """Every class of operators, found in the modules below this package."""
    from patterns.op import Op

    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        importlib.import_module(module.name)
    found = {f"{cls.__module__}.{cls.__name__}": cls for cls in _subclasses(Op) if cls.kind}
    return tuple(found[name] for name in sorted(found))


def _subclasses(cls: type[Op]) -> Iterator[type[Op]]:
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)
