"""A record of what has been looked at in a node (`htvm.frontend.onnx.reads` checks it)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Looks", "Watched"]


@dataclass(frozen=True)
class Looks:
    """The inputs (numbers) and attributes (names) of a node that have been looked at."""

    inputs: set[int] = field(default_factory=set[int])
    attributes: set[str] = field(default_factory=set[str])

    def clear(self) -> None:
        """Forget all."""
        self.inputs.clear()
        self.attributes.clear()


class Watched(Mapping[str, Any]):
    """Attributes that record which of them have been looked at."""

    def __init__(self, values: Mapping[str, Any], looks: Looks) -> None:
        self._values = dict(values)
        self._looks = looks

    def __getitem__(self, name: str) -> Any:
        self._looks.attributes.add(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def set(self) -> Mapping[str, Any]:
        """Return the attributes without recording it."""
        return self._values
