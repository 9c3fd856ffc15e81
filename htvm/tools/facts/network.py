"""The network as a graph, and the SoC's numbers that figures need."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from htvm.tools.report.picture_types import Core, NetworkNode, SocInfo

if TYPE_CHECKING:
    from byoc_dory.soc.base import Target
    from htvm.compiled import Compiled
    from patterns.reading.node import Node

# The last axis of their first operand is the one they sum over.
_PRODUCTS = ("matmul", "real_matmul", "tflite_matmul")


def network_graph(compiled: Compiled) -> tuple[NetworkNode, ...]:
    """Return the operators of the model as built, in execution order."""
    placement = compiled.dispatch.placement
    return tuple(
        NetworkNode(
            name=node.name,
            op=node.kind,
            accelerator=placement.get(node.name, "cpu"),
            inputs=tuple(dict.fromkeys(node.inputs)),
            macs=macs_of(node),
        )
        for node in compiled.retargeted.model.graph.in_order
    )


def macs_of(node: Node) -> int:
    """Return an operator's multiply-accumulates, those of products of two tensors included."""
    if node.layer is not None:
        return node.layer.macs
    if node.kind not in _PRODUCTS:
        return 0
    return math.prod(node.output_shape) * node.input_shapes[0][-1]


def machine_of(target: Target) -> SocInfo:
    """Return a target's numbers that figures need."""
    soc = target.soc
    return SocInfo(
        title=soc.title,
        host=soc.host.name,
        cores=tuple(Core(core.name, core.title, core.peak_macs) for core in target.accelerators),
        dma_bytes_per_cycle=None if soc.dma is None else float(soc.dma.bytes_per_cycle),
    )
