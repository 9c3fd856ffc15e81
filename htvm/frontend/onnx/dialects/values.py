"""The values that a tensor can stand for while an integer network is read.

Layers and their requantization are several nodes in the file and one operator in the integer form.
So products, sums of two tensors and unfinished chains of scaling stay pending until it is known
what follows them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.onnx.forms import ReadNode
from htvm.frontend.onnx.graph import OnnxGraph
from htvm.frontend.operators import Activation, Applied
from patterns.ops.integer.combine import Combine, Function
from patterns.ops.moves.reshape import Reshape

if TYPE_CHECKING:
    from patterns.op import Op
    from patterns.ops.convolution import Window


@dataclass(frozen=True, eq=False)
class Live:
    """A tensor that has been written.

    Attributes:
        activation: the tensor.
        bound: largest magnitude of its elements.
    """

    activation: Activation
    bound: int

    @classmethod
    def of(cls, activation: Activation, bound: int | None = None) -> Live:
        """Return a tensor; its type tells the bound, if it is not given."""
        low, high = limits_of(activation.dtype)
        return cls(activation, max(-low, high) if bound is None else bound)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape, including the batch."""
        return self.activation.shape


@dataclass(frozen=True, eq=False)
class Products:
    """Sums of products of an 8-bit tensor with known weights, not yet requantized.

    Attributes:
        node: the convolution or product, for messages.
        source: input, NCHW for a convolution, (rows, C) otherwise.
        weight: int8 ``[K, C / groups, fy, fx]``, or ``[K, C]``.
        bias: int64 ``[K]``.
        window: window of a convolution, ``None`` for a product of matrices.
        shape: shape of the result in the file; the integer form's may have fewer or more axes.
    """

    node: IntegerNode
    source: Live
    weight: Array
    bias: Array
    window: Window | None
    shape: tuple[int, ...]

    @property
    def channel_axis(self) -> int:
        """Axis of ``shape`` with the output channels."""
        return len(self.shape) - 1 if self.window is None else 1


@dataclass(frozen=True, eq=False)
class Converted:
    """``clip(products >> shift)`` to the range of an analog core's converter, not yet scaled."""

    products: Products
    shift: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape, including the batch."""
        return self.products.shape


@dataclass(frozen=True, eq=False)
class PendingSum:
    """The sum of two 8-bit tensors of the same shape, not yet requantized."""

    node: IntegerNode
    operands: tuple[Live, Live]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape, including the batch."""
        return self.operands[0].shape


@dataclass(frozen=True, eq=False)
class Scaled:
    """``(base * mul + add) / divisor``, possibly floored; mul and add broadcast."""

    node: IntegerNode
    base: Live | Products | Converted | PendingSum
    mul: Array
    add: Array
    divisor: int = 1
    floored: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape, including the batch."""
        return self.base.shape


Value: TypeAlias = Live | Products | Converted | PendingSum | Scaled


def limits_of(dtype: str) -> tuple[int, int]:
    """Return the smallest and largest integer of a type."""
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


class NetworkWriter:
    """What has been made of a graph while it is read.

    Args:
        graph: the graph.
    """

    def __init__(self, graph: OnnxGraph) -> None:
        self.budget = graph.budget
        self.values: dict[str, Value | Array] = dict(graph.constants)
        self.sources: dict[Activation, str] = {}
        self._parts = 0

    def apply(
        self, rank: int, where: str, op: Op, inputs: Sequence[Activation], stem: str = ""
    ) -> Activation:
        """Return the result of an operator.

        Args:
            rank: position of its node; its operators follow in the order in which they are added.
            where, op, inputs, stem: as of `Applied`.
        """
        self._parts += 1
        return Activation.of(Applied((rank, self._parts), where, tuple(inputs), op, stem))


@dataclass(frozen=True, eq=False)
class IntegerNode(ReadNode):
    """A node while it is read: the values of its inputs, and the operators that it becomes.

    Attributes:
        network: what has been made of the graph so far.
        rank: position of the node in the order in which nodes are read.
    """

    network: NetworkWriter = field(kw_only=True)
    rank: int = field(kw_only=True)

    def value(self, index: int) -> Value:
        """Return an input that is computed.

        Raises:
            UnsupportedError: it is constant, or omitted.
        """
        value = self.network.values.get(self.input(index))
        if value is None or isinstance(value, np.ndarray):
            raise self.unsupported(
                f"input {index} is {'left out' if value is None else 'constant'}"
            )
        return value

    def constant(self, index: int) -> Array | None:
        """Return a known input, or ``None`` if it is computed or omitted."""
        value = self.network.values.get(self.input(index))
        return value if isinstance(value, np.ndarray) else None

    def integer_array(self, index: int) -> Array:
        """Return a known input that holds integers, int64.

        Raises:
            UnsupportedError: it is computed, or does not hold integers.
        """
        value = self.constant(index)
        if value is None:
            raise self.unsupported(f"input {index} is not constant", "export it as an initialiser")
        if not value.size:
            raise self.damaged(f"input {index} is empty")
        return self.whole(value, f"input {index}")

    def given(self, index: int, role: str) -> tuple[int, ...]:
        """See `ReadNode.given`."""
        found = self.integer_array(index).reshape(-1)
        self.network.budget.spend_places(found.size, self.where)
        return tuple(found.tolist())

    def whole(self, value: Array, what: str) -> Array:
        """Return an array of integers as int64.

        Raises:
            UnsupportedError: it holds anything else.
        """
        wide = np.rint(value).astype(np.int64) if np.isfinite(value).all() else None
        if wide is None or (wide != value).any():
            raise self.unsupported(
                f"{what} holds numbers that are no integers",
                "this dialect keeps integers in its tensors; force another one with dialect=...",
            )
        return wide

    def apply(self, op: Op, *inputs: Live, bound: int | None = None, stem: str = "") -> Live:
        """Return the result of an operator applied to tensors; a node may have several.

        Args:
            op: the operator.
            inputs: the tensors it reads.
            bound: largest magnitude of its results, if smaller than their type allows.
            stem: stem of its name, if not the usual one.

        Raises:
            IntegerFormError: the tensors do not fit the operator.
            UnsupportedError: the result could not be computed exactly.
        """
        read = [item.activation for item in inputs]
        return Live.of(self.network.apply(self.rank, self.where, op, read, stem), bound)

    def combine(self, function: Function, a: Live, b: Live | Array) -> Live:
        """Return the int32 sum, difference or product of two tensors, or of one and constants."""
        size = b.bound if isinstance(b, Live) else int(np.abs(b).max(initial=0))
        bound = min(a.bound * size if function == "multiply" else a.bound + size, 2**31)
        if isinstance(b, Live):
            return self.apply(Combine(function), a, b, bound=bound)
        return self.apply(Combine(function, np.asarray(b)), a, bound=bound)

    def reshape(self, source: Live, shape: tuple[int, ...]) -> Live:
        """Return the same elements in another shape, reshaped once, or not at all if possible."""
        origin = source.activation.origin
        if isinstance(origin, Applied) and isinstance(origin.op, Reshape):
            source = Live(origin.inputs[0], source.bound)
        if source.shape == shape:
            return source
        return self.apply(Reshape(shape), source, bound=source.bound)


Handler: TypeAlias = Callable[[IntegerNode], "Value | Array"]
