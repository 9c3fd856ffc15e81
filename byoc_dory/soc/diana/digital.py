"""The toolkit of DIANA's digital core: what it takes, what a tile needs, what it costs.

Each rule's docstring is its public statement; it returns `Accepted`, or `Refused` with one
sentence that holds the offending value.  Numbers come from the SoC's description only.
"""

from __future__ import annotations

from typing import Any

from byoc_dory.cost import layer_cycles
from byoc_dory.layers.layer import Layer, Shift
from byoc_dory.options import ScheduleKind, TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.planning import alone
from byoc_dory.soc.accelerator import DigitalCore
from byoc_dory.soc.base import Soc, round_up
from byoc_dory.soc.diana.digital_emit import DianaEmitter
from byoc_dory.soc.diana.digital_objectives import OBJECTIVES
from byoc_dory.soc.diana.digital_packing import pad_filter
from byoc_dory.soc.diana.digital_schedule import schedule_layer
from byoc_dory.soc.diana.rules import (
    ACCEPTED,
    padding_is_below_kernel,
    sizes_fit_registers,
    smallest_tile_fits,
    tensors_are_int8,
)
from byoc_dory.tiling.problem import Axis, Tile, TilingProblem, solution_of
from byoc_dory.verdict import Refused, Rule, Verdict

__all__ = ["OBJECTIVES", "RULES", "cost", "emitter", "plan_cost", "tiling_problem"]

# ---------------------------------------------------------------------- rules


def operator_is_known(layer: Layer, core: DigitalCore, soc: Soc) -> Verdict:
    """The operator is conv2d, depthwise conv2d, dense or add."""
    if layer.op in ("conv2d", "depthwise", "dense", "add"):
        return ACCEPTED
    return Refused(f"the operator is {layer.op}")


def data_is_int8(layer: Layer, core: DigitalCore, soc: Soc) -> Verdict:
    """Inputs, output and weights are int8, the bias is int32."""
    verdict = tensors_are_int8(layer)
    if isinstance(verdict, Refused):
        return verdict
    if layer.bias is not None and layer.bias.dtype != "int32":
        return Refused(f"the bias is {layer.bias.dtype}")
    return ACCEPTED


def filter_fits_array(layer: Layer, core: DigitalCore, soc: Soc) -> Verdict:
    """The kernel is at most 7x7 (sizes other than 1, 3, 5, 7 are extended with zeros)."""
    largest = max(core.filters)
    if max(layer.fy, layer.fx) > largest:
        return Refused(f"the kernel is {layer.fy}x{layer.fx}, larger than {largest}x{largest}")
    return ACCEPTED


def stride_is_one_or_two(layer: Layer, core: DigitalCore, soc: Soc) -> Verdict:
    """The stride is 1x1 or 2x2."""
    y, x = layer.stride
    if y != x or y not in core.strides:
        return Refused(f"the stride is {y}x{x}")
    return ACCEPTED


def dilation_is_one(layer: Layer, core: DigitalCore, soc: Soc) -> Verdict:
    """The dilation is 1x1."""
    if layer.dilation != (1, 1):
        return Refused(f"the dilation is {layer.dilation[0]}x{layer.dilation[1]}")
    return ACCEPTED


def groups_are_one_or_depthwise(layer: Layer, core: DigitalCore, soc: Soc) -> Verdict:
    """Groups are 1, or depthwise with as many input as output channels."""
    if layer.groups == 1 or (layer.op == "depthwise" and layer.groups == layer.C == layer.K):
        return ACCEPTED
    return Refused(f"groups are {layer.groups} with C={layer.C} and K={layer.K}")


def requantization_is_one_shift(layer: Layer, core: DigitalCore, soc: Soc) -> Verdict:
    """Requantization is one right shift of 0 to 31 bits for the whole layer."""
    limit = core.max_shift
    if not isinstance(layer.requant, Shift):
        return Refused(f"the requantization is {type(layer.requant).__name__}, not one shift")
    if not 0 <= layer.requant.shift <= limit:
        return Refused(f"the shift is {layer.requant.shift}, not in 0..{limit}")
    return ACCEPTED


def clip_is_int8_or_relu(layer: Layer, core: DigitalCore, soc: Soc) -> Verdict:
    """The output is clipped to [-128, 127], or to [0, 127] after ReLU."""
    if layer.clip not in ((-128, 127), (0, 127)):
        return Refused(f"the clip range is [{layer.clip[0]}, {layer.clip[1]}]")
    return ACCEPTED


def add_has_two_operands(layer: Layer, core: DigitalCore, soc: Soc) -> Verdict:
    """An add has two operands."""
    if layer.op == "add" and len(layer.inputs) > 2:
        return Refused(f"the add has {len(layer.inputs)} operands")
    return ACCEPTED


def add_operands_have_one_shape(layer: Layer, core: DigitalCore, soc: Soc) -> Verdict:
    """The operands of an add have the same shape."""
    if layer.op == "add" and len({tensor.shape for tensor in layer.inputs}) > 1:
        a, b = (tensor.shape for tensor in layer.inputs)
        return Refused(f"the operands are {a} and {b}")
    return ACCEPTED


RULES: tuple[Rule, ...] = (
    operator_is_known,
    data_is_int8,
    filter_fits_array,
    stride_is_one_or_two,
    dilation_is_one,
    groups_are_one_or_depthwise,
    requantization_is_one_shift,
    clip_is_int8_or_relu,
    add_has_two_operands,
    add_operands_have_one_shape,
    padding_is_below_kernel,
    sizes_fit_registers,
    smallest_tile_fits,
)


# ---------------------------------------------------------------------- tiling


def tiling_problem(layer: Layer, core: DigitalCore, soc: Soc, l1_budget: int) -> TilingProblem:
    """What a tile of this layer needs of L1 and of the weight memory.

    C is never tiled; x is whole or a multiple of 4, because the DMA moves whole reversed groups.
    """
    common: dict[str, Any] = {
        "name": layer.name,
        "l1_limit": l1_budget,
        "weight_limit": core.weight_memory,
        "unit": core.l1,
    }
    if layer.op == "dense":
        return _dense_problem(layer, core, common)
    if layer.op == "add":
        return _add_problem(layer, core, common)
    return _conv_problem(layer, core, common)


def _conv_problem(layer: Layer, core: DigitalCore, common: dict[str, Any]) -> TilingProblem:
    fy, fx = pad_filter(layer.fy, core.filters), pad_filter(layer.fx, core.filters)
    if layer.op == "depthwise":
        # One trigger per channel: the weight memory holds one channel, each trigger writes a
        # whole block of maps of which the first is real.
        special: dict[str, Any] = {
            "c": Axis(1, tiled=False),
            "channels_follow_k": True,
            "extra_maps": core.lanes - 1,
            "block_k": core.depthwise_block_channels,
            "weight_fixed": core.lanes * fy * fx + core.bias_bytes,
        }
    else:
        special = {
            "c": Axis(layer.C, tiled=False),
            "round_k": core.lanes,
            "block_k": core.lanes,
            "weight_channel": core.lanes * fy * fx,
            "weight_block": core.bias_bytes,
        }
    return TilingProblem(
        k=Axis(layer.K),
        y=Axis(layer.oy),
        x=Axis(layer.ox, step=core.group),
        iy=layer.iy,
        ix=layer.ix,
        fy=fy,
        fx=fx,
        stride=layer.stride,
        # x tiles start at multiples of the group, so the misalignment is always the same.
        crop=-layer.pad[1] % core.group,
        round_x=core.row_pitch,
        **special,
        **common,
    )


def _dense_problem(layer: Layer, core: DigitalCore, common: dict[str, Any]) -> TilingProblem:
    one = Axis(1, tiled=False)
    return TilingProblem(
        k=Axis(layer.K, step=core.lanes),
        c=Axis(layer.C, tiled=False),
        y=one,
        x=one,
        iy=1,
        ix=1,
        fy=1,
        fx=1,
        stride=(1, 1),
        round_k=core.lanes,
        round_c=core.columns,
        # One trigger per 16 outputs: the weight memory holds one block.
        weight_fixed=core.dense_weight_bytes(layer.C),
        **common,
    )


def _add_problem(layer: Layer, core: DigitalCore, common: dict[str, Any]) -> TilingProblem:
    vector = len(layer.output.shape) == 1
    k, x = (1, layer.K) if vector else (layer.K, layer.ox)
    return TilingProblem(
        k=Axis(k),
        c=Axis(1, tiled=False),
        y=Axis(layer.oy),
        x=Axis(x, tiled=False),
        iy=layer.iy,
        ix=x,
        fy=1,
        fx=1,
        stride=(1, 1),
        channels_follow_k=True,
        copies=2,
        round_x=round_up(core.row_pitch, core.columns),
        **common,
    )


def cost(
    layer: Layer, tile: Tile, core: DigitalCore, soc: Soc, schedule: ScheduleKind = "published"
) -> int:
    """Predicted cycles of the layer with this tile: DMA and triggers with their driver code."""
    problem = tiling_problem(layer, core, soc, soc.memory(core.l1).size)
    plan = alone(layer, solution_of(problem, tile), core.name)
    return layer_cycles(schedule_layer(layer, plan, core, schedule), soc, core)


def plan_cost(
    layer: Layer, plan: LayerPlan, core: DigitalCore, soc: Soc, options: TilingOptions
) -> int:
    """Predicted cycles of the layer under a plan: DMA and triggers with their driver code."""
    schedule = schedule_layer(layer, plan, core, options.schedule, options.loop_order)
    return layer_cycles(schedule, soc, core)


def emitter(core: DigitalCore, soc: Soc) -> DianaEmitter:
    """What turns plans into C for this core."""
    return DianaEmitter(core, soc)
