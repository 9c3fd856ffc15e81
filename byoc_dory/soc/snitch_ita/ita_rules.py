"""What ITA takes: each rule's docstring is its public statement."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from byoc_dory.layers import (
    Add,
    Array,
    Attend,
    Attention,
    Gemm,
    Layer,
    MultiHeadAttention,
    Projection,
    rounded_half_up,
)
from byoc_dory.layers.rowwise import ItaGelu, ItaSoftmax
from byoc_dory.soc.base import Rules, Soc
from byoc_dory.soc.cluster.requant import mul_shift
from byoc_dory.soc.rules import ACCEPTED, smallest_tile_fits
from byoc_dory.soc.snitch_ita.ita_core import Ita, ita_requant
from byoc_dory.soc.snitch_ita.ita_program import sum_rows
from byoc_dory.verdict import Refused, Verdict


def operator_is_known(soc: Soc, core: Ita, layer: Layer) -> Verdict:
    """The operator is a product with constant weights, multi-head attention, or a sum."""
    if isinstance(layer, Gemm | MultiHeadAttention | Attend | Add):
        return ACCEPTED
    return Refused(f"the operator is {layer.op}")


def data_are_int8(soc: Soc, core: Ita, layer: Layer) -> Verdict:
    """Operands, results and weights are int8, biases fit 24 bits."""
    for tensor in (*layer.inputs, layer.output):
        if tensor.dtype != "int8":
            return Refused(f"tensor '{tensor.name}' is {tensor.dtype}")
    limit = 1 << (8 * core.bias_bytes - 1)
    for weight, bias in _constants(layer):
        if weight.dtype != "int8":
            return Refused(f"weights are {weight.dtype}")
        if bias is not None and bias.size and not -limit <= bias.min() <= bias.max() < limit:
            worst = int(bias[np.abs(bias.astype(np.int64)).argmax()])
            return Refused(f"a bias is {worst}, more than {8 * core.bias_bytes} bits")
    return ACCEPTED


def sizes_are_at_most_512(soc: Soc, core: Ita, layer: Layer) -> Verdict:
    """Rows, columns and summed lengths are at most 512; a sum is of rows of 64 of its operands."""
    if isinstance(layer, Add):
        return _sum_is_of_rows(core, layer)
    sizes = {"rows": layer.oy, "columns": layer.K, "summed elements": layer.C}
    if isinstance(layer, MultiHeadAttention):
        attention = layer.attention
        sizes["columns of a head"] = attention.head_size
        if attention.joined:
            sizes["columns of all heads"] = attention.heads * attention.head_size
    if isinstance(layer, Attend):
        sizes["keys"] = layer.keys
    for what, size in sizes.items():
        if size > core.max_dim:
            return Refused(f"there are {size} {what}, more than {core.max_dim}")
    return ACCEPTED


def _sum_is_of_rows(core: Ita, layer: Add) -> Verdict:
    """Check that a sum is a product of rows of all operands side by side."""
    shapes = {tensor.shape for tensor in (*layer.inputs, layer.output)}
    rows, inner = sum_rows(core, layer), len(layer.inputs) * core.tile
    if len(shapes) > 1:
        return Refused("the operands are " + ", ".join(str(t.shape) for t in layer.inputs))
    if layer.output.elements % core.tile:
        return Refused(f"there are {layer.output.elements} elements, no multiple of {core.tile}")
    if rows > core.max_dim:
        return Refused(f"there are {rows} rows of {core.tile} elements, more than {core.max_dim}")
    if inner > core.max_dim:
        return Refused(f"there are {inner} summed elements, more than {core.max_dim}")
    return ACCEPTED


def heads_are_whole_tiles(soc: Soc, core: Ita, layer: Layer) -> Verdict:
    """The head size of attention is a multiple of 64."""
    size = 0
    if isinstance(layer, MultiHeadAttention):
        size = layer.attention.head_size
    elif isinstance(layer, Attend):
        size = layer.head_size
    if size % core.tile:
        return Refused(f"the head size is {size}, not a multiple of {core.tile}")
    return ACCEPTED


def requantization_is_itas(soc: Soc, core: Ita, layer: Layer) -> Verdict:
    """Requantization is one 8-bit multiplier, one shift, rounding half up, and an int8 offset."""
    if isinstance(layer, MultiHeadAttention):
        wanted = _of_attention(layer.attention)
    elif isinstance(layer, Attend):
        wanted = [layer.scores.scores, layer.scores.context]
    else:
        requant = mul_shift(rounded_half_up(layer))
        if requant is None:
            return Refused(f"the requantization is {type(layer.requant).__name__}")
        if max(map(len, (requant.mul, requant.shift, requant.add))) > 1:
            return Refused("each channel has a requantization of its own")
        wanted = [(requant.mul[0], requant.shift[0], requant.add[0])]
    for mul, shift, add in wanted:
        found = ita_requant(mul, shift, add, core.max_shift)
        if isinstance(found, str):
            return Refused(found)
    return ACCEPTED


def activation_is_known(soc: Soc, core: Ita, layer: Layer) -> Verdict:
    """Behind a product come ReLU or ITA's GELU, not both, and no other clip than to int8."""
    if not isinstance(layer, Gemm | Add):
        return ACCEPTED
    if isinstance(layer, Gemm) and layer.function is not None:
        if not isinstance(layer.function, ItaGelu):
            return Refused(f"the activation is {type(layer.function).__name__}")
        if layer.clip != (-128, 127):
            return Refused(f"the clip range before the activation is {list(layer.clip)}")
        limit = 1 << 15
        gelu = layer.function
        if not (-limit <= gelu.b <= 0 and -limit <= gelu.c < limit):
            return Refused(f"the activation's b and c are {gelu.b} and {gelu.c}, not 16 bits")
        if not (0 <= gelu.mul <= 255 and 0 <= gelu.shift <= core.max_shift):
            return Refused(f"the activation's multiplier is {gelu.mul}, its shift {gelu.shift}")
        return ACCEPTED
    if not core.can_clip_to(layer.clip):
        return Refused(f"the clip range is [{layer.clip[0]}, {layer.clip[1]}]")
    return ACCEPTED


def softmax_is_itas(soc: Soc, core: Ita, layer: Layer) -> Verdict:
    """The softmax is that of the accelerator: groups of 16, values up to 255."""
    if isinstance(layer, MultiHeadAttention):
        scores = layer.attention.scores
    elif isinstance(layer, Attend):
        scores = layer.scores
    else:
        return ACCEPTED
    reason = softmax_refusal(scores.softmax, core)
    return ACCEPTED if reason is None else Refused(reason)


def softmax_refusal(softmax: ItaSoftmax, core: Ita) -> str | None:
    """Return why ITA cannot compute a softmax; ``None`` if it can."""
    if softmax.group != core.softmax_group:
        return f"the softmax takes groups of {softmax.group}, not of {core.softmax_group}"
    if softmax.step_bits not in (0, core.softmax_shift):
        return f"the softmax halves each {2**softmax.step_bits} steps"
    if softmax.numerator != core.softmax_numerator:
        return f"the softmax' numerator is {softmax.numerator}, not {core.softmax_numerator}"
    return None


def heads_are_alike(soc: Soc, core: Ita, layer: Layer) -> Verdict:
    """Heads that one product takes side by side are requantized alike."""
    if not isinstance(layer, MultiHeadAttention) or not layer.attention.joined:
        return ACCEPTED
    for what in ("query", "key", "value"):
        kinds = {(p.mul, p.shift, p.add) for p in getattr(layer.attention, what)}
        if len(kinds) > 1:
            return Refused(f"the heads' {what} products have {len(kinds)} requantizations")
    return ACCEPTED


def tiles_fit(soc: Soc, core: Ita, layer: Layer) -> Verdict:
    """The smallest tile fits L1."""
    for part, name in core.expand(soc, layer):
        home = soc.accelerator(name)
        verdict = smallest_tile_fits(soc, home, part)
        if isinstance(verdict, Refused):
            return verdict
    return ACCEPTED


RULES: Rules = (
    ("ITA-1", operator_is_known),
    ("ITA-2", data_are_int8),
    ("ITA-3", sizes_are_at_most_512),
    ("ITA-4", heads_are_whole_tiles),
    ("ITA-5", requantization_is_itas),
    ("ITA-6", activation_is_known),
    ("ITA-7", softmax_is_itas),
    ("ITA-8", heads_are_alike),
    ("ITA-9", tiles_fit),
)


def _products(attention: Attention) -> tuple[Projection, ...]:
    return (*attention.query, *attention.key, *attention.value, *attention.output)


def _constants(layer: Layer) -> Iterator[tuple[Array, Array | None]]:
    layer = rounded_half_up(layer)
    if isinstance(layer, Gemm):
        yield layer.weight, layer.bias
    if isinstance(layer, MultiHeadAttention):
        for product in _products(layer.attention):
            yield product.weight, product.bias


def _of_attention(attention: Attention) -> list[tuple[int, int, int]]:
    found = [(p.mul, p.shift, p.add) for p in _products(attention)]
    return [*found, attention.scores.scores, attention.scores.context]
