"""Large networks as float ONNX files with seeded weights, and quantized by onnxruntime.

The layers are those of the published networks for images of 224 x 224 (MobileNetV2 1.0,
EfficientNet-B0, ResNet-50); accuracy does not matter here, time does not depend on the weights.
Weights are drawn as He et al. initialise them, so that activations neither vanish nor saturate.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from htvm.quantization.float_model import quantize_file

__all__ = ["NETWORKS", "RESNETS", "write"]

_SIDE = 224
_CLASSES = 1000


@dataclass
class _Graph:
    """An ONNX graph being written; tensors are NCHW."""

    seed: int = 0
    side: int = _SIDE
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    channels: dict[str, int] = field(default_factory=lambda: {"x": 3})

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)

    def node(self, kind: str, inputs: list[str], channels: int, **attributes: Any) -> str:
        """Append a node with one output; return the output's name."""
        from onnx import helper

        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        self.channels[name] = channels
        return name

    def constant(self, value: np.ndarray) -> str:
        """Add an initializer; return its name."""
        from onnx import numpy_helper

        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(value.astype(np.float32), name))
        return name

    def conv(
        self, x: str, k: int, side: int = 1, stride: int = 1, *, depthwise: bool = False
    ) -> str:
        """Append a convolution with a bias, padded such that stride 1 keeps the map's size."""
        inner = 1 if depthwise else self.channels[x]
        shape = (k, inner, side, side)
        weight = self._rng.normal(0, np.sqrt(2 / (inner * side * side)), shape)
        bias = self._rng.normal(0, 0.05, k)
        return self.node(
            "Conv", [x, self.constant(weight), self.constant(bias)], k,
            kernel_shape=[side, side], strides=[stride] * 2, pads=[side // 2] * 4,
            group=k if depthwise else 1,
        )  # fmt: skip

    def relu(self, x: str) -> str:
        """Append a ReLU."""
        return self.node("Relu", [x], self.channels[x])

    def relu6(self, x: str) -> str:
        """Append a clip to 0..6."""
        return self.node("Clip", [x, *self._six()], self.channels[x])

    def _six(self) -> tuple[str, str]:
        return self.constant(np.array(0.0)), self.constant(np.array(6.0))

    def silu(self, x: str) -> str:
        """Append ``x * sigmoid(x)``."""
        gate = self.node("Sigmoid", [x], self.channels[x])
        return self.node("Mul", [x, gate], self.channels[x])

    def classify(self, x: str) -> str:
        """Append the mean over the map, and the logits."""
        mean = self.node("GlobalAveragePool", [x], self.channels[x])
        flat = self.node("Flatten", [mean], self.channels[x])
        weight = self._rng.normal(0, np.sqrt(1 / self.channels[x]), (_CLASSES, self.channels[x]))
        bias = self.constant(np.zeros(_CLASSES))
        return self.node("Gemm", [flat, self.constant(weight), bias], _CLASSES, transB=1)

    def save(self, result: str, path: Path) -> None:
        """Write the file."""
        from onnx import TensorProto, helper, save

        shapes = (("x", [1, 3, self.side, self.side]), (result, [1, _CLASSES]))
        given, made = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes)
        graph = helper.make_graph(self.nodes, "network", [given], [made], self.constants)
        opset = [helper.make_opsetid("", 17)]
        save(helper.make_model(graph, opset_imports=opset, ir_version=8), str(path))


def _mobilenet_v2(graph: _Graph) -> str:
    x = graph.relu6(graph.conv("x", 32, 3, 2))
    stages = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1))
    for factor, k, count, first in (*stages, (6, 160, 3, 2), (6, 320, 1, 1)):
        for index in range(count):
            stride, before = first if index == 0 else 1, x
            wide = graph.channels[x] * factor
            if factor > 1:
                x = graph.relu6(graph.conv(x, wide))
            x = graph.relu6(graph.conv(x, wide, 3, stride, depthwise=True))
            x = graph.conv(x, k)
            if stride == 1 and graph.channels[before] == k:
                x = graph.node("Add", [before, x], k)
    return graph.classify(graph.relu6(graph.conv(x, 1280)))


def _efficientnet_b0(graph: _Graph) -> str:
    x = graph.silu(graph.conv("x", 32, 3, 2))
    stages = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3))
    later = ((6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3))
    for factor, k, count, first, side in (*stages, *later):
        for index in range(count):
            stride, before = first if index == 0 else 1, x
            narrow, wide = graph.channels[x] // 4, graph.channels[x] * factor
            if factor > 1:
                x = graph.silu(graph.conv(x, wide))
            x = graph.silu(graph.conv(x, wide, side, stride, depthwise=True))
            mean = graph.node("GlobalAveragePool", [x], wide)
            gate = graph.conv(graph.silu(graph.conv(mean, narrow)), wide)
            x = graph.node("Mul", [x, graph.node("Sigmoid", [gate], wide)], wide)
            x = graph.conv(x, k)
            if stride == 1 and graph.channels[before] == k:
                x = graph.node("Add", [before, x], k)
    return graph.classify(graph.silu(graph.conv(x, 1280)))


def _resnet(graph: _Graph, blocks: tuple[int, ...]) -> str:
    x = graph.relu(graph.conv("x", 64, 7, 2))
    x = graph.node("MaxPool", [x], 64, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for stage, count in enumerate(blocks):
        k = 64 << stage
        for index in range(count):
            stride, before = 2 if stage and index == 0 else 1, x
            x = graph.relu(graph.conv(x, k))
            x = graph.conv(graph.relu(graph.conv(x, k, 3, stride)), 4 * k)
            if index == 0:
                before = graph.conv(before, 4 * k, 1, stride)
            x = graph.relu(graph.node("Add", [before, x], 4 * k))
    return graph.classify(x)


NETWORKS = {
    "mobilenet_v2": _mobilenet_v2,
    "efficientnet_b0": _efficientnet_b0,
    "resnet50": lambda graph: _resnet(graph, (3, 4, 6, 3)),
}
"""Name -> function that draws the network."""

RESNETS = {f"resnet{2 + 12 * n}": n for n in (1, 2, 3, 4, 5)}
"""Networks of five sizes: layers with weights, name -> blocks in each of four stages."""


def write(name: str, path: Path, side: int = _SIDE) -> None:
    """Write a network, quantized with four seeded images of noise.

    Args:
        name: one of `NETWORKS` or `RESNETS`.
        path: the ONNX file (QDQ, int8, weights per channel).
        side: rows and columns of an image.
    """
    graph = _Graph(side=side)
    if name in NETWORKS:
        result = NETWORKS[name](graph)
    else:
        result = _resnet(graph, (RESNETS[name],) * 4)
    rng = np.random.default_rng(1)
    images = rng.normal(0, 1, (4, 1, 3, side, side)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"{name}.onnx"
        graph.save(result, source)
        quantized = Path(folder) / "quantized.onnx"
        quantize_file(source, quantized, {"x": images})
        shutil.move(quantized, path)
