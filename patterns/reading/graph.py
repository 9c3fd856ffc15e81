"""`Graph`: operators by name, and the readers of each tensor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from byoc_dory.layers import AnalogRequant, MulShift, Shift
from patterns.ops.moves.reshape import Reshape

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import Expr

    from byoc_dory.layers import Layer
    from patterns.op import Op, TensorType
    from patterns.reading.node import Node


@dataclass(frozen=True, eq=False)
class Graph:
    """The integer form of a network: operators on named tensors.

    Attributes:
        in_order: the operators, in execution order.
        results: names of the tensors that it returns, in order.
        inputs: name and type of each tensor that it is given, in order.
    """

    in_order: tuple[Node, ...]
    results: tuple[str, ...]
    inputs: tuple[tuple[str, TensorType], ...] = ()

    @cached_property
    def module(self) -> IRModule:
        """The same as a Relax module, whose function ``main`` has the operators in this order."""
        from tvm import relax

        builder = relax.BlockBuilder()
        known: dict[str, Expr] = {
            name: relax.Var(name, relax.TensorType(kind.shape, kind.dtype))
            for name, kind in self.inputs
        }
        with builder.function("main", list(known.values())):
            with builder.dataflow():
                for node in self.in_order:
                    inputs = [known[name] for name in node.inputs]
                    known[node.name] = node.op.write(builder, inputs, node.name)
                found = [builder.emit_output(known[name]) for name in self.results]
            builder.emit_func_output(found[0] if len(found) == 1 else relax.Tuple(found))
        return builder.get()

    @cached_property
    def nodes(self) -> dict[str, Node]:
        """The operators by name, in execution order."""
        return {node.name: node for node in self.in_order}

    @cached_property
    def readers(self) -> Mapping[str, Sequence[Node]]:
        """For each tensor name, the operators that read it, in execution order."""
        found: dict[str, list[Node]] = {}
        for node in self.in_order:
            for name in dict.fromkeys(node.inputs):
                found.setdefault(name, []).append(node)
        return found

    def is_result(self, name: str) -> bool:
        """Whether the module returns the tensor."""
        return name in self.results

    def read_by(self, name: str) -> tuple[Node, ...]:
        """Return the operators that read a tensor."""
        return tuple(self.readers.get(name, ()))

    def is_inner(self, name: str, parts: frozenset[str] | set[str]) -> bool:
        """Whether only ``parts`` read the tensor."""
        return not self.is_result(name) and all(node.name in parts for node in self.read_by(name))

    def made_by(self, name: str, kind: type[Op]) -> Node | None:
        """Return the operator that computes the tensor, if it is of this class."""
        node = self.nodes.get(name)
        return node if node is not None and isinstance(node.op, kind) else None

    def behind_reshapes(self, name: str) -> tuple[str, tuple[str, ...]]:
        """Return the tensor before plain reshapes, and these reshapes, the last first."""
        passed = []
        while (node := self.nodes.get(name)) is not None and is_plain_reshape(node):
            passed.append(name)
            name = node.inputs[0]
        return name, tuple(passed)

    @property
    def has_shifts(self) -> bool:
        """Whether every layer is requantized by one right shift."""
        return all(isinstance(layer.requant, Shift) for layer in self._scaled)

    @property
    def has_mul_shifts(self) -> bool:
        """Whether every layer is requantized by a multiplication and a shift, or by a shift."""
        return all(isinstance(layer.requant, Shift | MulShift) for layer in self._scaled)

    @property
    def has_ternary(self) -> bool:
        """Whether some layer is in a ternary core's form."""
        layers = (node.layer for node in self.in_order if node.layer is not None)
        return any(isinstance(layer.requant, AnalogRequant) for layer in layers)

    @property
    def _scaled(self) -> Iterator[Layer]:
        return (node.scaled for node in self.in_order if node.scaled is not None)


def is_plain_reshape(node: Node) -> bool:
    """Whether it only adds or drops leading axes of size 1."""
    if not isinstance(node.op, Reshape):
        return False
    return _without_ones(node.input_shapes[0]) == _without_ones(node.output_shape)


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape without leading axes of size 1; the last axis always stays."""
    first = next((at for at, size in enumerate(shape[:-1]) if size > 1), len(shape) - 1)
    return shape[max(first, 0) :]
