"""`Quantizer`: tells torchao which tensors of a network a target computes with, and how."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torchao.quantization.pt2e.quantizer import (
    DerivedQuantizationSpec,
    QuantizationAnnotation,
    SharedQuantizationSpec,
)
from torchao.quantization.pt2e.quantizer import Quantizer as TorchaoQuantizer

from byoc_dory.errors import InputError, TargetError
from byoc_dory.soc.base import Target
from htvm.arithmetic import Arithmetic, arithmetic_of
from htvm.public import public
from htvm.torch.array import ArrayLayer, in_passes, takes
from htvm.torch.constants import constants_of
from htvm.torch.observers import ConverterOffset, GridBias, observer_of
from htvm.torch.specs import Specs
from htvm.torch.transformers import Rewritten, rewrite

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

_PAIRS = (*SUMS, _aten.mul.Tensor, _aten.sub.Tensor)
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
        self,
        target: str | Target,
        *,
        training: bool = False,
        weight_bits: int = 8,
        noise: float = 0.0,
    ) -> None:
        """Make a quantizer for a target.

        Args:
            target: a target's name, or what `htvm.soc` returns.
            training: whether for ``prepare_qat_pt2e``: with fake quantizers.
            weight_bits: bits of the weights, 2 to 8.
            noise: standard deviation of the noise that an analog core's converters see in
                training, in their steps.

        Raises:
            TargetError: the target is unknown, or has a number scheme without quantizer; or there
                is noise, and no array that could be noisy.
            InputError: weights cannot have so many bits there, or the noise is no deviation.
        """
        super().__init__()
        self.arithmetic = arithmetic_of(target, weight_bits)
        self.training = training
        _check_noise(noise, self.arithmetic)
        self._specs = Specs(self.arithmetic, training, noise)
        self._ties: list[_Tie] = []
        self._on_array: list[ArrayLayer] = []
        self._rewritten: list[Rewritten] = []
        self._constant: dict[Any, Any] = {}

    # ------------------------------------------------------------------ what torchao calls

    def transform_for_annotation(self, model: Any) -> Any:
        """Give each layer a bias, as results without one may be ties; write what ITA computes.

        Also layers on an array.
        """
        array, softmax = self.arithmetic.array, self.arithmetic.softmax
        self._on_array = []
        self._rewritten = rewrite(model, softmax) if softmax is not None else []
        if self.arithmetic.scales == "free":
            return model
        for node in list(model.graph.nodes):
            if node.target not in WEIGHTED or node.args[1].op != "get_attr":
                continue
            if _argument(node, 2) is None:
                _add_bias(model, node)
            weight = model.get_parameter(node.args[1].target)
            if array is not None and takes(array, node, weight):
                self._on_array.append(in_passes(model, node, weight, array))
        model.graph.eliminate_dead_code()
        model.recompile()
        return model

    def annotate(self, model: Any) -> Any:
        """Write on each operator how its operands and its result are quantized."""
        self._ties = []
        found: dict[Any, Any] = {}  # tensor -> its specification
        on_array = {product: layer for layer in self._on_array for product in layer.products}
        rewritten = {each.node: each for each in self._rewritten}
        self._constant = constants_of(model)
        for node in model.graph.nodes:
            if node.op != "call_function" or node in self._constant:
                continue
            if "quantization_annotation" in node.meta:
                continue
            if node in on_array:
                self._annotate_pass(node, on_array[node], found)
            elif node in rewritten:
                self._annotate_real(node, found, numbers=rewritten[node].numbers)
            elif node.target in WEIGHTED:
                self._annotate_weighted(node, found)
            elif node.target in SUMS and len(self._operands(node)) == 2:
                self._annotate_sum(node, found)
            elif node.target in (*PASSING, *RECTIFIERS, *CLIPS, _aten.embedding.default):
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
        for tie in self._ties:
            read, weight, result = (
                observer_of(made[key]) for key in (tie.read, tie.weight, tie.result)
            )
            if (read, weight) not in result.products:
                result.products.append((read, weight))
            made[tie.bias] = tie.kind(read, weight, result, training=self.training, limit=tie.limit)
        for each in self._rewritten:
            each.tie(model, made, training=self.training)

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
            self._ties.append(_Tie((read, node), (weight, node), chain[-1], (node.args[2], node)))
        for each in chain:
            _annotate(each, operands if each is node else {})
        last = chain[-1]
        rectified = last.target in RECTIFIERS and _is_read_by_layers(last)
        spec = self._specs.rectified if rectified else self._specs.activation
        last.meta["quantization_annotation"].output_qspec = spec
        found[last] = spec

    def _annotate_pass(self, node: Any, layer: ArrayLayer, found: dict[Any, Any]) -> None:
        """Annotate a pass over an array; the last one, with all that follows the converters."""
        read, weight, offset = node.args[:3]
        first = layer.products[0]
        _annotate(
            node,
            {
                read: found.get(read, self._specs.activation),
                weight: self._specs.ternary,
                offset: _PLACE_OF_BIAS,
            },
            self._specs.converter if node is first else SharedQuantizationSpec(first),
        )
        self._ties.append(
            _Tie((read, node), (weight, node), first, (offset, node), ConverterOffset)
        )
        if node is not layer.products[-1]:
            return
        for total in layer.between:
            _annotate(total, {})
        (factor,), (bias,) = layer.scaled.args[1:], layer.result.args[1:]
        _annotate(layer.scaled, {factor: self._specs.factor})
        _annotate(layer.result, {bias: _PLACE_OF_BIAS})
        last = layer.result
        follower = _only_user(last)
        if follower is not None and follower.target in RECTIFIERS:
            last = follower
            _annotate(last, {})
        last.meta["quantization_annotation"].output_qspec = self._specs.activation
        found[last] = self._specs.activation
        self._ties.append(
            _Tie(first, (factor, layer.scaled), last, (bias, layer.result), limit=_INT16)
        )

    def _annotate_sum(self, node: Any, found: dict[Any, Any]) -> None:
        follower = _only_user(node)
        chain = [node]
        if follower is not None and follower.target in RECTIFIERS:
            chain.append(follower)
        computed = not self._constant.keys() & node.args[:2]
        if self.arithmetic.scales == "power_of_two" and computed:
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
        read = {first: spec, **dict.fromkeys(others, shared)}
        for each in chain:
            _annotate(each, read if each is node else {})
        chain[-1].meta["quantization_annotation"].output_qspec = shared
        found[chain[-1]] = spec

    def _annotate_real(
        self,
        node: Any,
        found: dict[Any, Any],
        chain: list[Any] | None = None,
        numbers: Any = None,
    ) -> None:
        """Annotate operands and result each with a quantization of its own."""
        chain = chain or [node]
        operands = self._operands(node)
        if not operands:
            return
        read = {each: found.get(each, self._specs.activation) for each in operands}
        if numbers is not None:
            read[numbers] = _PLACE_OF_BIAS
        for each in chain:
            _annotate(each, read if each is node else {})
        last = chain[-1]
        last.meta["quantization_annotation"].output_qspec = self._specs.activation
        found[last] = self._specs.activation

    def _operands(self, node: Any) -> list[Any]:
        """Return the tensors of a node that are to be integers, the same one twice included.

        These are computed; or constants that are added to such a one, or multiplied with it,
        element by element, as positions are.  Masks and what they are added to are not: their
        infinities are no integers.  (A fourth argument is the mask of attention.)
        """
        tensors = [each for each in node.args[:3] if _is_tensor(each)]
        return [
            each
            for each in tensors
            if (node.target in _PAIRS and self._is_table(each))
            or (each not in self._constant and not self._is_masked(each))
        ]

    def _is_table(self, node: Any) -> bool:
        """Whether it is several constant reals; a single one makes a function of one tensor."""
        constant = self._constant.get(node)
        return constant is not None and constant.numel() > 1 and _is_finite(constant)

    def _is_masked(self, node: Any) -> bool:
        """Whether a constant with infinities is added to it."""
        added = node.args[:2] if node.target in SUMS else ()
        return any(not _is_finite(self._constant[each]) for each in self._constant.keys() & added)


_INT16 = (-(1 << 15), (1 << 15) - 1)


@dataclass(frozen=True)
class _Tie:
    """Scales that belong together: of what a layer reads, its weights and its results.

    Attributes:
        read, weight, result, bias: the edges, or the operators whose results they are.
        kind: what makes the bias.
        limit: of the bias (see `GridBias`).
    """

    read: Any
    weight: Any
    result: Any
    bias: Any
    kind: type[GridBias] = GridBias
    limit: tuple[int, int] | None = None


# The observer that torchao makes of it is replaced by one that knows the scales around the bias.
_PLACE_OF_BIAS = DerivedQuantizationSpec(
    [], lambda _: (torch.ones(1), torch.zeros(1)), torch.int32, qscheme=torch.per_tensor_symmetric
)


def _annotate(node: Any, operands: dict[Any, Any], result: Any = None) -> None:
    node.meta["quantization_annotation"] = QuantizationAnnotation(
        input_qspec_map=operands, output_qspec=result, _annotated=True
    )


def _check_noise(noise: float, arithmetic: Arithmetic) -> None:
    if isinstance(noise, bool) or not isinstance(noise, int | float) or not 0 <= noise < math.inf:
        raise InputError(
            f"a noise of {noise!r}", where="option 'noise'", hint="give a standard deviation"
        )
    if noise and arithmetic.array is None:
        raise TargetError(
            "there is no in-memory array that could be noisy",
            where=f"target '{arithmetic.target}'",
            hint="leave out the noise, or quantize for an analog core",
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


def _is_finite(constant: Any) -> bool:
    return constant.is_floating_point() and bool(torch.isfinite(constant).all())


def _is_read_by_layers(node: Any) -> bool:
    """Whether layers with weights alone read a tensor, or what is only moved of it."""
    return bool(node.users) and all(
        (user.target in WEIGHTED and user.args[1].op == "get_attr")
        or (user.target in PASSING and _is_read_by_layers(user))
        for user in node.users
    )


def _only_user(node: Any) -> Any:
    return next(iter(node.users)) if len(node.users) == 1 else None
