"""A program of torch as readers see it: nodes in order, constants as arrays, static shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from byoc_dory.errors import ModelError, UnsupportedError
from byoc_dory.layers import Array
from htvm.frontend.limits import Budget


@dataclass(frozen=True)
class Ref:
    """A tensor of the program, as an argument of a node."""

    name: str


Argument: TypeAlias = (
    "None | bool | int | float | str | Ref | tuple[int, ...] | tuple[float, ...] | tuple[Ref, ...]"
)
"""What a node is called with; types of elements and layouts are texts, such as ``"int8"``."""


@dataclass(frozen=True)
class TorchTensor:
    """A tensor as the program declares it.

    Attributes:
        name: its name in the program.
        shape: its sizes in elements.
        dtype: numpy name of the element type.
        strides: how many elements in torch's memory are between those along each axis.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class TorchNode:
    """A call of an operator.

    Attributes:
        target: the operator with its overload, such as ``"aten.conv2d.default"``.
        name: name of the node, or of its first result.
        arguments: those that are given, by the name that the operator's schema has for them.
        outputs: names of the results, in order.
        module: path of the module that calls it, such as ``"encoder.layers.0.linear1"``; empty for
            the outermost one.
        line: the user's line that calls it: file, number and text; empty if unknown.
    """

    target: str
    name: str
    arguments: Mapping[str, Argument]
    outputs: tuple[str, ...]
    module: str
    line: str

    @property
    def operator(self) -> str:
        """The operator without its overload, such as ``"aten.conv2d"``."""
        return self.target.rpartition(".")[0]

    @property
    def place(self) -> str:
        """Operator, module and the user's line, for messages."""
        module = f", module '{self.module}'" if self.module else ""
        return f"{self.target}{module}" + (f", {self.line}" if self.line else "")

    @property
    def where(self) -> str:
        """Name and place, for messages."""
        return f"node '{self.name}', {self.place}"

    def unsupported(self, what: str, hint: str = "") -> UnsupportedError:
        """Return an error for an unsupported feature of this node."""
        return UnsupportedError(what, where=self.where, hint=hint)

    def damaged(self, what: str, hint: str = "") -> ModelError:
        """Return an error for a contradiction in this node."""
        return ModelError(what, where=self.where, hint=hint)


@dataclass(frozen=True, eq=False)
class TorchProgram:
    """A checked program.

    Attributes:
        source: name of the file, or of what was given, for messages.
        inputs: inputs that the user gives, in order.
        outputs: names of the tensors that it returns, in order.
        nodes: nodes that the outputs need, each after those that it reads.
        constants: the parameters, buffers and constants that these read, by name.
        tensors: what the program says of each tensor.
        budget: counts what is made of it.
        quantized_for: name of the target in whose numbers it is quantized; empty if unknown.
    """

    source: str
    inputs: tuple[TorchTensor, ...]
    outputs: tuple[str, ...]
    nodes: tuple[TorchNode, ...]
    constants: Mapping[str, Array]
    tensors: Mapping[str, TorchTensor]
    budget: Budget
    quantized_for: str = ""
