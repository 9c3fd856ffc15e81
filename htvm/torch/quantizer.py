"""`Quantizer`: tells torchao which tensors of a network a target computes with, and how."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torchao.quantization.pt2e.quantizer import (
    DerivedQuantizationSpec,
    QuantizationAnnotation,
    SharedQuantizationSpec,
)
from torchao.quantization.pt2e.quantizer import Quantizer as TorchaoQuantizer

from byoc_dory.soc.base import Target
from htvm.public import public
from htvm.torch.arithmetic import arithmetic_of
from htvm.torch.observers import GridBias, observer_of
from htvm.torch.specs import Specs

_aten = torch.ops.aten

WEIGHTED = (
    _aten.conv1d.default,
    _aten.conv1d.padding,
    _aten.conv2d.default,
    _aten.conv2d.padding,
    _aten.linear.default,
)
"""Operators with constant weights, ``(x, weight, bias, ...)``."""

RECTIFIERS = (_aten.relu.default, _aten.relu_.default)
CLIPS = (
    _aten.relu6.default,
    _aten.relu6_.default,
    _aten.hardtanh.default,
    _aten.hardtanh_.default,
    _aten.clamp.default,
)

SUMS = (_aten.add.Tensor, _aten.add_.Tensor)

PASSING = (
    _aten.max_pool1d.default,
    _aten.max_pool2d.default,
    _aten.adaptive_max_pool2d.default,
    _aten.flatten.using_ints,
    _aten.unflatten.int,
    _aten.view.default,
    _aten.reshape.default,
    _aten.permute.default,
    _aten.transpose.int,
    _aten.squeeze.default,
    _aten.squeeze.dim,
    _aten.squeeze.dims,
    _aten.unsqueeze.default,
    _aten.slice.Tensor,
    _aten.select.int,
    _aten.contiguous.default,
    _aten.clone.default,
    _aten.dropout.default,
    _aten.pixel_shuffle.default,
    _aten.upsample_nearest2d.vec,
    _aten.roll.default,
)
"""Operators that only move or choose elements: result and operand have one quantization."""

REAL = (
    _aten.adaptive_avg_pool1d.default,
    _aten.adaptive_avg_pool2d.default,
    _aten.avg_pool1d.default,
    _aten.avg_pool2d.default,
    _aten.mean.dim,
    _aten.sigmoid.default,
    _aten.tanh.default,
    _aten.hardsigmoid.default,
    _aten.hardswish.default,
    _aten.hardswish_.default,
    _aten.gelu.default,
    _aten.silu.default,
    _aten.silu_.default,
    _aten.elu.default,
    _aten.leaky_relu.default,
    _aten.softmax.int,
    _aten.layer_norm.default,
    _aten.group_norm.default,
    _aten.upsample_bilinear2d.vec,
    _aten.mul.Tensor,
    _aten.sub.Tensor,
    _aten.matmul.default,
    _aten.bmm.default,
    _aten.scaled_dot_product_attention.default,
)
"""Operators that a host computes in reals, between tensors of integers."""

_JOINS = (_aten.cat.default, _aten.stack.default)


@public
class Quantizer(TorchaoQuantizer):  # type: ignore[misc]
    """Quantizes a network of torch in the numbers that a target computes with exactly.

    On accelerators, every scale is a power of two, no tensor has an offset, and biases lie on a
    grid where no result is a tie: then the reals of the converted module are the chip's integers,
    as long as the sums of a layer are below 2**23 of its products' steps. Without accelerators,
    scales are free, and weights have one for each channel.

    It is for `torchao`'s ``prepare_pt2e`` and ``prepare_qat_pt2e`` (then with ``training=True``);
    `htvm.torch.prepare` calls them, and folds batch norms first.
    """

    def __init__(
        self, target: str | Target, *, training: bool = False, weight_bits: int = 8
    ) -> None:
        """Make a quantizer for a target.

        Args:
            target: a target's name, or what `htvm.soc` returns.
            training: whether for ``prepare_qat_pt2e``: with fake quantizers.
            weight_bits: bits of the weights, 2 to 8.

        Raises:
            TargetError: the target is unknown, or has a number scheme without quantizer.
            InputError: weights cannot have so many bits there.
        """
        super().__init__()
        self.arithmetic = arithmetic_of(target, weight_bits)
        self.training = training
        self._specs = Specs(self.arithmetic, training)
        # Layer -> its last operator, for the scales of biases.
        self._last: dict[Any, Any] = {}

    # ------------------------------------------------------------------ what torchao calls

    def transform_for_annotation(self, model: Any) -> Any:
        """Give each layer a bias: results without one may be ties."""
        if self.arithmetic.scales == "free":
            return model
        for node in list(model.graph.nodes):
            if node.target in WEIGHTED and _argument(node, 2) is None:
                _add_bias(model, node)
        model.recompile()
        return model

    def annotate(self, model: Any) -> Any:
        """Write on each operator how its operands and its result are quantized."""
        self._last = {}
        found: dict[Any, Any] = {}  # tensor -> its specification
        for node in model.graph.nodes:
            if node.op != "call_function" or "quantization_annotation" in node.meta:
                continue
            if node.target in WEIGHTED:
                self._annotate_weighted(node, found)
            elif node.target in SUMS and _operands(node) == 2:
                self._annotate_sum(node, found)
            elif node.target in PASSING or node.target in (*RECTIFIERS, *CLIPS):
                self._share(node, [node.args[0]], found)
            elif node.target in _JOINS:
                self._share(node, list(node.args[0]), found)
            elif node.target in REAL:
                self._annotate_real(node, found)
        return model

    def validate(self, model: Any) -> None:
        """Nothing is left to check: operators that are not annotated stay in reals."""

    def prepare_obs_or_fq_callback(self, model: Any, edge_or_node_to_obs_or_fq: Any) -> None:
        """Tie the scales of layers to each other, and their biases to the scales."""
        made = edge_or_node_to_obs_or_fq
        if self.arithmetic.scales == "free":
            return
        for node, last in self._last.items():
            read, weight, bias = node.args[:3]
            observers = [observer_of(made[key]) for key in ((read, node), (weight, node), last)]
            observers[2].products.append((observers[0], observers[1]))
            made[(bias, node)] = GridBias(*observers, training=self.training)

    # ------------------------------------------------------------------ one kind of operator each

    def _annotate_weighted(self, node: Any, found: dict[Any, Any]) -> None:
        read, weight = node.args[:2]
        if weight.op != "get_attr":
            return
        chain = [node]
        follower = _only_user(node)
        if follower is not None and (
            follower.target in RECTIFIERS or (follower.target in CLIPS and self.arithmetic.clips)
        ):
            chain.append(follower)
        operands = {read: found.get(read, self._specs.activation), weight: self._specs.weight}
        if self.arithmetic.scales == "power_of_two":
            operands[node.args[2]] = _PLACE_OF_BIAS
            self._last[node] = chain[-1]
        for each in chain:
            each.meta["quantization_annotation"] = QuantizationAnnotation(_annotated=True)
        node.meta["quantization_annotation"].input_qspec_map = operands
        last = chain[-1]
        is_rectified = last.target in RECTIFIERS or (last.target in CLIPS and _from_zero(last))
        result = self._specs.rectified if is_rectified else self._specs.activation
        last.meta["quantization_annotation"].output_qspec = result
        found[last] = result

    def _annotate_sum(self, node: Any, found: dict[Any, Any]) -> None:
        follower = _only_user(node)
        chain = [node]
        if follower is not None and follower.target in RECTIFIERS:
            chain.append(follower)
        if self.arithmetic.alike:
            self._share(node, list(node.args[:2]), found, chain)
            return
        self._annotate_real(node, found, chain)

    def _share(
        self, node: Any, operands: list[Any], found: dict[Any, Any], chain: list[Any] | None = None
    ) -> None:
        """Annotate operands and result with one quantization."""
        chain = chain or [node]
        first, *others = dict.fromkeys(operands)
        spec = found.get(first, self._specs.activation)
        shared = SharedQuantizationSpec((first, node))
        for each in chain:
            each.meta["quantization_annotation"] = QuantizationAnnotation(_annotated=True)
        node.meta["quantization_annotation"].input_qspec_map = {
            first: spec,
            **dict.fromkeys(others, shared),
        }
        chain[-1].meta["quantization_annotation"].output_qspec = shared
        found[chain[-1]] = spec

    def _annotate_real(
        self, node: Any, found: dict[Any, Any], chain: list[Any] | None = None
    ) -> None:
        """Annotate operands and result each with a quantization of its own."""
        chain = chain or [node]
        operands = [each for each in node.args if _is_tensor(each)]
        if not operands:
            return
        for each in chain:
            each.meta["quantization_annotation"] = QuantizationAnnotation(_annotated=True)
        node.meta["quantization_annotation"].input_qspec_map = {
            each: found.get(each, self._specs.activation)
            for each in operands
            if each.op != "get_attr"  # weights of norms
        }
        last = chain[-1]
        keeps_sign = last.target in RECTIFIERS or last.target in _AVERAGES
        spec = self._specs.activation
        if last.target in RECTIFIERS or (
            keeps_sign and found.get(operands[0]) is self._specs.rectified
        ):
            spec = self._specs.rectified
        last.meta["quantization_annotation"].output_qspec = spec
        found[last] = spec


_AVERAGES = (
    _aten.adaptive_avg_pool1d.default,
    _aten.adaptive_avg_pool2d.default,
    _aten.avg_pool1d.default,
    _aten.avg_pool2d.default,
    _aten.mean.dim,
)

# The observer that torchao makes of it is replaced by one that knows the scales around the bias.
_PLACE_OF_BIAS = DerivedQuantizationSpec(
    [], lambda _: (torch.ones(1), torch.zeros(1)), torch.int32, qscheme=torch.per_tensor_symmetric
)


def _add_bias(model: Any, node: Any) -> None:
    """Give a layer a bias of zeros."""
    owner: Any = model
    for part in node.args[1].target.split("."):
        owner = getattr(owner, part)
    name = f"{node.name}_bias"
    setattr(model, name, torch.nn.Parameter(torch.zeros(len(owner))))
    with model.graph.inserting_before(node):
        bias = model.graph.get_attr(name)
    bias.meta = dict(node.args[1].meta)
    bias.meta.pop("val", None)
    node.args = (*node.args[:2], bias, *node.args[3:])


def _argument(node: Any, index: int) -> Any:
    return node.args[index] if len(node.args) > index else None


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.fx.Node)


def _operands(node: Any) -> int:
    """Return how many tensors that are computed a node reads, the same one twice included."""
    return sum(_is_tensor(each) and each.op != "get_attr" for each in node.args)


def _only_user(node: Any) -> Any:
    return next(iter(node.users)) if len(node.users) == 1 else None


def _from_zero(clip: Any) -> bool:
    if clip.target in (_aten.relu6.default, _aten.relu6_.default):
        return True
    low = _argument(clip, 1)
    return low is not None and not _is_tensor(low) and operator.ge(low, 0)
