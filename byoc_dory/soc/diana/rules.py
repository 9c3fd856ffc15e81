"""Which layers DIANA's cores take; each docstring is the public statement."""

from __future__ import annotations

import numpy as np

from byoc_dory.layers import Add, AnalogRequant, Convolution, Dense, Layer, Weighted
from byoc_dory.soc import rules
from byoc_dory.soc.base import Accelerator, Rules, Soc
from byoc_dory.soc.diana.cores import AnalogCore, DigitalCore
from byoc_dory.soc.rules import (
    ACCEPTED,
    data_are_int8,
    dilation_is_one,
    requantization_is_one_shift,
    tensors_are_int8,
)
from byoc_dory.verdict import Refused, Verdict


def padding_is_below_kernel(soc: Soc, core: Accelerator, layer: Layer) -> Verdict:
    """The padding of each side is smaller than the kernel."""
    top, left, bottom, right = layer.pad
    if max(top, bottom) >= layer.fy or max(left, right) >= layer.fx:
        return Refused(f"the padding is {layer.pad} for a kernel of {layer.fy}x{layer.fx}")
    return ACCEPTED


def sizes_fit_registers(soc: Soc, core: Accelerator, layer: Layer) -> Verdict:
    """Every dimension is below 65536."""
    largest = max(layer.K, layer.C, layer.iy, layer.ix, layer.oy, layer.ox)
    if largest >= 1 << 16:
        return Refused(f"a dimension is {largest}")
    return ACCEPTED


def smallest_tile_fits(soc: Soc, core: Accelerator, layer: Layer) -> Verdict:
    """At least the smallest tile fits L1 and the memory for weights."""
    return rules.smallest_tile_fits(soc, core, layer)


def operator_is_known(soc: Soc, core: DigitalCore, layer: Layer) -> Verdict:
    """The operator is conv2d, depthwise conv2d, dense or add."""
    if isinstance(layer, Convolution | Dense | Add):
        return ACCEPTED
    return Refused(f"the operator is {layer.op}")


def filter_fits_array(soc: Soc, core: DigitalCore, layer: Layer) -> Verdict:
    """The kernel is at most 7x7 (sizes other than 1, 3, 5, 7 are extended with zeros)."""
    largest = max(core.filters)
    if max(layer.fy, layer.fx) > largest:
        return Refused(f"the kernel is {layer.fy}x{layer.fx}, larger than {largest}x{largest}")
    return ACCEPTED


def stride_is_one_or_two(soc: Soc, core: DigitalCore, layer: Layer) -> Verdict:
    """The stride is 1x1 or 2x2."""
    y, x = layer.stride
    if y != x or y not in core.strides:
        return Refused(f"the stride is {y}x{x}")
    return ACCEPTED


def groups_are_one_or_depthwise(soc: Soc, core: DigitalCore, layer: Layer) -> Verdict:
    """Groups are 1, or depthwise with as many input as output channels."""
    if not isinstance(layer, Convolution) or layer.full or layer.depthwise:
        return ACCEPTED
    return Refused(f"groups are {layer.groups} with C={layer.C} and K={layer.K}")


def clip_is_int8_or_relu(soc: Soc, core: DigitalCore, layer: Layer) -> Verdict:
    """The output is clipped to [-128, 127], or to [0, 127] after ReLU."""
    if not core.can_clip_to(layer.clip):
        return Refused(f"the clip range is [{layer.clip[0]}, {layer.clip[1]}]")
    return ACCEPTED


def add_has_two_operands(soc: Soc, core: DigitalCore, layer: Layer) -> Verdict:
    """An add has two operands."""
    if isinstance(layer, Add) and len(layer.inputs) > 2:
        return Refused(f"the add has {len(layer.inputs)} operands")
    return ACCEPTED


def add_operands_have_one_shape(soc: Soc, core: DigitalCore, layer: Layer) -> Verdict:
    """The operands of an add have the same shape."""
    if isinstance(layer, Add) and len({tensor.shape for tensor in layer.inputs}) > 1:
        a, b = (tensor.shape for tensor in layer.inputs)
        return Refused(f"the operands are {a} and {b}")
    return ACCEPTED


DIGITAL_RULES: Rules = (
    ("DIGITAL-1", operator_is_known),
    ("DIGITAL-2", data_are_int8),
    ("DIGITAL-3", filter_fits_array),
    ("DIGITAL-4", stride_is_one_or_two),
    ("DIGITAL-5", dilation_is_one),
    ("DIGITAL-6", groups_are_one_or_depthwise),
    ("DIGITAL-7", requantization_is_one_shift),
    ("DIGITAL-8", clip_is_int8_or_relu),
    ("DIGITAL-9", add_has_two_operands),
    ("DIGITAL-10", add_operands_have_one_shape),
    ("DIGITAL-11", padding_is_below_kernel),
    ("DIGITAL-12", sizes_fit_registers),
    ("DIGITAL-13", smallest_tile_fits),
)


_INT16 = (-(1 << 15), (1 << 15) - 1)


def operator_sums_over_channels(soc: Soc, core: AnalogCore, layer: Layer) -> Verdict:
    """The operator is conv2d of one group, or dense."""
    depthwise = isinstance(layer, Convolution) and layer.depthwise
    if depthwise or not isinstance(layer, Convolution | Dense):
        return Refused(f"the operator is {layer.op}")
    if layer.groups != 1:
        return Refused(f"groups are {layer.groups} with C={layer.C} and K={layer.K}")
    return ACCEPTED


def data_is_int8(soc: Soc, core: AnalogCore, layer: Layer) -> Verdict:
    """Input, output and weights are int8."""
    return tensors_are_int8(layer)


def weights_are_ternary(soc: Soc, core: AnalogCore, layer: Layer) -> Verdict:
    """The weights are -1, 0 and 1."""
    assert isinstance(layer, Weighted)
    largest = int(layer.weight.flat[np.abs(layer.weight.astype(np.int16)).argmax()])
    if abs(largest) > 1:
        return Refused(f"a weight is {largest}")
    return ACCEPTED


def activations_fit_converters(soc: Soc, core: AnalogCore, layer: Layer) -> Verdict:
    """The input is known to lie in [-64, 63]."""
    (low, high), (lowest, highest) = layer.input_range, core.scheme.activation_range
    if low < lowest or high > highest:
        return Refused(
            f"the input lies in [{low}, {high}], which has more than {core.activation_bits} bits"
        )
    return ACCEPTED


def requantization_is_analog(soc: Soc, core: AnalogCore, layer: Layer) -> Verdict:
    """Requantization is a gain, the converter, and for each channel a product and a sum."""
    if not isinstance(layer.requant, AnalogRequant):
        return Refused(f"the requantization is {type(layer.requant).__name__}, not AnalogRequant")
    bias = layer.bias if isinstance(layer, Weighted) else None
    if bias is not None and np.any(bias):
        return Refused(f"a bias is {bias[np.flatnonzero(bias)[0]]}")
    return ACCEPTED


def gain_is_a_shift(soc: Soc, core: AnalogCore, layer: Layer) -> Verdict:
    """The gain is a power of two, at most 2^15."""
    gain = _requant(layer).gain
    if gain < 1 or gain & (gain - 1) or gain > 1 << core.max_gain:
        return Refused(f"the gain is {gain}")
    return ACCEPTED


def converter_is_the_cores(soc: Soc, core: AnalogCore, layer: Layer) -> Verdict:
    """Each pass is clipped to [-32, 31], the range of the converter."""
    low, high = _requant(layer).adc
    if (low, high) != core.scheme.adc_range:
        return Refused(f"a pass is clipped to [{low}, {high}]")
    return ACCEPTED


def passes_are_the_cores(soc: Soc, core: AnalogCore, layer: Layer) -> Verdict:
    """A pass sums as many whole channels as 1152 rows hold; sums of passes have 16 bits."""
    pass_channels = core.pass_channels(layer.fy, layer.fx)
    summed = min(layer.C, _requant(layer).rows // (layer.fy * layer.fx))
    if summed != min(layer.C, pass_channels):
        return Refused(f"a pass sums {summed} channels, not {min(layer.C, pass_channels)}")
    if pass_channels == 0:
        return Refused(f"a channel has {layer.fy * layer.fx} rows")
    passes = -(-layer.C // pass_channels)
    if passes * core.scheme.adc_range[0] < _INT16[0]:
        return Refused(f"{passes} passes may leave 16 bits")
    return ACCEPTED


def passes_are_few(soc: Soc, core: AnalogCore, layer: Layer) -> Verdict:
    """A layer takes at most 8 passes."""
    passes = -(-layer.C // max(1, core.pass_channels(layer.fy, layer.fx)))
    if passes > core.max_passes:
        return Refused(f"{layer.C * layer.fy * layer.fx} rows take {passes} passes")
    return ACCEPTED


def factors_have_sixteen_bits(soc: Soc, core: AnalogCore, layer: Layer) -> Verdict:
    """The factor and the summand of each channel have 16 bits."""
    requant = _requant(layer)
    for what, values in (("factor", requant.mul), ("summand", requant.add)):
        if len(values) not in (1, layer.K):
            return Refused(f"there are {len(values)} {what}s for {layer.K} channels")
        for value in (min(values), max(values)):
            if not _INT16[0] <= value <= _INT16[1]:
                return Refused(f"a {what} is {value}")
    return ACCEPTED


def shift_is_in_range(soc: Soc, core: AnalogCore, layer: Layer) -> Verdict:
    """The right shift is 0 to 31 bits for the whole layer."""
    shift = _requant(layer).shift
    if not 0 <= shift <= core.max_shift:
        return Refused(f"the shift is {shift}, not in 0..{core.max_shift}")
    return ACCEPTED


def clip_is_seven_or_eight_bits(soc: Soc, core: AnalogCore, layer: Layer) -> Verdict:
    """The output is clipped to 7 or 8 bits, from 0 on after ReLU."""
    if not core.can_clip_to(layer.clip):
        return Refused(f"the clip range is [{layer.clip[0]}, {layer.clip[1]}]")
    return ACCEPTED


def window_fits_array(soc: Soc, core: AnalogCore, layer: Layer) -> Verdict:
    """The kernel is at most 7x7, the stride 1x1 or 2x2, the dilation 1x1."""
    if max(layer.fy, layer.fx) > core.max_filter:
        return Refused(f"the kernel is {layer.fy}x{layer.fx}")
    y, x = layer.stride
    if y != x or y not in core.strides:
        return Refused(f"the stride is {y}x{x}")
    if layer.dilation != (1, 1):
        return Refused(f"the dilation is {layer.dilation[0]}x{layer.dilation[1]}")
    return ACCEPTED


ANALOG_RULES: Rules = (
    ("ANALOG-1", operator_sums_over_channels),
    ("ANALOG-2", data_is_int8),
    ("ANALOG-3", weights_are_ternary),
    ("ANALOG-4", activations_fit_converters),
    ("ANALOG-5", requantization_is_analog),
    ("ANALOG-6", gain_is_a_shift),
    ("ANALOG-7", converter_is_the_cores),
    ("ANALOG-8", passes_are_the_cores),
    ("ANALOG-9", passes_are_few),
    ("ANALOG-10", factors_have_sixteen_bits),
    ("ANALOG-11", shift_is_in_range),
    ("ANALOG-12", clip_is_seven_or_eight_bits),
    ("ANALOG-13", window_fits_array),
    ("ANALOG-14", padding_is_below_kernel),
    ("ANALOG-15", sizes_fit_registers),
    ("ANALOG-16", smallest_tile_fits),
)


def _requant(layer: Layer) -> AnalogRequant:
    assert isinstance(layer.requant, AnalogRequant)  # judged before
    return layer.requant
