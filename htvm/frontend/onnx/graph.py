"""What readers see of an ONNX file: nodes in order, constants as arrays, static shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from byoc_dory.errors import ModelError, UnsupportedError
from byoc_dory.layers import Array

__all__ = ["Attribute", "Graph", "Node", "TensorType"]

Attribute: TypeAlias = (
    "int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | Array"
)


@dataclass(frozen=True)
class TensorType:
    """A tensor as the file declares it.

    Attributes:
        name: the file's own.
        shape: static, in elements; for an output ``None`` where the file does not say.
        dtype: numpy name of the declared element type.
    """

    name: str
    shape: tuple[int, ...] | None
    dtype: str


@dataclass(frozen=True, eq=False)
class Node:
    """A node of the graph.

    Attributes:
        op: operator type, e.g. ``"Conv"``.
        domain: ``""`` for standard operators.
        name: the file's own, perhaps empty.
        index: place in the file, from 0.
        inputs: names of tensors; ``""`` stands for an optional one left out.
        outputs: likewise.
        attributes: decoded; integers, reals, texts, tuples of them, arrays.
        place: where it is, for messages.
    """

    op: str
    domain: str
    name: str
    index: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute]
    place: str

    @property
    def where(self) -> str:
        """Name, operator and place, for messages."""
        return f"node '{self.name or self.outputs[0]}' ({self.op}), {self.place}"

    def unsupported(self, what: str, hint: str = "") -> UnsupportedError:
        """An error about something this node wants."""
        return UnsupportedError(what, where=self.where, hint=hint)

    def damaged(self, what: str, hint: str = "") -> ModelError:
        """An error about something that contradicts itself."""
        return ModelError(what, where=self.where, hint=hint)

    def input(self, index: int) -> str:
        """Name of an input, ``""`` if it is left out."""
        return self.inputs[index] if index < len(self.inputs) else ""

    # ------------------------------------------------------------------ attributes

    def number(self, name: str, default: float | None = None) -> float:
        """An attribute that is one number: an integer, a real, or a tensor of one element.

        Raises:
            ModelError: if it is missing without default, something else, or not finite.
        """
        value = self.attributes.get(name, default)
        if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "iufb":
            value = value.reshape(-1)[0].item()
        if isinstance(value, tuple) and len(value) == 1:
            value = value[0]
        if not isinstance(value, int | float) or not np.isfinite(value):
            raise self.damaged(f"attribute '{name}' is {_brief(value)}", "it must be a number")
        return value

    def integer(self, name: str, default: int | None = None) -> int:
        """An attribute that is one integer, whatever type it is stored in.

        Raises:
            ModelError: if it is missing without default, or none.
        """
        value = self.number(name, default)
        if value != int(value):
            raise self.damaged(f"attribute '{name}' is {value}", "it must be an integer")
        return int(value)

    def integers(self, name: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """An attribute that is a list of integers.

        Raises:
            ModelError: if it is missing without default, or none.
        """
        value = self.attributes.get(name, default)
        if isinstance(value, np.ndarray):
            value = tuple(value.reshape(-1).tolist())
        if not isinstance(value, tuple) or not all(isinstance(item, int) for item in value):
            raise self.damaged(f"attribute '{name}' is {_brief(value)}", "a list of integers")
        return tuple(int(item) for item in value)

    def text(self, name: str, default: str | None = None) -> str:
        """An attribute that is a text.

        Raises:
            ModelError: if it is missing without default, or none.
        """
        value = self.attributes.get(name, default)
        if not isinstance(value, str):
            raise self.damaged(f"attribute '{name}' is {_brief(value)}", "it must be a text")
        return value


def _brief(value: object) -> str:
    if value is None:
        return "missing"
    text = str(value)
    return text if len(text) < 60 else text[:57] + "..."


@dataclass(frozen=True, eq=False)
class Graph:
    """A checked graph.

    Attributes:
        source: the file's name, for messages.
        opset: version of the standard operators.
        inputs: of the model, initialisers aside.
        outputs: of the model.
        nodes: what the outputs need, each after what it reads; nodes ``Constant`` are among
            ``constants`` instead.
        constants: initialisers and constants, by name.
        alone: whether the file holds all of the model; if not, some data lie in other files.
    """

    source: str
    opset: int
    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    nodes: tuple[Node, ...]
    constants: Mapping[str, Array]
    alone: bool = True
