"""Rules that the cores and ITA share."""

from __future__ import annotations

from byoc_dory.layer import Layer
from byoc_dory.soc.accelerator import Accelerator
from byoc_dory.soc.base import Soc
from byoc_dory.tiling.shortage import shortage_of
from byoc_dory.verdict import Accepted, Refused, Verdict

__all__ = ["ACCEPTED", "data_is_8_bits", "smallest_tile_fits"]

ACCEPTED = Accepted()


def data_is_8_bits(layer: Layer, core: Accelerator, soc: Soc) -> Verdict:
    """Operands and results are int8 or uint8, weights int8, the bias is int32."""
    for tensor in (*layer.inputs, layer.output):
        if tensor.dtype not in ("int8", "uint8"):
            return Refused(f"tensor '{tensor.name}' is {tensor.dtype}")
    if layer.weight is not None and layer.weight.dtype != "int8":
        return Refused(f"the weights are {layer.weight.dtype}")
    if layer.bias is not None and layer.bias.dtype != "int32":
        return Refused(f"the bias is {layer.bias.dtype}")
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
