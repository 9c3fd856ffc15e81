"""Rules shared by accelerators of several SoCs; each docstring is the public statement."""

from __future__ import annotations

from typing import Any

from byoc_dory.layers import Layer, Shift, Weighted
from byoc_dory.options import TilingOptions
from byoc_dory.soc.base import Accelerator, Soc
from byoc_dory.tiling.shortage import shortage_of
from byoc_dory.verdict import Accepted, Refused, Verdict

ACCEPTED = Accepted()


def tensors_are_int8(layer: Layer) -> Verdict:
    """Check the types of a layer's activations and weights; a part of rules that check more."""
    for tensor in (*layer.inputs, layer.output):
        if tensor.dtype != "int8":
            return Refused(f"tensor '{tensor.name}' is {tensor.dtype}")
    if isinstance(layer, Weighted) and layer.weight.dtype != "int8":
        return Refused(f"the weights are {layer.weight.dtype}")
    return ACCEPTED


def data_are_int8(soc: Soc, core: Accelerator, layer: Layer) -> Verdict:
    """Inputs, output and weights are int8, the bias is int32."""
    verdict = tensors_are_int8(layer)
    if isinstance(verdict, Refused):
        return verdict
    bias = layer.bias if isinstance(layer, Weighted) else None
    if bias is not None and bias.dtype != "int32":
        return Refused(f"the bias is {bias.dtype}")
    return ACCEPTED


def dilation_is_one(soc: Soc, core: Accelerator, layer: Layer) -> Verdict:
    """The dilation is 1x1."""
    if layer.dilation != (1, 1):
        return Refused(f"the dilation is {layer.dilation[0]}x{layer.dilation[1]}")
    return ACCEPTED


def requantization_is_one_shift(soc: Soc, core: Any, layer: Layer) -> Verdict:
    """Requantization is one right shift of 0 to 31 bits for the whole layer."""
    limit = core.max_shift
    if not isinstance(layer.requant, Shift):
        return Refused(f"the requantization is {type(layer.requant).__name__}, not one shift")
    if not 0 <= layer.requant.shift <= limit:
        return Refused(f"the shift is {layer.requant.shift}, not in 0..{limit}")
    return ACCEPTED


def smallest_tile_fits(soc: Soc, core: Accelerator, layer: Layer) -> Verdict:
    """The smallest tile fits L1."""
    lacking = shortage_of(core.problem(soc, layer, TilingOptions()))
    return ACCEPTED if lacking is None else Refused(lacking.error().what)


def fits_budget(soc: Soc, core: Accelerator, layer: Layer, l1_budget: int | None) -> Verdict:
    """The smallest tile fits what may be used of L1; of every part, if the layer is expanded."""
    if l1_budget is None:
        return ACCEPTED
    for part, home in core.expand(soc, layer):
        options = TilingOptions(l1_budget=l1_budget)
        lacking = shortage_of(soc.accelerator(home).problem(soc, part, options))
        if lacking is not None:
            return Refused(lacking.error().what)
    return ACCEPTED
