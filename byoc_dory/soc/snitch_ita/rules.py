"""Rules that the cores and ITA share."""

from __future__ import annotations

from byoc_dory.layers import Layer, Matmul, Weighted
from byoc_dory.soc.base import Accelerator, Soc
from byoc_dory.tiling.shortage import shortage_of
from byoc_dory.verdict import Accepted, Refused, Verdict

__all__ = ["ACCEPTED", "data_is_8_bits", "padding_is_below_kernel", "smallest_tile_fits"]

ACCEPTED = Accepted()


def data_is_8_bits(layer: Layer, core: Accelerator, soc: Soc) -> Verdict:
    """Operands and results are int8 or uint8, weights and second operands int8, biases int32."""
    for tensor in (*layer.inputs, layer.output):
        if tensor.dtype not in ("int8", "uint8"):
            return Refused(f"tensor '{tensor.name}' is {tensor.dtype}")
    if isinstance(layer, Matmul) and layer.inputs[1].dtype != "int8":
        return Refused(f"the second operand is {layer.inputs[1].dtype}")
    if isinstance(layer, Weighted):
        if layer.weight.dtype != "int8":
            return Refused(f"the weights are {layer.weight.dtype}")
        if layer.bias is not None and layer.bias.dtype != "int32":
            return Refused(f"the bias is {layer.bias.dtype}")
    return ACCEPTED


def padding_is_below_kernel(layer: Layer, core: Accelerator, soc: Soc) -> Verdict:
    """The padding above and below is smaller than the kernel is high."""
    top, _, bottom, _ = layer.pad
    if max(top, bottom) >= layer.fy:
        return Refused(f"the padding is {layer.pad} for a kernel of {layer.fy}x{layer.fx}")
    return ACCEPTED


def smallest_tile_fits(layer: Layer, core: Accelerator, soc: Soc) -> Verdict:
    """The smallest tile fits L1."""
    lacking = shortage_of(core.tiling_problem(layer, soc))
    if lacking is None:
        return ACCEPTED
    return Refused(
        f"the smallest tile ({lacking.tile}) needs {lacking.smallest} B of {lacking.memory}, "
        f"there are {lacking.limit} B"
    )
