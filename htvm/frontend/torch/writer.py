"""Writing a program of torch as the graph that the readers of affine quantization read.

Each call becomes nodes of ONNX's standard operators, whose handlers know every form of a value
between dequantization and quantization (`htvm.frontend.onnx.affine`).  Nothing but the arithmetic
differs (``rounding="torch"``).
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.onnx.fold import results_of
from htvm.frontend.onnx.graph import Attribute, OnnxGraph, OnnxNode, OnnxTensor
from htvm.frontend.torch.program import Argument, Ref, TorchNode, TorchProgram

OPSET = 21  # whose forms of the standard's operators are written

Handler: TypeAlias = "Callable[[Call], str | Sequence[str]]"
"""Writes a call, and returns the names of the tensors that are its results."""


class Writer:
    """Walks a program once; each of its tensors gets the name of a tensor of the graph.

    Args:
        program: the program.
        handlers: function for each operator, by its name without overload, or with it.
    """

    def __init__(self, program: TorchProgram, handlers: Mapping[str, Handler]) -> None:
        self.program = program
        self._handlers = handlers
        self.constants: dict[str, Array] = dict(program.constants)
        self.shapes = {name: item.shape for name, item in program.tensors.items()}
        self._names = {
            name: name for name in (*program.constants, *(i.name for i in program.inputs))
        }
        self._taken = set(self._names)
        self._nodes: list[OnnxNode] = []
        self.modules: dict[str, str] = {}
        """Tensor of the graph -> path of the module whose layer computes it."""
        self.strides: dict[str, tuple[int, ...]] = {}
        """Mean in the graph -> strides, in torch's memory, of the tensor that it is of."""

    def written(self) -> OnnxGraph:
        """Write all calls, and return the graph.

        Raises:
            UnsupportedError: an operator, or a form of it, is not supported.
            ModelError: arguments contradict each other.
        """
        program = self.program
        for node in program.nodes:
            handler = self._handlers.get(node.target) or self._handlers.get(node.operator)
            if handler is None:
                raise self._unknown(node)
            call = Call(self, node)
            made = handler(call)
            call.check_read()
            names = [made] if isinstance(made, str) else list(made)
            module = call.module()
            for output, name in zip(node.outputs, names, strict=False):
                self._names[output] = name
                if module and name not in self.constants:
                    self.modules.setdefault(name, module)
        outputs = []
        for name in program.outputs:
            item = program.tensors[name]
            outputs.append(OnnxTensor(self._names[name], item.shape, item.dtype))
        inputs = tuple(OnnxTensor(i.name, i.shape, i.dtype) for i in program.inputs)
        return OnnxGraph(
            program.source,
            OPSET,
            inputs,
            tuple(outputs),
            tuple(self._nodes),
            self.constants,
            program.budget,
            declared=tuple(item.name for item in inputs),
        )

    def _unknown(self, node: TorchNode) -> Exception:
        near = difflib.get_close_matches(node.operator, list(self._handlers), n=1, cutoff=0.75)
        hint = f"the nearest is {near[0]}; " if near else ""
        return node.unsupported(
            "an operator that is not supported", hint + "docs/guides/torch.md lists what is read"
        )

    # -------------------------------------------------------------------------- for calls

    def name(self, ref: Ref) -> str:
        """Return the name that a tensor of the program has in the graph."""
        return self._names[ref.name]

    def fresh(self, wish: str) -> str:
        """Return a name that no tensor has."""
        name, number = wish, 0
        while name in self._taken:
            number += 1
            name = f"{wish}_{number}"
        self._taken.add(name)
        return name

    def append(self, node: OnnxNode) -> None:
        """Add a node."""
        self._nodes.append(node)

    @property
    def count(self) -> int:
        """Number of nodes."""
        return len(self._nodes)


class Call:
    """A call while it is written: its arguments, and the nodes that it becomes.

    Args:
        writer: the walk.
        torch: the call.
    """

    def __init__(self, writer: Writer, torch: TorchNode) -> None:
        self.writer, self.torch = writer, torch
        self._looked: set[str] = set()
        self._read: list[str] = []

    # -------------------------------------------------------------------------- arguments

    def given(self, name: str) -> Argument:
        """Return an argument, ``None`` if it is not given."""
        self._looked.add(name)
        return self.torch.arguments.get(name)

    def ignore(self, *names: str) -> None:
        """State that some arguments have no effect on the result."""
        self._looked.update(names)

    def check_read(self) -> None:
        """Check that every argument that is given has been looked at.

        Raises:
            UnsupportedError: one has not.
        """
        for name, value in self.torch.arguments.items():
            if name not in self._looked and value is not None:
                raise self.torch.unsupported(f"argument '{name}' is {value}, and not supported")

    def has(self, name: str) -> bool:
        """Whether an argument is given, and is a tensor."""
        return isinstance(self.given(name), Ref)

    def tensor(self, name: str = "self") -> str:
        """Return the name that an argument, which must be a tensor, has in the graph."""
        value = self.given(name)
        if not isinstance(value, Ref):
            raise self.torch.damaged(f"argument '{name}' is {value}, and must be a tensor")
        found = self.writer.name(value)
        self._read.append(found)
        return found

    def tensors(self, name: str = "tensors") -> list[str]:
        """Return the names of an argument that is a list of tensors."""
        value = self.given(name)
        if not isinstance(value, tuple) or not all(isinstance(item, Ref) for item in value):
            raise self.torch.damaged(f"argument '{name}' is no list of tensors")
        found = [self.writer.name(item) for item in value if isinstance(item, Ref)]
        self._read.extend(found)
        return found

    def shape(self, name: str = "self") -> tuple[int, ...]:
        """Return the shape of an argument that is a tensor."""
        value = self.given(name)
        if not isinstance(value, Ref):
            raise self.torch.damaged(f"argument '{name}' is {value}, and must be a tensor")
        return self.writer.shapes[value.name]

    def dtype(self, name: str) -> str:
        """Return numpy's name of the element type of an argument that is a tensor."""
        value = self.given(name)
        if not isinstance(value, Ref):
            raise self.torch.damaged(f"argument '{name}' is {value}, and must be a tensor")
        return self.writer.program.tensors[value.name].dtype

    def result(self, index: int = 0) -> tuple[int, ...]:
        """Return the shape of a result, as the program declares it."""
        return self.writer.shapes[self.torch.outputs[index]]

    def array(self, name: str) -> Array | None:
        """Return an argument that is a constant of the program; ``None`` if it is no such one."""
        value = self.given(name)
        return (
            self.writer.constants.get(self.writer.name(value)) if isinstance(value, Ref) else None
        )

    def number(self, name: str, default: float | None = None) -> float:
        """Return an argument that is a number, or a constant of one element."""
        value = self.given(name)
        if value is None:
            value = default
        if isinstance(value, Ref):
            found = self.array(name)
            if found is None or found.size != 1:
                raise self.torch.unsupported(
                    f"argument '{name}' is computed at run time",
                    "quantize statically: dynamic quantization is not supported",
                )
            value = found.reshape(-1)[0].item()
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.torch.damaged(f"argument '{name}' is {value}, and must be a number")
        return value

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an argument that is an integer."""
        value = self.number(name, default)
        if not math.isfinite(value) or value != int(value) or abs(value) >= 1 << 63:
            raise self.torch.damaged(f"argument '{name}' is {value}, and must be an integer")
        return int(value)

    def integers(
        self, name: str, count: int = 0, default: Sequence[int] | None = None
    ) -> tuple[int, ...]:
        """Return an argument that is a list of integers.

        Args:
            name: of the argument.
            count: how many there must be, if not 0; a single one stands for all.
            default: what it is if it is not given, or empty.
        """
        value = self.given(name)
        if (value is None or value == ()) and default is not None:
            value = tuple(default)
        if isinstance(value, int) and not isinstance(value, bool):
            value = (value,)
        if not isinstance(value, tuple) or not all(isinstance(item, int) for item in value):
            raise self.torch.damaged(f"argument '{name}' is {value}, and must be integers")
        found = tuple(int(item) for item in value if isinstance(item, int))
        if count and len(found) == 1:
            found *= count
        if count and len(found) != count:
            raise self.torch.damaged(f"argument '{name}' has {len(found)} numbers, not {count}")
        return found

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return an argument that is true or false."""
        value = self.given(name)
        if value is None:
            return default
        if not isinstance(value, bool | int):
            raise self.torch.damaged(f"argument '{name}' is {value}, and must be true or false")
        return bool(value)

    def text(self, name: str, default: str) -> str:
        """Return an argument that is a text."""
        value = self.given(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.torch.damaged(f"argument '{name}' is {value}, and must be a text")
        return value

    def axis(self, name: str, default: int | None = None, *, rank: int | None = None) -> int:
        """Return an argument that is an axis, counted from the front.

        Args:
            name: of the argument.
            default: what it is if it is not given.
            rank: number of axes; by default those of the argument ``self``.
        """
        axes = len(self.shape()) if rank is None else rank
        value = self.integer(name, default)
        if not -axes <= value < axes:
            raise self.torch.damaged(f"argument '{name}' is {value} for a tensor of {axes} axes")
        return value % axes

    # -------------------------------------------------------------------------- nodes

    def module(self) -> str:
        """Return the path of the module whose layer the results belong to.

        That is the one of the first tensor that is read, if it waits to be quantized.
        """
        if ".dequantize" in self.torch.target:
            return ""
        for name in self._read:
            found = self.writer.modules.get(name)
            if found:
                return found
        return self.torch.module

    def constant(self, values: Any, dtype: str | None = None) -> str:
        """Write a constant, and return its name."""
        name = self.writer.fresh(f"{self.torch.name}_constant")
        self.writer.constants[name] = np.asarray(values, dtype)
        return name

    def node(self, op: str, inputs: Sequence[str], **attributes: Attribute) -> str:
        """Write a node with one result, and return the result's name."""
        return self.nodes(op, inputs, 1, **attributes)[0]

    def nodes(
        self, op: str, inputs: Sequence[str], count: int, **attributes: Attribute
    ) -> list[str]:
        """Write a node with several results, and return their names.

        What it makes of constants alone is constant, and no node is written.
        """
        names = [self.writer.fresh(self.torch.name) for _ in range(count)]
        at, place = self.writer.count, self.torch.place
        node = OnnxNode(op, "", self.torch.name, at, tuple(inputs), tuple(names), attributes, place)
        writer = self.writer
        known = results_of(node, writer.constants, OPSET, writer.program.budget)
        if known is None:
            writer.append(node)
        else:
            writer.constants.update(known)
        return names

    def same(self, op: str, **attributes: Attribute) -> str:
        """Write the call as a node that reads ``self`` alone."""
        return self.node(op, [self.tensor()], **attributes)

    def mean(self, op: str, inputs: Sequence[str], **attributes: Attribute) -> str:
        """Write a mean of ``self``, which torch sums in an order that depends on its strides."""
        value, made = self.given("self"), self.node(op, inputs, **attributes)
        assert isinstance(value, Ref)
        self.writer.strides[made] = self.writer.program.tensors[value.name].strides
        return made

    def reshaped(self, source: str, shape: Sequence[int]) -> str:
        """Write a reshape to sizes that are known, and return the result's name."""
        return self.node("Reshape", [source, self.constant(shape, "int64")], allowzero=1)
