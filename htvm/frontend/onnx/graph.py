"""An ONNX file as seen by readers: nodes in order, constants as arrays, static shapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from byoc_dory.errors import ModelError, UnsupportedError
from byoc_dory.layers import Array
from htvm.frontend.limits import Budget
from htvm.frontend.operators import MOST_AXES


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


Attribute: TypeAlias = (
    "int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | Array"
)


@dataclass(frozen=True)
class OnnxTensor:
    """A tensor as the file declares it.

    Attributes:
        name: name in the file.
        shape: static shape in elements; ``None`` for an output if the file does not declare it.
        dtype: numpy name of the declared element type.
    """

    name: str
    shape: tuple[int, ...] | None
    dtype: str


@dataclass(frozen=True, eq=False)
class OnnxNode:
    """A node of the graph.

    Attributes:
        op: operator type, e.g. ``"Conv"``.
        domain: ``""`` for standard operators.
        name: name in the file, possibly empty.
        index: position in the file, from 0.
        inputs: names of tensors; ``""`` for an omitted optional one.
        outputs: names of tensors, likewise.
        attributes: decoded attributes: integers, reals, texts, tuples of these, arrays.
        place: description of its place, for messages.
        looks: what has been read of it (`htvm.frontend.onnx.schema`).
    """

    op: str
    domain: str
    name: str
    index: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute]
    place: str
    looks: Looks = field(default_factory=Looks)

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", Watched(self.set_attributes, self.looks))

    @property
    def set_attributes(self) -> Mapping[str, Attribute]:
        """The attributes; looking at them here is not recorded."""
        given = self.attributes
        return given.set() if isinstance(given, Watched) else given

    def check_outputs(self, count: int) -> None:
        """Check that no outputs but the first ``count`` are used.

        Raises:
            UnsupportedError: one is.
        """
        for index, name in enumerate(self.outputs[count:], start=count):
            if name:
                raise self.unsupported(
                    f"its output {index} ('{name}') is used", "only the first is supported"
                )

    def check_axes(self, shape: Sequence[int]) -> None:
        """Check that arrays can have the shape of a constant.

        Raises:
            UnsupportedError: it has too many axes.
        """
        if len(shape) > MOST_AXES:
            raise self.unsupported(f"a constant of {len(shape)} axes", f"at most {MOST_AXES}")

    def ignore(self, *attributes: str, inputs: Sequence[int] = ()) -> None:
        """State that some attributes and inputs have no effect on the result."""
        self.looks.attributes.update(attributes)
        self.looks.inputs.update(inputs)

    @property
    def where(self) -> str:
        """Name, operator and place, for messages."""
        return f"node '{self.name or self.outputs[0]}' ({self.op}), {self.place}"

    def unsupported(self, what: str, hint: str = "") -> UnsupportedError:
        """Return an error for an unsupported feature of this node."""
        return UnsupportedError(what, where=self.where, hint=hint)

    def damaged(self, what: str, hint: str = "") -> ModelError:
        """Return an error for a contradiction in this node."""
        return ModelError(what, where=self.where, hint=hint)

    def input(self, index: int) -> str:
        """Return the name of an input, ``""`` if it is omitted."""
        self.looks.inputs.add(index)
        return self.inputs[index] if index < len(self.inputs) else ""

    # ------------------------------------------------------------------ attributes

    def number(self, name: str, default: float | None = None) -> float:
        """Return an attribute that is one number: an integer, a real, or a one-element tensor.

        Raises:
            ModelError: it is missing without default, not a number, or not finite.
        """
        value = self.attributes.get(name, default)
        if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "iufb":
            value = value.reshape(-1)[0].item()
        if isinstance(value, tuple) and len(value) == 1:
            value = value[0]
        if not isinstance(value, int | float) or not np.isfinite(value):
            raise self.damaged(f"attribute '{name}' is {brief(value)}", "it must be a number")
        return value

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an attribute that is one integer, whatever type it is stored in.

        Raises:
            ModelError: it is missing without default, or not an integer.
        """
        value = self.number(name, default)
        if value != int(value):
            raise self.damaged(f"attribute '{name}' is {value}", "it must be an integer")
        return int(value)

    def int32(self, name: str, default: int | None = None) -> int:
        """Return an attribute that is one integer of 32 bits; errors as of `integer`."""
        value = self.integer(name, default)
        if not -(2**31) <= value < 2**31:
            raise self.damaged(f"attribute '{name}' is {value}", "it must fit 32 bits")
        return value

    def integers(self, name: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """Return an attribute that is a list of integers.

        Raises:
            ModelError: it is missing without default, or not a list of integers.
        """
        value = self.attributes.get(name, default)
        if isinstance(value, np.ndarray):
            value = tuple(value.reshape(-1).tolist())
        if not isinstance(value, tuple) or not all(isinstance(item, int) for item in value):
            raise self.damaged(f"attribute '{name}' is {brief(value)}", "a list of integers")
        return tuple(int(item) for item in value)

    def text(self, name: str, default: str | None = None) -> str:
        """Return an attribute that is a text.

        Raises:
            ModelError: it is missing without default, or not a text.
        """
        value = self.attributes.get(name, default)
        if not isinstance(value, str):
            raise self.damaged(f"attribute '{name}' is {brief(value)}", "it must be a text")
        return value


def brief(value: object) -> str:
    """Return an attribute's value as messages show it."""
    if value is None:
        return "missing"
    text = str(value)
    return text if len(text) < 60 else text[:57] + "..."


@dataclass(frozen=True, eq=False)
class OnnxGraph:
    """A checked graph.

    Attributes:
        source: name of the file, for messages.
        opset: version of the standard operators.
        inputs: inputs of the model, without initialisers and those that have no elements.
        outputs: outputs of the model.
        nodes: nodes that the outputs need, each after those it reads; nodes ``Constant`` are among
            ``constants`` instead.
        constants: initialisers and constants, by name.
        budget: counts what is made of them.
        declared: names of all inputs in the file, without initialisers.
        self_contained: whether the file holds all of the model; if not, data lie in other files.
    """

    source: str
    opset: int
    inputs: tuple[OnnxTensor, ...]
    outputs: tuple[OnnxTensor, ...]
    nodes: tuple[OnnxNode, ...]
    constants: Mapping[str, Array]
    budget: Budget
    declared: tuple[str, ...] = ()
    self_contained: bool = True
