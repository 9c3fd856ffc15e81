"""Which layers the compute cores take; each docstring is the public statement.

Engines beside the cores share the first ones.
"""

from __future__ import annotations

from byoc_dory.layers import (
    INT8,
    Add,
    CachedAttention,
    Combination,
    Convolution,
    Dense,
    Gemm,
    Layer,
    Matmul,
    Pool,
    Rows,
    Weighted,
)
from byoc_dory.soc.base import Accelerator, Rules, Soc
from byoc_dory.soc.cluster.attention import attention_obstacle
from byoc_dory.soc.cluster.core import ClusterCores
from byoc_dory.soc.cluster.requant import leaves_32_bits, mul_shift
from byoc_dory.soc.rules import ACCEPTED, dilation_is_one, smallest_tile_fits
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


def operator_is_known(soc: Soc, core: ClusterCores, layer: Layer) -> Verdict:
    """The operator is a convolution, product, function of rows, sum, or (SIMD) attention, mean."""
    if isinstance(layer, CachedAttention) and not core.simd:
        return Refused("the cores have no kernel for attention as a whole")
    if core.simd and isinstance(layer, Pool) and layer.function == "average":
        return ACCEPTED
    if isinstance(
        layer, CachedAttention | Combination | Convolution | Dense | Gemm | Matmul | Rows | Add
    ):
        return ACCEPTED
    return Refused(f"the operator is {layer.op}")


def requantization_is_mul_shift(soc: Soc, core: ClusterCores, layer: Layer) -> Verdict:
    """Requantization is ``(acc * mul + add) >> shift`` with shifts of 0 to 31."""
    requant = mul_shift(layer)
    if requant is None:
        return Refused(f"the requantization is {type(layer.requant).__name__}")
    for shift in requant.shift:
        if not 0 <= shift <= 31:
            return Refused(f"a shift is {shift}, not in 0..31")
    for value in (*requant.mul, *requant.add):
        if not -(2**31) <= value < 2**31:
            return Refused(f"a factor or addend is {value}, more than 32 bits")
    return ACCEPTED


def attention_fits_32_bits(soc: Soc, core: ClusterCores, layer: Layer) -> Verdict:
    """Heads of an attention have a multiple of 4 elements; scores, exponentials fit 32 bits."""
    obstacle = attention_obstacle(layer) if isinstance(layer, CachedAttention) else ""
    return Refused(obstacle) if obstacle else ACCEPTED


def combination_fits_32_bits(soc: Soc, core: ClusterCores, layer: Layer) -> Verdict:
    """Sums and products of two tensors fit 32 bits when they are requantized."""
    requant = mul_shift(layer)
    if isinstance(layer, Combination) and requant is not None and leaves_32_bits(layer, requant):
        return Refused(f"a result times {requant.mul[0]} leaves 32 bits")
    return ACCEPTED


def operands_are_few_and_alike(soc: Soc, core: ClusterCores, layer: Layer) -> Verdict:
    """An add has up to 8 operands of one shape and type."""
    if not isinstance(layer, Add):
        return ACCEPTED
    if len(layer.inputs) > core.most_operands:
        return Refused(f"{len(layer.inputs)} operands, more than {core.most_operands}")
    kinds = {(tensor.shape, tensor.dtype) for tensor in layer.inputs}
    if len(kinds) > 1:
        return Refused("the operands are " + ", ".join(str(t.shape) for t in layer.inputs))
    return ACCEPTED


_MOST_AVERAGED = 4096  # pixels: of more, a product would not be exactly the quotient of each sum


def averages_are_plain(soc: Soc, core: ClusterCores, layer: Layer) -> Verdict:
    """An average is of int8, not clipped, in windows of 2 to 4096 pixels inside the map."""
    if not isinstance(layer, Pool):
        return ACCEPTED
    if any(layer.pad):
        return Refused(f"the padding is {layer.pad}")
    if layer.inputs[0].dtype != "int8":
        return Refused(f"tensor '{layer.inputs[0].name}' is {layer.inputs[0].dtype}")
    if layer.clip != INT8:
        return Refused(f"the result is clipped to {layer.clip[0]} to {layer.clip[1]}")
    if not 2 <= layer.fy * layer.fx <= _MOST_AVERAGED:
        return Refused(f"a window has {layer.fy * layer.fx} pixels")
    return ACCEPTED


RULES: Rules = (
    ("CLUSTER-1", operator_is_known),
    ("CLUSTER-2", data_is_8_bits),
    ("CLUSTER-3", dilation_is_one),
    ("CLUSTER-4", groups_are_one_or_depthwise),
    ("CLUSTER-5", padding_is_below_kernel),
    ("CLUSTER-6", requantization_is_mul_shift),
    ("CLUSTER-7", operands_are_few_and_alike),
    ("CLUSTER-8", attention_fits_32_bits),
    ("CLUSTER-9", combination_fits_32_bits),
    ("CLUSTER-10", smallest_tile_fits),
    ("CLUSTER-11", averages_are_plain),
)
