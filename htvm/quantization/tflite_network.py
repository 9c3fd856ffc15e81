"""The ONNX graph for a float TFLite file, while it is being written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from byoc_dory.layers import Array
from htvm.frontend.tflite.file import TfliteFile, TfliteTensor
from htvm.frontend.tflite.reader import OperatorReader

TO_NCHW, _TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)
_OPSET, _IR_VERSION = 17, 8


class OnnxBuilder:
    """Nodes, constants, and the value for each tensor of the file.

    Args:
        file: file with float32 activations; inputs and outputs keep its names and shapes.
    """

    def __init__(self, file: TfliteFile) -> None:
        self._file = file
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []
        self._values: dict[int, str] = {}
        self._taken = {tensor.name for tensor in file.tensors}
        self._outputs = {tensor.index for tensor in file.outputs}
        for tensor in file.inputs:
            self._values[tensor.index] = tensor.name
            if len(tensor.shape) == 4:
                self._values[tensor.index] = self.nchw(tensor.name, tensor.shape)

    def _fresh(self, base: str) -> str:
        """Return an unused name."""
        name, count = base, 1
        while name in self._taken:
            name, count = f"{base}_{count}", count + 1
        self._taken.add(name)
        return name

    def node(self, kind: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Append a node; return its output."""
        name = self._fresh(kind.lower())
        self._nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    @property
    def last(self) -> str:
        """Output of the node appended last."""
        return str(self._nodes[-1].output[0])

    def constant(self, array: Array) -> str:
        """Add a constant in C order."""
        name = self._fresh("constant")
        self._constants.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def value(self, op: OperatorReader, tensor: TfliteTensor) -> str:
        """Return the name of an activation, which is NCHW if it has four axes."""
        if tensor.data is not None:
            raise op.unsupported(f"{tensor.place} is constant, not an activation")
        return self._values[tensor.index]

    def flat(self, op: OperatorReader, tensor: TfliteTensor) -> str:
        """Return an activation with its elements in the file's order."""
        value, shape = self.value(op, tensor), tensor.shape
        if len(shape) != 4 or _same_order(shape):
            return value
        return self.node("Transpose", [value], perm=_TO_NHWC)

    def reshape(self, value: str, shape: Sequence[int]) -> str:
        """Return the same elements in another shape."""
        return self.node("Reshape", [value, self.constant(np.asarray(shape, np.int64))])

    def shaped(self, value: str, shape: Sequence[int]) -> str:
        """Return elements in the file's order, in a shape from the file."""
        if len(shape) != 4:
            return self.reshape(value, shape)
        if _same_order(shape):
            return self.reshape(value, [shape[axis] for axis in TO_NCHW])
        return self.nchw(self.reshape(value, shape), shape)

    def nchw(self, value: str, shape: Sequence[int]) -> str:
        """Return a tensor with an NHWC shape as NCHW."""
        if _same_order(shape):
            return self.reshape(value, [shape[axis] for axis in TO_NCHW])
        return self.node("Transpose", [value], perm=TO_NCHW)

    def finish(self, tensor: TfliteTensor) -> None:
        """Give the last node, which computes ``tensor``, the tensor's name."""
        last = self._nodes[-1]
        if len(tensor.shape) != 4 or tensor.index not in self._outputs:
            last.output[0] = last.name = tensor.name
        self._values[tensor.index] = last.output[0]

    def model(self, name: str) -> ModelProto:
        """Return the whole model."""
        for tensor in self._file.outputs:
            if len(tensor.shape) == 4:
                value = self._values[tensor.index]
                if _same_order(tensor.shape):
                    self.reshape(value, tensor.shape)
                else:
                    self.node("Transpose", [value], perm=_TO_NHWC)
                self._nodes[-1].output[0] = tensor.name
        graph = helper.make_graph(
            self._nodes,
            name,
            [_info(tensor) for tensor in self._file.inputs],
            [_info(tensor) for tensor in self._file.outputs],
            self._constants,
        )
        opsets = [helper.make_opsetid("", _OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)


def _info(tensor: TfliteTensor) -> Any:
    return helper.make_tensor_value_info(tensor.name, TensorProto.FLOAT, tensor.shape)


def _same_order(shape: Sequence[int]) -> bool:
    """Whether NHWC and NCHW have the same order of elements."""
    return shape[3] == 1 or shape[1] * shape[2] == 1
