"""Rules that the cores and engines share."""

from __future__ import annotations

from byoc_dory.layers import Convolution, Layer, Matmul, Weighted
from byoc_dory.soc.base import Accelerator, Soc
from byoc_dory.soc.rules import ACCEPTED
from byoc_dory.verdict import Refused, Verdict


def data_is_8_bits(soc: Soc, core: Accelerator, layer: Layer) -> Verdict:
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


def groups_are_one_or_depthwise(soc: Soc, core: Accelerator, layer: Layer) -> Verdict:
    """A convolution has one group, or is depthwise with as many input as output channels."""
    if not isinstance(layer, Convolution) or layer.full or layer.depthwise:
        return ACCEPTED
    return Refused(f"groups are {layer.groups} with C={layer.C} and K={layer.K}")


def padding_is_below_kernel(soc: Soc, core: Accelerator, layer: Layer) -> Verdict:
    """The padding above and below is smaller than the kernel is high."""
    top, _, bottom, _ = layer.pad
    if max(top, bottom) >= layer.fy:
        return Refused(f"the padding is {layer.pad} for a kernel of {layer.fy}x{layer.fx}")
    return ACCEPTED
