"""The options of TFLite's operators, and the check that a handler has read all that are set.

An option or input that no handler looks at would be ignored without a word, and the result could be
wrong.  `FlatTable` and `OperatorReader` record what has been looked at; everything else must have
its default value, or be known to have no effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from htvm.frontend.tflite.reader import OperatorReader

OPTIONS: Mapping[int, str] = {
    1: "padding stride_w stride_h fused_activation_function dilation_w_factor=1 "
    "dilation_h_factor=1 quantized_bias_type~",
    2: "padding stride_w stride_h depth_multiplier fused_activation_function dilation_w_factor=1 "
    "dilation_h_factor=1",
    5: "padding stride_w stride_h filter_width filter_height fused_activation_function",
    6: "rank fused_activation_function asymmetric_quantize_inputs~",
    8: "fused_activation_function weights_format keep_num_dims asymmetric_quantize_inputs~ "
    "quantized_bias_type~",
    9: "beta",
    10: "axis fused_activation_function",
    11: "fused_activation_function pot_scale_int16~",
    12: "fused_activation_function",
    13: "radius bias alpha beta",
    15: "new_height~ new_width~ align_corners half_pixel_centers",
    17: "new_shape~",
    19: "block_size",
    21: "fused_activation_function",
    23: "axis batch_dims",
    27: "keep_dims",
    28: "fused_activation_function pot_scale_int16~",
    29: "fused_activation_function",
    30: "squeeze_dims~",
    32: "begin_mask end_mask ellipsis_mask new_axis_mask shrink_axis_mask offset",
    35: "num_splits",
    37: "in_data_type~ out_data_type~",
    40: "output_type~",
    49: "padding stride_w stride_h fused_activation_function quantized_bias_type~",
    55: "out_type~",
    57: "output_type~",
    59: "values_count~ axis",
    61: "axis",
    64: "num~ axis",
    74: "align_corners half_pixel_centers",
    75: "alpha",
    77: "mode",
    79: "num_splits~",
    94: "block_size",
    101: "adj_x adj_y asymmetric_quantize_inputs~",
    102: "exclusive reverse",
    116: "approximate",
}
"""Fields by the number of the table, in their order, with defaults other than 0; ``~`` marks those
that have no effect here: the tensors' own shapes and types say the same."""


def check_read(op: OperatorReader) -> None:
    """Check that all inputs and options that are set have been read.

    Raises:
        UnsupportedError: one has not; the message names it.
    """
    for at, tensor in enumerate(op.operator.inputs):
        if tensor is not None and at not in op.looked:
            raise op.unsupported(f"input {at} ({tensor.place}) is given, and not supported")
    table = op.operator.options
    if table is None:
        return
    fields = OPTIONS.get(op.operator.options_type, "").split()
    for number, offset in enumerate(table.fields):
        if not offset or number in table.looked:
            continue
        name, _, default = (fields[number] if number < len(fields) else "").partition("=")
        if name.endswith("~"):
            continue
        # All scalars of options are in little-endian order, so the first byte tells 0 from others
        # below 256; no option that is left unread is larger.
        value = table.integer(number, "B")
        if value != int(default or 0):
            raise op.unsupported(
                f"option '{name or f'number {number}'}' is {value}, and not supported"
            )
