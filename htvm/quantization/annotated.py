"""`Annotated`: a network in the integer form, and what retargeting knows of it beside."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import INT8, Add, Weighted
from byoc_dory.soc.schemes import TernaryScheme
from htvm.quantization.islands import SOFTMAXES, Island
from patterns.op import Range, Scale
from patterns.ops.convert import Convert
from patterns.ops.moves.base import Move
from patterns.ops.tflite.averages import AveragePool

if TYPE_CHECKING:
    from byoc_dory.soc.base import Accelerator
    from patterns.reading.graph import Graph
    from patterns.reading.node import Node


def is_kept(node: Node) -> bool:
    """Whether it computes on in the source's own quantization, on the host."""
    return isinstance(node.op, Island)


def is_end(node: Node) -> bool:
    """Whether it is known as the last operator of a network only; it is not computed here."""
    return isinstance(node.op, SOFTMAXES)


def is_padded(node: Node) -> bool:
    """Whether it is a layer with weights that reads outside its input."""
    return isinstance(node.scaled, Weighted) and any(node.scaled.pad)


def passes(node: Node) -> bool:
    """Whether the output has the scale and zero point of the input."""
    return node.op.scale is Scale.PASSES


def computes(node: Node) -> bool:
    """Whether it rounds and clips numbers of its own, which a report measures."""
    return node.scaled is not None or isinstance(node.op, AveragePool)


def range_of(node: Node, inputs: Sequence[Range]) -> Range:
    """Return inclusive bounds of the output, given those of each input.

    Those of layers are their clips: weights are still to be rounded.
    """
    if node.scaled is not None:
        return node.scaled.clip
    if isinstance(node.op, Convert):  # which is monotonic
        low, high = node.op.compute([np.array(inputs[0])])
        return int(low), int(high)
    return node.op.range(inputs)


@dataclass(frozen=True, eq=False)
class Annotated:
    """A network before or after retargeting.

    Shapes are channel-last, ``(y, x, C)`` or ``(C,)`` without the batch axis, whatever the layout
    of the graph.

    Attributes:
        graph: the operators, each of which is one unit here (`htvm.quantization.units`).
        zeros: tensor -> its zero point.
        channel_first: whether the graph's own layout is NCHW.
        homes: operator -> the accelerator that will run it; the CPU, which supports all arithmetic,
            runs the others.
    """

    graph: Graph
    zeros: Mapping[str, int]
    channel_first: bool = False
    homes: Mapping[str, Accelerator] = field(default_factory=dict)

    def with_homes(self, homes: Mapping[str, Accelerator]) -> Annotated:
        """The network with these accelerators for its operators; the others run on the CPU."""
        return replace(self, homes={n: homes[n] for n in self.graph.nodes if n in homes})

    # -------------------------------------------------------------------- operators

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The operators in execution order."""
        return self.graph.in_order

    @cached_property
    def products(self) -> tuple[Node, ...]:
        """The layers with weights."""
        return tuple(node for node in self.nodes if isinstance(node.scaled, Weighted))

    @cached_property
    def shifted(self) -> tuple[Node, ...]:
        """The layers with 8-bit weights."""
        return tuple(node for node in self.products if self.core(node) is None)

    @cached_property
    def adds(self) -> tuple[Node, ...]:
        """The sums of two tensors."""
        return tuple(node for node in self.nodes if isinstance(node.scaled, Add))

    def core(self, node: Node) -> TernaryScheme | None:
        """The number scheme of the ternary core that will run an operator, or ``None``."""
        home = self.homes.get(node.name)
        scheme = None if home is None else home.scheme
        return scheme if isinstance(scheme, TernaryScheme) else None

    def clips_freely(self, node: Node) -> bool:
        """Whether it can clip to fewer bits than eight, as the CPU and a ternary core can."""
        return node.name not in self.homes or self.core(node) is not None

    def rectifies(self, node: Node) -> bool:
        """Whether no output is below zero: a ReLU, or a zero point at the lower end."""
        return self.clip(node.name)[0] == self.zeros[node.name]

    def activation(self, node: Node) -> tuple[float, float]:
        """Inclusive bounds of its activation relative to the zero point, in steps of the output.

        An end of int8 that is not zero is the source's saturation, no bound: infinite.
        """
        zero, (low, high) = self.zeros[node.name], self.clip(node.name)
        return (
            -math.inf if low == INT8[0] != zero else low - zero,
            math.inf if high == INT8[1] != zero else high - zero,
        )

    def needs_one_step(self, node: Node) -> bool:
        """Whether channels with different steps would need different bounds."""
        return any(bound and math.isfinite(bound) for bound in self.activation(node))

    # -------------------------------------------------------------------- tensors

    @cached_property
    def inputs(self) -> Mapping[str, tuple[int, ...]]:
        """The shape of each input, by name."""
        return {name: self.shape(name) for name, _ in self.graph.inputs}

    @cached_property
    def tensors(self) -> tuple[str, ...]:
        """The tensors that need a scale: inputs, then results in order, except softmaxes."""
        return (*self.inputs, *(node.name for node in self.nodes if not is_end(node)))

    @cached_property
    def source_quantized(self) -> Mapping[str, None]:
        """Tensors only in the source's quantization: inputs, and kept operators' results."""
        kept = (node.name for node in self.nodes if is_kept(node))
        return dict.fromkeys((*self.inputs, *kept))

    @cached_property
    def ends(self) -> tuple[str, ...]:
        """Where results are compared: computed outputs, and the inputs of softmaxes."""
        names = [name for node in self.nodes if is_end(node) for name in node.inputs]
        for name in self.graph.results:
            node = self.producer(name)
            if node is not None and not is_end(node):
                names.append(name)
        return tuple(dict.fromkeys(names))

    @cached_property
    def anchors(self) -> Mapping[str, None]:
        """Tensors needed in the source's own quantization, though they are not given in it.

        They leave the network or a kept operator reads them.
        """
        names = [name for node in self.nodes if is_kept(node) for name in node.inputs]
        return dict.fromkeys(
            name for name in (*self.ends, *names) if name not in self.source_quantized
        )

    @cached_property
    def symmetric(self) -> frozenset[str]:
        """Tensors of which a reader needs zero point 0, directly or through pools and reshapes.

        A padded convolution does, and so does a ternary core, whose converters see the sums
        directly; an add has alternatives (see `add_choices`), but only if it is the tensor's only
        reader.  Concatenated tensors share a zero point, which is 0.
        """
        found: set[str] = set()
        for node in reversed(self.nodes):
            joins = isinstance(node.op, Move) and len(node.inputs) > 1
            wanted = isinstance(node.scaled, Add) or is_padded(node) or joins
            if wanted or self.core(node) is not None or (passes(node) and node.name in found):
                found.update(node.inputs)
        return frozenset(found)

    @cached_property
    def ranges(self) -> Mapping[str, tuple[int, int]]:
        """Inclusive bounds of every tensor, by name, whatever the inputs are."""
        found = dict.fromkeys(self.inputs, INT8)
        for node in self.nodes:
            found[node.name] = range_of(node, [found[name] for name in node.inputs])
        return found

    def producer(self, tensor: str) -> Node | None:
        """Return the operator that computes a tensor, or ``None`` for an input."""
        return self.graph.nodes.get(tensor)

    def shape(self, tensor: str) -> tuple[int, ...]:
        """Return the shape of a tensor, channel-last, without batch."""
        node = self.producer(tensor)
        shape = node.output_shape if node is not None else dict(self.graph.inputs)[tensor].shape
        return channel_last(shape, self.channel_first)

    def shapes(self, node: Node) -> list[tuple[int, ...]]:
        """Return the shapes of an operator's inputs."""
        return [channel_last(shape, self.channel_first) for shape in node.input_shapes]

    def channels(self, tensor: str) -> int:
        """Return the size of a tensor's last axis."""
        return self.shape(tensor)[-1]

    def clip(self, tensor: str) -> tuple[int, int]:
        """Return the inclusive bounds of a tensor."""
        node = self.producer(tensor)
        return INT8 if node is None else getattr(node.op, "clip", INT8)

    def limits(self, tensor: str) -> tuple[int, int]:
        """Return the inclusive bounds that a tensor's readers require.

        A ternary core requires fewer than eight bits, directly or through operators that cannot
        clip.
        """
        return self._limits.get(tensor, INT8)

    @cached_property
    def _limits(self) -> Mapping[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        for node in reversed(self.nodes):
            core, bound = self.core(node), INT8
            if core is not None:
                bound = core.activation_range
            elif self.hands_limits_on(node):
                bound = found.get(node.name, INT8)
            for name in node.inputs:
                low, high = found.get(name, INT8)
                found[name] = max(low, bound[0]), min(high, bound[1])
        return found

    def hands_limits_on(self, node: Node) -> bool:
        """Whether bounds that readers set on its output are bounds on its inputs, too."""
        return passes(node) or (isinstance(node.scaled, Add) and not self.clips_freely(node))

    def needs_fewer_bits(self, tensor: str) -> bool:
        """Whether a tensor must fit fewer than eight bits."""
        return self.limits(tensor) != INT8

    def rectified(self, tensor: str) -> bool:
        """Whether the operator that computes the tensor is a rectifier."""
        node = self.producer(tensor)
        return node is not None and not passes(node) and self.rectifies(node)


def channel_last(shape: Sequence[int], channel_first: bool) -> tuple[int, ...]:
    """Return a tensor's shape without batch, channels last."""
    rest = tuple(shape[1:])
    return (*rest[1:], rest[0]) if channel_first and len(rest) == 3 else rest


def within(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    """Whether inclusive bounds are inside others."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]
