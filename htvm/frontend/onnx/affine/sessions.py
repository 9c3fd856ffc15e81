"""Which kernel a default session of onnxruntime has for a node between int8 tensors.

On x86 a session turns int8 into uint8 between a QuantizeLinear and its DequantizeLinear, if one
node alone reads the tensor.  A node is fused with both if they are of one type then, and runs in
reals otherwise.  The kernels round differently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxGraph, OnnxNode

__all__ = ["zero_added"]


def zero_added(graph: OnnxGraph, node: OnnxNode, zero_point: int, dtype: str) -> int:
    """Return what the kernel of a node adds to a result before it rounds to an integer.

    Args:
        graph: the graph.
        node: reads one dequantized tensor; its result is quantized.
        zero_point: of the result as int8.
        dtype: type of both tensors in the file.

    Returns:
        The zero point as int8 or as uint8; 0 if the node runs in reals, as its zero point is then
        added afterwards.
    """
    if dtype == "uint8":
        return zero_point + 128
    before = [item for item in graph.nodes if node.inputs[0] in item.outputs]
    after = [item for item in graph.nodes if node.outputs[0] in item.inputs]
    turned = {
        _is_turned(graph, before[0].inputs[0]) if before else False,
        _is_turned(graph, after[0].outputs[0]) if after else False,
    }
    if len(turned) > 1:
        return 0
    return zero_point + (128 if turned == {True} else 0)


def _is_turned(graph: OnnxGraph, name: str) -> bool:
    """Whether a quantized tensor of int8 becomes one of uint8."""
    made = any(item.op == "QuantizeLinear" and name in item.outputs for item in graph.nodes)
    readers = [item for item in graph.nodes if name in item.inputs]
    if not made or any(item.op != "DequantizeLinear" for item in readers):
        return False
    ends = {item.name for item in graph.outputs}
    real = [item.outputs[0] for item in readers]
    uses = sum(item.inputs.count(each) for each in real for item in graph.nodes)
    return name not in ends and uses + sum(each in ends for each in real) == 1
