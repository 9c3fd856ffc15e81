"""Which layers DIANA's digital core takes; each docstring is the public statement."""

from __future__ import annotations

from byoc_dory.layers import Add, Convolution, Dense, Layer
from byoc_dory.soc.base import Rules, Soc
from byoc_dory.soc.diana.digital_core import DigitalCore
from byoc_dory.soc.diana.rules import (
    padding_is_below_kernel,
    sizes_fit_registers,
    smallest_tile_fits,
)
from byoc_dory.soc.rules import (
    ACCEPTED,
    data_are_int8,
    dilation_is_one,
    requantization_is_one_shift,
)
from byoc_dory.verdict import Refused, Verdict


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


RULES: Rules = (
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
