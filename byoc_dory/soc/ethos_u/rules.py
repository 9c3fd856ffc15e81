"""Which layers the accelerator takes: Vela's published constraints, and what is exact.

The limits are those that ``vela --supported-ops-report`` of version 5.2.0 prints for Ethos-U55 and
U65.  A layer is also refused where the accelerator would round differently than the network's
source.
"""

from __future__ import annotations

from typing import Any

from byoc_dory.layers import (
    Add,
    Concatenation,
    Convolution,
    Dense,
    Difference,
    Doubling,
    Elementwise,
    Interleaving,
    Layer,
    Padding,
    Pool,
    Product,
    Repetition,
    Reshaping,
    Rows,
    Slicing,
    TfliteRequant,
    Weighted,
)
from byoc_dory.layers.rowwise import FixedPointSoftmax, TableMap
from byoc_dory.soc.base import Rules, Soc
from byoc_dory.soc.ethos_u.exact import scaling_of, scaling_of_product
from byoc_dory.soc.ethos_u.sums import sum_of
from byoc_dory.soc.ethos_u.tflite import factors_of, scales_of
from byoc_dory.soc.rules import ACCEPTED, tensors_are_int8
from byoc_dory.verdict import Refused, Verdict

LARGEST_DIMENSION = 65535
LARGEST_KERNEL = 64
LARGEST_KERNEL_PRODUCT = 64 * 64
LARGEST_STRIDE = 3
LARGEST_PADDING = 127
"""What the registers of the upper and left padding hold (``IFM_PAD_TOP``, 7 bits)."""
LARGEST_WEIGHT_SUM = 127 * (1 << 16)
LARGEST_POOL = 256
LARGEST_POOL_PRODUCT = 256 * 256
LONGEST_SOFTMAX = 4095
FACTORS = (2, 4, 8)
"""How often a map's rows and columns may be repeated."""
_MOVES = Concatenation | Interleaving | Padding | Repetition | Reshaping | Slicing


def operator_is_known(soc: Soc, core: Any, layer: Layer) -> Verdict:
    """It is a convolution, dense layer, sum, product, pool, table, softmax, resizing or move."""
    if isinstance(layer, Rows):
        if isinstance(layer.function, TableMap | FixedPointSoftmax):
            return ACCEPTED
        return Refused(f"the function of rows is {type(layer.function).__name__}")
    if isinstance(layer, Convolution) and layer.groups > 1:
        if layer.groups == layer.C:
            return ACCEPTED
        return Refused(f"there are {layer.groups} groups of {layer.C // layer.groups} channels")
    if isinstance(layer, Add) and len(layer.inputs) != 2:
        return Refused(f"the sum has {len(layer.inputs)} operands")
    if isinstance(layer, Repetition) and layer.factor not in FACTORS:
        return Refused(f"rows and columns are repeated {layer.factor} times, not 2, 4 or 8")
    if isinstance(layer, Convolution | Dense | Elementwise | Pool | Doubling | _MOVES):
        return ACCEPTED
    return Refused(f"the operator is {layer.op}")


def tensors_fit(soc: Soc, core: Any, layer: Layer) -> Verdict:
    """Tensors are int8, or all int16; weights int8, biases int32 or int64; dimensions to 65535."""
    wide = _of_int16(layer)
    verdict = ACCEPTED if wide else tensors_are_int8(layer)
    if isinstance(verdict, Refused):
        return verdict
    if isinstance(layer, Weighted):
        if layer.weight.dtype != "int8":
            return Refused(f"the weights are {layer.weight.dtype}")
        if layer.bias is not None and layer.bias.dtype != ("int64" if wide else "int32"):
            return Refused(f"the bias is {layer.bias.dtype}")
    if isinstance(layer, Reshaping):
        return ACCEPTED
    if isinstance(layer, Interleaving):
        spread = max(layer.ix * layer.distance[1] * layer.C, layer.iy * layer.ix)
        if spread > LARGEST_DIMENSION:
            return Refused(f"spreading takes a dimension of {spread}")
    for tensor in (*layer.inputs, layer.output):
        if max(tensor.shape) > LARGEST_DIMENSION:
            return Refused(f"tensor '{tensor.name}' has a dimension of {max(tensor.shape)}")
    result = layer.output.shape
    for tensor in layer.inputs if isinstance(layer, Elementwise) else ():
        alike = len(tensor.shape) == len(result)
        if not alike or any(a not in (1, b) for a, b in zip(tensor.shape, result, strict=True)):
            return Refused(f"an operand has the shape {tensor.shape} for a result of {result}")
    return ACCEPTED


def _of_int16(layer: Layer) -> bool:
    """Whether a layer has an int16 form, and all its tensors are int16."""
    has_form = isinstance(layer, Convolution | Elementwise | Pool | _MOVES)
    return has_form and {t.dtype for t in (*layer.inputs, layer.output)} == {"int16"}


def kernel_fits(soc: Soc, core: Any, layer: Layer) -> Verdict:
    """A dilated kernel is at most 64 high and 4096 large, strides at most 3x3, paddings 127."""
    if not isinstance(layer, Convolution):
        return ACCEPTED
    height = (layer.fy - 1) * layer.dilation[0] + 1
    width = (layer.fx - 1) * layer.dilation[1] + 1
    if height > LARGEST_KERNEL:
        return Refused(f"the kernel is {height} high")
    if height * width > LARGEST_KERNEL_PRODUCT:
        return Refused(f"the kernel is {height}x{width}")
    if max(layer.stride) > LARGEST_STRIDE:
        return Refused(f"the stride is {layer.stride[0]}x{layer.stride[1]}")
    return _padding_fits(layer)


def _padding_fits(layer: Convolution | Pool) -> Verdict:
    if max(layer.pad) > LARGEST_PADDING:
        return Refused("the padding is " + ", ".join(map(str, layer.pad)))
    return ACCEPTED


def weights_fit(soc: Soc, core: Any, layer: Layer) -> Verdict:
    """The sum of the absolute weights of a channel is at most 8323072."""
    if not isinstance(layer, Weighted):
        return ACCEPTED
    largest = int(abs(layer.weight.astype("int64")).reshape(layer.K, -1).sum(1).max())
    if largest > LARGEST_WEIGHT_SUM:
        return Refused(f"the absolute weights of a channel sum up to {largest}")
    return ACCEPTED


def pool_fits(soc: Soc, core: Any, layer: Layer) -> Verdict:
    """A pool's window is at most 256 high and 65536 large, strides 3 or a map, paddings 127."""
    if not isinstance(layer, Pool):
        return ACCEPTED
    if layer.fy > LARGEST_POOL or layer.fy * layer.fx > LARGEST_POOL_PRODUCT:
        return Refused(f"the window is {layer.fy}x{layer.fx}")
    if max(layer.stride) > LARGEST_STRIDE and (layer.oy, layer.ox) != (1, 1):
        return Refused(f"the stride is {layer.stride[0]}x{layer.stride[1]}")
    return _padding_fits(layer)


def average_is_unpadded(soc: Soc, core: Any, layer: Layer) -> Verdict:
    """An average pool has no padding: how the accelerator counts there was not verified."""
    if isinstance(layer, Pool) and layer.function == "average" and any(layer.pad):
        top, left, bottom, right = layer.pad
        return Refused(f"the padding is {top}, {left}, {bottom}, {right}")
    return ACCEPTED


def requantization_is_exact(soc: Soc, core: Any, layer: Layer) -> Verdict:
    """The accelerator's requantization gives the source's results for every input."""
    if isinstance(layer, Weighted):
        scaling = scaling_of(layer)
        return Refused(scaling) if isinstance(scaling, str) else ACCEPTED
    if isinstance(layer, Product):
        assert isinstance(layer.requant, TfliteRequant)  # as all products
        found = scaling_of_product(layer.requant)
        return Refused(found) if isinstance(found, str) else ACCEPTED
    if isinstance(layer, Add | Difference):
        total = sum_of(layer)
        exact = not isinstance(total, str) or scales_of(layer) is not None
        return ACCEPTED if exact else Refused(str(total))
    if isinstance(layer, Rows) and isinstance(layer.function, FixedPointSoftmax):
        if layer.K > LONGEST_SOFTMAX:
            return Refused(f"the softmax is over {layer.K} values")
        if factors_of(layer.function) is None:
            return Refused("no two float32 scales have its factor as their product")
    return ACCEPTED


STATEMENTS = (
    operator_is_known,
    tensors_fit,
    kernel_fits,
    weights_fit,
    pool_fits,
    average_is_unpadded,
    requantization_is_exact,
)


def rules_of(name: str) -> Rules:
    """Return the rules with identifiers of an accelerator of this name."""
    return tuple((f"{name.upper()}-{n}", rule) for n, rule in enumerate(STATEMENTS, 1))
