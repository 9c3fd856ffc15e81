"""Which layers DIANA's analog core takes; each docstring is the public statement."""

from __future__ import annotations

import numpy as np

from byoc_dory.layers import AnalogRequant, Convolution, Dense, Layer, Weighted
from byoc_dory.soc.base import Rules, Soc
from byoc_dory.soc.diana.analog_core import AnalogCore
from byoc_dory.soc.diana.rules import (
    padding_is_below_kernel,
    sizes_fit_registers,
    smallest_tile_fits,
)
from byoc_dory.soc.rules import ACCEPTED, tensors_are_int8
from byoc_dory.verdict import Refused, Verdict

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
    each = core.pass_channels(layer.fy, layer.fx)
    summed = min(layer.C, _requant(layer).rows // (layer.fy * layer.fx))
    if summed != min(layer.C, each):
        return Refused(f"a pass sums {summed} channels, not {min(layer.C, each)}")
    if each == 0:
        return Refused(f"a channel has {layer.fy * layer.fx} rows")
    passes = -(-layer.C // each)
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


def filter_fits_array(soc: Soc, core: AnalogCore, layer: Layer) -> Verdict:
    """The kernel is at most 7x7, the stride 1x1 or 2x2, the dilation 1x1."""
    if max(layer.fy, layer.fx) > core.max_filter:
        return Refused(f"the kernel is {layer.fy}x{layer.fx}")
    y, x = layer.stride
    if y != x or y not in core.strides:
        return Refused(f"the stride is {y}x{x}")
    if layer.dilation != (1, 1):
        return Refused(f"the dilation is {layer.dilation[0]}x{layer.dilation[1]}")
    return ACCEPTED


RULES: Rules = (
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
    ("ANALOG-13", filter_fits_array),
    ("ANALOG-14", padding_is_below_kernel),
    ("ANALOG-15", sizes_fit_registers),
    ("ANALOG-16", smallest_tile_fits),
)


def _requant(layer: Layer) -> AnalogRequant:
    assert isinstance(layer.requant, AnalogRequant)  # judged before
    return layer.requant
