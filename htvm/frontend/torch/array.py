"""Layers on an in-memory array: found in a program, and read as one operator each.

`htvm.torch` writes a layer for training as what torch can compute: products over slices of the
channels, each quantized as the converters do, their sum times a factor, and a bias.  Here these
become one node, ``htvm.in_passes``; programs of others, which compute something like it, stay as
they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from byoc_dory.layers import AnalogRequant, Array
from htvm.frontend.onnx.affine.reader import NodeReader
from htvm.frontend.onnx.affine.values import Quantized, Value
from htvm.frontend.operators import Quantization
from htvm.frontend.torch.program import Ref, TorchNode, TorchProgram, TorchTensor
from htvm.frontend.torch.serialized import refs
from htvm.frontend.torch.writer import Call
from patterns.ops.analog.products import AnalogConv2d, AnalogDense
from patterns.ops.convolution import Window

IN_PASSES = "htvm.in_passes"

_QUANTIZE = "quantized_decomposed.quantize_per_tensor"
_DEQUANTIZE = "quantized_decomposed.dequantize_per_tensor"


class _No(Exception):
    """What was looked at is no layer on an array."""


@dataclass(frozen=True)
class _Pass:
    """A product and its converter.

    Attributes:
        product: the convolution or linear layer.
        source: name of the quantized tensor that it reads a part of.
        channels: first and last channel of this part, or ``None`` for all.
        weight: int8 ``[K, C, ...]``.
        step: scale of what it reads, that of its weights included.
        scale: of the converter's results.
        adc: inclusive range of the converter.
    """

    product: TorchNode
    source: str
    channels: tuple[int, int] | None
    weight: Array
    step: float
    scale: float
    adc: tuple[int, int]


def with_arrays(program: TorchProgram) -> TorchProgram:
    """Return the program with one node for each layer on an array."""
    made = {node.outputs[0]: node for node in program.nodes}
    constants = dict(program.constants)
    replaced: dict[str, TorchNode] = {}
    for node in program.nodes:
        if node.operator == _QUANTIZE:
            try:
                replaced[node.outputs[0]] = _Finder(made, program.tensors, constants).layer(node)
            except _No:
                continue
    if not replaced:
        return program
    nodes = tuple(replaced.get(node.outputs[0], node) for node in program.nodes)
    return replace(program, nodes=_needed(nodes, program.outputs), constants=constants)


def _needed(nodes: tuple[TorchNode, ...], outputs: tuple[str, ...]) -> tuple[TorchNode, ...]:
    """Return the nodes that the outputs still need."""
    wanted, kept = set(outputs), []
    for node in reversed(nodes):
        if wanted & set(node.outputs):
            wanted.update(refs(node))
            kept.append(node)
    return tuple(reversed(kept))


class _Finder:
    """Walks from a quantization back to what the layer reads.

    Args:
        made: node by the name of its result.
        shapes: what the program says of its tensors.
        constants: those of the program, to which those of the layer are added.
    """

    def __init__(
        self,
        made: Mapping[str, TorchNode],
        shapes: Mapping[str, TorchTensor],
        constants: dict[str, Array],
    ) -> None:
        self._made, self._shapes, self._constants = made, shapes, constants

    def layer(self, quantize: TorchNode) -> TorchNode:
        """Return the node of the layer that ends in a quantization.

        Raises:
            _No: there is none.
        """
        scale, low, high = _grid(quantize)
        result = self._inner(quantize, "input")
        if result.operator == "aten.relu":
            low, result = max(low, 0), self._inner(result, "self")
        _expect(result.operator == "aten.add")
        scaled, bias = self._inner(result, "self"), self._constant(result, "other")
        _expect(scaled.operator == "aten.mul")
        factors, step = self._factors(scaled)
        passes = self._passes(self._inner(scaled, "self"))
        first = passes[0]
        gain = first.scale / first.step
        _expect(1 <= gain < 1 << 31)
        results = first.scale * step
        _expect(results > 0 and 1 <= scale / results < 1 << 31)
        shift = round(math.log2(scale / results))
        steps = bias.astype("float64").reshape(-1) / results
        half = 2.0 ** (shift - 1) if shift > 0 else 0.0
        between = (steps % 1 == 0.5) if shift > 0 else (steps % 1 == 0)
        _expect(bool(np.all(between)))
        added = np.floor(steps) + half
        name = quantize.name
        channels = len(first.weight)
        _expect(factors.size in (1, channels) and added.size in (1, channels))
        for part, values in (
            ("weight", np.concatenate([each.weight for each in passes], axis=1)),
            ("factors", factors.reshape(-1).astype("int64")),
            ("summands", added.astype("int64")),
        ):
            _expect(f"{name}_{part}" not in self._shapes)
            self._constants[f"{name}_{part}"] = values
        arguments: dict[str, Any] = {
            "input": Ref(first.source),
            "weight": Ref(f"{name}_weight"),
            "factors": Ref(f"{name}_factors"),
            "summands": Ref(f"{name}_summands"),
            "numbers": (int(gain), shift, first.weight[0].size, *first.adc, low, high),
            "scale": scale,
        }
        product = first.product
        for key in ("stride", "padding"):
            if key in product.arguments:
                arguments[key] = product.arguments[key]
        return replace(
            quantize,
            target=f"{IN_PASSES}.default",
            arguments=arguments,
            module=product.module,
            line=product.line,
        )

    # -------------------------------------------------------------------------- parts

    def _passes(self, node: TorchNode) -> list[_Pass]:
        """Return the passes whose converted sums are added."""
        ends: list[TorchNode] = []
        while node.operator == "aten.add":
            ends.append(self._inner(node, "other"))
            node = self._inner(node, "self")
        passes = [self._pass(each) for each in (node, *reversed(ends))]
        first, channels = passes[0], 0
        for each in passes:
            _expect((each.source, each.step, each.scale, each.adc)
                    == (first.source, first.step, first.scale, first.adc))  # fmt: skip
            _expect(each.product.target == first.product.target)
            if each.channels is not None:
                _expect(each.channels == (channels, channels + each.weight.shape[1]))
            channels += each.weight.shape[1]
        _expect(len(passes) == 1 or all(each.channels is not None for each in passes))
        return passes

    def _pass(self, node: TorchNode) -> _Pass:
        _expect(node.operator == _DEQUANTIZE)
        quantize = self._inner(node, "input")
        _expect(quantize.operator == _QUANTIZE)
        scale, low, high = _grid(quantize)
        product = self._inner(quantize, "input")
        is_conv = product.operator == "aten.conv2d"
        _expect(is_conv or product.operator == "aten.linear")
        known = {"input", "weight", "bias", "stride", "padding"}
        others = {key: value for key, value in product.arguments.items() if key not in known}
        _expect(others in ({}, {"dilation": (1, 1), "groups": 1}, {"dilation": (1, 1)}))
        weights = self._inner(product, "weight")
        _expect(weights.operator == _DEQUANTIZE)
        weight_scale, _, _ = _grid(weights)
        weight = self._constant(weights, "input")
        _expect(
            weight.dtype == np.int8 and weight.size > 0 and weight.ndim == (4 if is_conv else 2)
        )
        _expect(abs(weight.astype(int)).max() <= 1)
        # Rows of several positions are no layer of an array.
        _expect(len(self._shapes[product.outputs[0]].shape) == weight.ndim)
        source, channels, read = self._source(
            self._inner(product, "input"), -1 if weight.ndim == 2 else 1
        )
        step = read * weight_scale
        _expect(step > 0)
        floors = (1 - scale / step) / 2 * step if scale > step else 0.0
        _expect(bool(np.all(self._constant(product, "bias") == floors)))
        return _Pass(product, source, channels, weight, step, scale, (low, high))

    def _source(self, node: TorchNode, axis: int) -> tuple[str, tuple[int, int] | None, float]:
        """Return the tensor that a pass reads, which of its channels, and its scale."""
        _expect(node.operator == _DEQUANTIZE)
        scale, _, _ = _grid(node)
        name = self._name(node, "input")
        quantize = self._made.get(name)
        if quantize is None or quantize.operator != _QUANTIZE:
            return name, None, scale
        part = self._made.get(self._name(quantize, "input"))
        if part is None or part.operator != "aten.slice":
            return name, None, scale
        given = part.arguments
        _expect(given.get("dim", 0) in (axis, axis % 4) and given.get("step", 1) in (None, 1))
        whole = self._inner(part, "self")
        _expect(whole.operator == _DEQUANTIZE and _grid(whole)[0] == scale)
        first, last = given.get("start"), given.get("end")
        _expect(isinstance(first, int) and isinstance(last, int))
        return self._name(whole, "input"), (int(first), int(last)), scale  # type: ignore[arg-type]

    def _factors(self, node: TorchNode) -> tuple[Array, float]:
        dequantize = self._inner(node, "other")
        _expect(dequantize.operator == _DEQUANTIZE)
        scale, _, _ = _grid(dequantize)
        return self._constant(dequantize, "input"), scale

    # -------------------------------------------------------------------------- steps back

    def _name(self, node: TorchNode, argument: str) -> str:
        value = node.arguments.get(argument)
        if not isinstance(value, Ref):
            raise _No
        return value.name

    def _inner(self, node: TorchNode, argument: str) -> TorchNode:
        """Return the node whose result is an argument."""
        name = self._name(node, argument)
        found = self._made.get(name)
        if found is None:
            raise _No
        return found

    def _constant(self, node: TorchNode, argument: str) -> Array:
        found = self._constants.get(self._name(node, argument))
        if found is None:
            raise _No
        return found


def _expect(condition: bool) -> None:
    if not condition:
        raise _No


def _is_power_of_two(number: float) -> bool:
    return math.isfinite(number) and math.frexp(number)[0] == 0.5


def _grid(node: TorchNode) -> tuple[float, int, int]:
    """Return scale and range of a quantization without an offset, to int8."""
    given = node.arguments
    scale, zero = given.get("scale"), given.get("zero_point")
    low, high = given.get("quant_min"), given.get("quant_max")
    _expect(zero == 0 and given.get("dtype") == "int8")
    _expect(isinstance(scale, float) and isinstance(low, int) and isinstance(high, int))
    _expect(_is_power_of_two(float(scale)))  # type: ignore[arg-type]
    return float(scale), int(low), int(high)  # type: ignore[arg-type]


def write_in_passes(call: Call) -> str:
    """Write a layer as a node that `read_in_passes` reads."""
    names = ("gain", "shift", "rows", "adc_low", "adc_high", "low", "high")
    numbers = dict(zip(names, call.integers("numbers", len(names)), strict=True))
    roles = ("input", "weight", "factors", "summands")
    # Names alone: the layer's module is its own, not that of what it reads.
    inputs = [
        call.writer.name(value) for role in roles if isinstance(value := call.given(role), Ref)
    ]
    padding = call.integers("padding", 2, (0, 0))
    strides = call.integers("stride", 2, (1, 1))
    return call.node(
        "InPasses", inputs, strides=strides, pads=padding * 2, scale=call.number("scale"), **numbers
    )


def read_in_passes(node: NodeReader) -> Value:
    """Read a layer in passes."""
    source = node.value(0)
    if not isinstance(source, Quantized):
        raise node.unsupported("a layer on an array reads no quantized tensor")
    weight, factors, summands = (
        node.array(index, role) for index, role in enumerate(("weight", "factors", "summands"), 1)
    )
    requant = AnalogRequant(
        gain=node.integer("gain"),
        mul=tuple(int(value) for value in factors),
        add=tuple(int(value) for value in summands),
        shift=node.integer("shift"),
        rows=node.integer("rows"),
        adc=(node.integer("adc_low"), node.integer("adc_high")),
    )
    clip = node.integer("low"), node.integer("high")
    sy, sx = node.integers("strides")
    top, left, bottom, right = node.integers("pads")
    step = Quantization(node.number("scale"), 0)
    op: AnalogConv2d | AnalogDense
    if weight.ndim == 4:
        window = Window((sy, sx), (top, left, bottom, right), layout="NCHW")
        op = AnalogConv2d(weight, requant, clip, window)
    else:
        op = AnalogDense(weight, requant, clip)
    return Quantized(node.write(op, source.activation, step=step), "int8")
