"""Operands whose places and buffers in L1 come from a layer's plan.

An author specifies where a tile of a tensor lies in L2 and which block is moved; the plan
determines the rest, and whether the whole tensor stays in L1.
"""

from __future__ import annotations

from byoc_dory.plan import LayerPlan
from byoc_dory.tileloop.program import BlockOf, Operand
from byoc_dory.tileloop.values import Value


def input_of(
    plan: LayerPlan,
    number: int,
    name: str,
    offset: Value,
    block: BlockOf,
    whole: int,
    buffer: int,
    *,
    every_tile: bool = False,
    title: str = "",
) -> Operand:
    """Return an input of a layer; if resident, it has the same layout as in L2.

    Args:
        plan: of the layer.
        number: index of the input among the layer's inputs.
        name, offset, block, title: as for `Operand`.
        whole: bytes of the whole tensor.
        buffer: bytes of one tile in L1.
        every_tile: whether every tile reads all of it, so that one buffer is enough.
    """
    resident = plan.resident_inputs[number]
    return Operand(
        name,
        offset,
        block,
        plan.l1_inputs[number],
        whole if resident else buffer,
        buffers=1 if every_tile else plan.input_buffers or plan.buffers,
        resident=resident,
        inside=offset,
        title=title,
    )


def weights_of(plan: LayerPlan, offset: Value, block: BlockOf, buffer: int) -> Operand:
    """Packed weights that are loaded into L1; ``buffer`` is the bytes of one tile of them."""
    return Operand(
        "weights", offset, block, plan.l1_weights, buffer, buffers=plan.buffers, constant=True
    )


def result_of(
    plan: LayerPlan, offset: Value, block: BlockOf, whole: int, buffer: int, *, title: str = ""
) -> Operand:
    """Return the result of a layer, ``out``; arguments as for `input_of`."""
    return Operand(
        "out",
        offset,
        block,
        plan.l1_output,
        whole if plan.resident_output else buffer,
        buffers=plan.buffers,
        resident=plan.resident_output,
        inside=offset,
        title=title,
    )
