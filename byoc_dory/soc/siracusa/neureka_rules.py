"""Which layers N-EUREKA takes; each docstring is the public statement."""

from __future__ import annotations

from byoc_dory.layers import Convolution, Dense, Gemm, Layer, Weighted
from byoc_dory.soc.base import Rules, Soc
from byoc_dory.soc.cluster.requant import mul_shift
from byoc_dory.soc.cluster.rules import data_is_8_bits, groups_are_one_or_depthwise
from byoc_dory.soc.rules import ACCEPTED, dilation_is_one, smallest_tile_fits
from byoc_dory.soc.siracusa.neureka_core import Neureka
from byoc_dory.soc.siracusa.neureka_layer import factors_of, keeps_some, view_of
from byoc_dory.soc.siracusa.neureka_tiles import mode_of, packed_bytes, smallest_bits
from byoc_dory.verdict import Refused, Verdict

_MOST = (1 << 16) - 1  # job registers have 16 bits for numbers of blocks and channels


def operator_is_known(soc: Soc, core: Neureka, layer: Layer) -> Verdict:
    """The operator is conv2d, depthwise conv2d, or a product with constant weights."""
    if isinstance(layer, Convolution | Dense | Gemm):
        return ACCEPTED
    return Refused(f"the operator is {layer.op}")


def depthwise_is_3x3(soc: Soc, core: Neureka, layer: Layer) -> Verdict:
    """The filter is 3x3 if the layer is depthwise, else any.

    Windows that are neither 3x3 nor 1x1, or have a stride, are copied by the cores.
    """
    depthwise = isinstance(layer, Convolution) and layer.depthwise
    if not depthwise or layer.fy == layer.fx == core.filter:
        return ACCEPTED
    return Refused(f"the filter is {layer.fy}x{layer.fx}, depthwise")


def depthwise_stride_is_1_or_2(soc: Soc, core: Neureka, layer: Layer) -> Verdict:
    """The stride of a depthwise layer is 1x1 or 2x2."""
    assert isinstance(layer, Weighted), layer  # checked before
    depthwise = isinstance(layer, Convolution) and layer.depthwise
    if not depthwise or layer.stride == (1, 1) or keeps_some(layer):
        return ACCEPTED
    return Refused(f"the stride is {layer.stride[0]}x{layer.stride[1]}, depthwise")


def padding_is_the_engines(soc: Soc, core: Neureka, layer: Layer) -> Verdict:
    """The padding of 3x3 is at most 2, on large maps at most 1 below and right; 1x1 has none.

    A map of more than 6 rows has several blocks, and a block that is not the last must not read
    padding below; columns likewise.  Where the cores copy windows, the padding is smaller than the
    filter.
    """
    assert isinstance(layer, Weighted), layer  # checked before
    top, left, bottom, right = layer.pad
    view = view_of(layer)
    if view.copied:
        if max(top, bottom) < layer.fy and max(left, right) < layer.fx:
            return ACCEPTED
    else:
        most = 0 if layer.fy == 1 else core.max_padding
        ends = ((bottom, layer.oy), (view.right, view.columns))
        at_ends = all(pad <= 1 or size <= core.block for pad, size in ends)
        if max(layer.pad) <= most and at_ends:
            return ACCEPTED
    return Refused(
        f"the padding is {top}, {left}, {bottom}, {right} (top, left, bottom, right) with a filter "
        f"of {layer.fy}x{layer.fx}"
    )


def sizes_fit_registers(soc: Soc, core: Neureka, layer: Layer) -> Verdict:
    """There are at most 65535 channels, rows and columns."""
    assert isinstance(layer, Weighted), layer  # checked before
    sizes = {
        "input channels": view_of(layer).channels,
        "output channels": layer.K,
        "rows": layer.oy,
        "columns": layer.ox,
    }
    for what, size in sizes.items():
        if size > _MOST:
            return Refused(f"there are {size} {what}, more than {_MOST}")
    return ACCEPTED


def weights_have_few_bits(soc: Soc, core: Neureka, layer: Layer) -> Verdict:
    """Weights need at most 8 bits after subtracting the smallest."""
    assert isinstance(layer, Weighted), layer  # checked before
    try:
        smallest_bits(layer.weight, core)
    except ValueError as error:
        return Refused(str(error))
    return ACCEPTED


def result_is_stored_by_rows(soc: Soc, core: Neureka, layer: Layer) -> Verdict:
    """A product is neither transposed nor followed by an activation function."""
    if isinstance(layer, Gemm) and layer.transposed:
        return Refused("the result is stored column by column")
    if isinstance(layer, Gemm) and layer.function is not None:
        return Refused(f"the activation is {type(layer.function).__name__}")
    return ACCEPTED


def scales_and_shifts_fit(soc: Soc, core: Neureka, layer: Layer) -> Verdict:
    """Requantization is ``(acc * mul + add) >> shift``: mul of 32 bits, shift of 0 to 31."""
    requant = mul_shift(layer)
    if requant is None:
        return Refused(f"the requantization is {type(layer.requant).__name__}")
    for shift in requant.shift:
        if not 0 <= shift <= core.max_shift:
            return Refused(f"a shift is {shift}, not in 0..{core.max_shift}")
    for mul in requant.mul:
        if not -(2**31) <= mul < 2**31:
            return Refused(f"a factor is {mul}, more than 32 bits")
    return ACCEPTED


def results_are_exact(soc: Soc, core: Neureka, layer: Layer) -> Verdict:
    """Scaled sums stay in 32 bits, biases included, and are clipped to int8, uint8 or [0, 127].

    Other clips are taken where no result could reach them.
    """
    assert isinstance(layer, Weighted), layer  # checked before
    found = factors_of(layer)
    return Refused(found) if isinstance(found, str) else ACCEPTED


def a_tile_fits(soc: Soc, core: Neureka, layer: Layer) -> Verdict:
    """The smallest tile fits L1, with its weights if the weight memory cannot hold the layer's."""
    fits = smallest_tile_fits(soc, core, layer)
    if isinstance(fits, Refused) or not core.weight_memory:
        return fits
    assert isinstance(layer, Weighted), layer  # checked before
    view = view_of(layer)
    bits = smallest_bits(view.weight, core)
    size = packed_bytes(mode_of(layer), layer.K, view.channels, bits, core)
    memories = [soc.memory(name) for name in core.weight_memories]
    if any(size <= memory.size for memory in memories):
        return ACCEPTED
    loaded = smallest_tile_fits(soc, core.keeping(""), layer)
    if not isinstance(loaded, Refused):
        return ACCEPTED
    limits = ", ".join(f"{memory.name} has {memory.size}" for memory in memories)
    return Refused(f"the packed weights have {size} B, {limits}; loaded into L1, {loaded.reason}")


RULES: Rules = (
    ("NEUREKA-1", operator_is_known),
    ("NEUREKA-2", data_is_8_bits),
    ("NEUREKA-3", groups_are_one_or_depthwise),
    ("NEUREKA-4", depthwise_is_3x3),
    ("NEUREKA-5", depthwise_stride_is_1_or_2),
    ("NEUREKA-6", dilation_is_one),
    ("NEUREKA-7", padding_is_the_engines),
    ("NEUREKA-8", sizes_fit_registers),
    ("NEUREKA-9", weights_have_few_bits),
    ("NEUREKA-10", result_is_stored_by_rows),
    ("NEUREKA-11", scales_and_shifts_fit),
    ("NEUREKA-12", results_are_exact),
    ("NEUREKA-13", a_tile_fits),
)
