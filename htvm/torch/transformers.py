"""Attention, GELU and layer norm, rewritten such that torch computes what ITA and its cores do.

The operators are those of `htvm.torch.operators`.  Their multipliers and shifts follow from the
scales around them, as biases do: `Derived` constants, which a program holds as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from byoc_dory.layers.rowwise import ItaSoftmax
from htvm.torch import operators  # noqa: F401  (registers the operators)
from htvm.torch.observers import Derived, observer_of

_aten, _own = torch.ops.aten, torch.ops.htvm

FINEST_OF_GELU = 2.0**-6
"""Least step of what ITA's GELU reads: ``c`` of a finer one would leave 16 bits."""

_ERF = (-0.2888, -1.769)  # a and b of erf(z) = sgn(z) * (a * (min(|z|, -b) + b)**2 + 1), I-BERT
_MULTIPLIER_BITS = 8
_LARGEST_SHIFT = 31
_WEIGHT_BITS = 15  # of a norm's factors, so that the cores multiply by reciprocals
_VALUE_BITS = 30  # of a norm's factors times distances, and of its summands


@dataclass(frozen=True)
class Rewritten:
    """An operator, and the node of its numbers.

    Attributes:
        node: the operator.
        operands: what it reads, except constants.
        numbers: the constant.
        kind: what computes its value.
        constants: names of the parameters that the value depends on.
        finest: least step of its operands, if there is one.
    """

    node: Any
    operands: tuple[Any, ...]
    numbers: Any
    kind: Callable[..., Derived]
    constants: tuple[str, ...] = ()
    finest: float | None = None

    def tie(self, model: Any, made: dict[Any, Any], *, training: bool) -> None:
        """Put what computes the numbers in the place of torchao's observer."""
        edges = [*((operand, self.node) for operand in self.operands), self.node]
        around = [observer_of(made[edge]) for edge in edges]
        if self.finest is not None:
            around[0].finest = self.finest
        constants = [model.get_parameter(name) for name in self.constants]
        made[self.numbers, self.node] = self.kind((*around, *constants), training=training)


def rewrite(model: Any, softmax: ItaSoftmax) -> list[Rewritten]:
    """Rewrite what has such a form; the rest stays, and is computed in reals.

    Attention is one without a mask or a negative factor, GELUs are those between two linear layers,
    norms those of the last axis with weights and biases.

    Args:
        model: the module whose graph it is.
        softmax: the accelerator's.
    """
    found = []
    for node in list(model.graph.nodes):
        made = None
        if node.target is _aten.scaled_dot_product_attention.default:
            made = _attention(model, node, softmax)
        elif node.target is _aten.gelu.default:
            made = _gelu(model, node)
        elif node.target is _aten.layer_norm.default:
            made = _layer_norm(model, node)
        if made is not None:
            node.replace_all_uses_with(made.node)
            model.graph.erase_node(node)
            found.append(made)
    return found


def _attention(model: Any, node: Any, softmax: ItaSoftmax) -> Rewritten | None:
    plain = all(not value for value in (*node.args[3:6], *_options(node, "scale").values()))
    operands = tuple(node.args[:3])
    if not plain or len(set(operands)) < len(operands):
        return None
    scale = node.kwargs.get("scale")
    if scale is None:
        scale = 1 / math.sqrt(operands[0].meta["val"].shape[-1])
    if scale < 0:  # multipliers have no sign
        return None
    kind = [softmax.group, softmax.step_bits, softmax.numerator]
    numbers = partial(AttentionNumbers, softmax=softmax, scale=float(scale))
    behind = (kind, float(scale))
    return _written(model, node, _own.ita_attention.default, operands, 8, numbers, behind)


def _options(node: Any, *known: str) -> dict[str, Any]:
    return {key: value for key, value in node.kwargs.items() if key not in known}


def _gelu(model: Any, node: Any) -> Rewritten | None:
    """Write a GELU as its negative, as ITA computes it, and negate the weights of its reader."""
    (read,), reader, path = node.args[:1], node, []
    while len(reader.users) == 1:
        reader = next(iter(reader.users))
        if reader.target is not _aten.dropout.default:
            break
        path.append(reader)
    fits = (
        read.target is _aten.linear.default
        and len(read.users) == 1
        and reader.target is _aten.linear.default
        and reader.args[0] is (path[-1] if path else node)
        and reader.args[1].op == "get_attr"
    )
    if not fits:
        return None
    name = f"{reader.name}_negated"
    weight = model.get_parameter(reader.args[1].target)
    model.register_parameter(name, torch.nn.Parameter(-weight.detach()))
    with model.graph.inserting_before(reader):
        negated = model.graph.get_attr(name)
    negated.meta = dict(reader.args[1].meta)
    reader.replace_input_with(reader.args[1], negated)
    return _written(
        model, node, _own.ita_gelu.default, (read,), 6, GeluNumbers, finest=FINEST_OF_GELU
    )


def _layer_norm(model: Any, node: Any) -> Rewritten | None:
    read, sizes, *affine = node.args[:4]
    eps = node.args[4] if len(node.args) > 4 else 1e-5
    constants = [each for each in affine if each is not None and each.op == "get_attr"]
    if len(sizes) != 1 or len(constants) != 2:
        return None
    made = _written(
        model, node, _own.integer_layer_norm.default, (read, *constants), 3, NormNumbers, (eps,)
    )
    return replace(made, operands=(read,), constants=tuple(each.target for each in constants))


def _written(
    model: Any,
    node: Any,
    target: Any,
    operands: Sequence[Any],
    count: int,
    kind: Callable[..., Derived],
    behind: Sequence[Any] = (),
    finest: float | None = None,
) -> Rewritten:
    """Write an operator before the one that it replaces, with ``count`` numbers."""
    graph, name = model.graph, f"{node.name}_numbers"
    model.register_buffer(name, torch.zeros(count))
    with graph.inserting_before(node):
        numbers = graph.get_attr(name)
        made = graph.call_function(target, (*operands, numbers, *behind))
    made.meta = dict(node.meta)
    numbers.meta = {key: value for key, value in node.meta.items() if key != "val"}
    return Rewritten(made, tuple(operands), numbers, kind, finest=finest)


# ------------------------------------------------------------------------------ numbers


def factor_of(ratio: float) -> tuple[float, float]:
    """Return the multiplier of 8 bits and the shift nearest to a ratio: ``mul / 2**shift``."""
    _, exponent = math.frexp(ratio)
    shift = min(max(_MULTIPLIER_BITS - exponent, 0), _LARGEST_SHIFT)
    multiplier = round(math.ldexp(ratio, shift))
    if multiplier >> _MULTIPLIER_BITS and shift:
        shift -= 1
        multiplier = round(math.ldexp(ratio, shift))
    return float(min(multiplier, (1 << _MULTIPLIER_BITS) - 1)), float(shift)


class AttentionNumbers(Derived):
    """The numbers of `operators.ita_attention`: around are query, key, value and result."""

    def __init__(
        self, around: tuple[Any, ...], *, training: bool, softmax: ItaSoftmax, scale: float
    ) -> None:
        """Make them for a softmax, and the factor of its scores; else as `Derived`."""
        super().__init__(around, training=training)
        self._softmax, self._scale = softmax, scale

    def value(self, constant: Any) -> Any:
        """Return them; ``constant`` is what they replace."""
        query, key, value, result = self.steps
        # A weight halves every 2**step_bits steps, and those of a row add up to numerator / 256.
        step = math.log(2) / (1 << self._softmax.step_bits)
        scores = factor_of(query * key * self._scale / step)
        context = factor_of(value / (self._softmax.numerator / 256) / result)
        return constant.new_tensor([query, key, value, result, *scores, *context])


class GeluNumbers(Derived):
    """The numbers of `operators.ita_gelu`: around are operand and result."""

    def value(self, constant: Any) -> Any:
        """Return them; ``constant`` is what they replace."""
        read, result = self.steps
        a, b = _ERF
        step = read / math.sqrt(2)
        # Of steps of 4 and more, what is left is a ReLU; with c = 0 it would be 0.
        c = min(round(1 / (a * step**2)), -1)
        factor = factor_of(-read / (2 * c) / result)
        return constant.new_tensor([read, result, round(b / step), c, *factor])


class NormNumbers(Derived):
    """The numbers of `operators.integer_layer_norm`: around are operand, result and weights."""

    def value(self, constant: Any) -> Any:
        """Return them; ``constant`` is what they replace."""
        read, result = self.steps
        weight, bias = (float(each.detach().abs().max()) / result for each in self.around[2:])
        room = min(_bits(2.0**_WEIGHT_BITS, weight), _bits(2.0**_VALUE_BITS, bias), _WEIGHT_BITS)
        return constant.new_tensor([read, result, max(room, 0)])


def _bits(limit: float, largest: float) -> int:
    """Return by how many bits a number may be shifted to the left to stay below a limit."""
    return math.frexp(limit)[1] - 1 - math.frexp(largest)[1]
