"""Layers on an in-memory array: rewritten such that torch computes what array and converters do.

A layer becomes passes over slices of its input channels: a product with ternary weights, which the
converters behind the columns divide by the gain, floor and clip.  The passes are added, multiplied
with a factor for each channel, and offset::

    v = sum over passes of clip(floor(product(x[channels]) / gain), -32, 31)
    y = clip(floor((v * factor + offset) / 2**shift))

Quantizing ``product + (1 - gain) / 2`` with the gain as the step is that floor, without ties.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from byoc_dory.soc.schemes import TernaryScheme

_aten = torch.ops.aten


@dataclass(frozen=True)
class ArrayLayer:
    """The operators of one layer.

    Attributes:
        products: those of the passes; each has an offset of zeros in place of its bias.
        between: the sums of the passes.
        scaled: the product with the factors.
        result: the sum with the bias.
    """

    products: tuple[Any, ...]
    between: tuple[Any, ...]
    scaled: Any
    result: Any


def takes(scheme: TernaryScheme, node: Any, weight: Any) -> bool:
    """Whether an array computes a layer: not one whose channels are filtered separately.

    Args:
        scheme: the array's.
        node: a convolution or linear layer.
        weight: its weight ``[K, C, ...]``.
    """
    if node.target is _aten.linear.default:
        return True
    if node.target is not _aten.conv2d.default:
        return False
    groups = node.args[6] if len(node.args) > 6 else 1
    window = weight.shape[2] * weight.shape[3]
    return bool(groups == 1 and window <= scheme.rows)


def in_passes(model: Any, node: Any, weight: Any, scheme: TernaryScheme) -> ArrayLayer:
    """Write a layer in passes; the caller removes the layer itself.

    Args:
        model: the module whose graph it is.
        node: the layer, with a bias.
        weight: its weight ``[K, C, ...]``.
        scheme: the array's.
    """
    graph = model.graph
    name = node.name
    magnitude = weight.detach().abs().flatten(1)
    # The ternary numbers nearest to normally distributed weights (Li et al., 2016): those above
    # 0.7 of the mean magnitude, times their own mean.
    kept = magnitude > 0.7 * magnitude.mean(1, keepdim=True)
    factors = (magnitude * kept).sum(1) / kept.sum(1).clamp(min=1)
    factors = torch.where(factors > 0, factors, torch.ones_like(factors))
    latent = weight.detach() / factors.reshape(-1, *[1] * (weight.ndim - 1))
    each = scheme.rows // int(weight[0, 0].numel())
    products = []
    with graph.inserting_before(node):
        for number, first in enumerate(range(0, weight.shape[1], each)):
            part = node.args[0]
            last = min(first + each, weight.shape[1])
            if each < weight.shape[1]:
                axis = -1 if weight.ndim == 2 else 1
                whole = part.meta["val"]
                part = _made(graph, node, _aten.slice.Tensor, (part, axis, first, last))
                part.meta["val"] = whole.narrow(axis, first, last - first)
            ternary = torch.nn.Parameter(latent[:, first:last].clone())
            operands = (
                part,
                _constant(model, node, f"{name}_weight{number}", ternary),
                _constant(model, node, f"{name}_floor{number}", torch.zeros(len(weight))),
            )
            products.append(_made(graph, node, node.target, (*operands, *node.args[3:])))
        total, between = products[0], []
        for product in products[1:]:
            total = _made(graph, node, _aten.add.Tensor, (total, product))
            between.append(total)
        shape = (-1, *[1] * (weight.ndim - 2))
        factor = torch.nn.Parameter(factors.reshape(shape).clone())
        scaled = _made(
            graph, node, _aten.mul.Tensor,
            (total, _constant(model, node, f"{name}_factor", factor)),
        )  # fmt: skip
        bias = model.get_parameter(node.args[2].target).detach().reshape(shape).clone()
        summand = _constant(model, node, f"{name}_bias", torch.nn.Parameter(bias))
        result = _made(graph, node, _aten.add.Tensor, (scaled, summand))
    node.replace_all_uses_with(result)
    graph.erase_node(node)
    return ArrayLayer(tuple(products), tuple(between), scaled, result)


def _constant(model: Any, node: Any, name: str, value: Any) -> Any:
    if isinstance(value, torch.nn.Parameter):
        model.register_parameter(name, value)
    else:
        model.register_buffer(name, value)
    found = model.graph.get_attr(name)
    found.meta = _origin(node)
    return found


def _made(graph: Any, node: Any, target: Any, arguments: tuple[Any, ...]) -> Any:
    """Return a new operator, whose result has the type of the layer's."""
    found = graph.call_function(target, arguments)
    found.meta = {**_origin(node), "val": node.meta["val"]}
    return found


def _origin(node: Any) -> dict[str, Any]:
    """Return where a node comes from: its module, and the line of the user's source."""
    kept = ("nn_module_stack", "stack_trace", "source_fn_stack")
    return {key: node.meta[key] for key in kept if key in node.meta}
