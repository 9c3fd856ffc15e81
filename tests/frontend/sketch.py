"""Helper: a graph of TFLite operators that a test draws, tensor by tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.frontend.flatfile import INT32, Graph, Op, Options, Tensor
from tests.reference.interpreter import Array

Rng = np.random.Generator


class Sketch:
    """Collects tensors and operators of a graph."""

    def __init__(self, rng: Rng) -> None:
        self.rng = rng
        self.tensors: list[Tensor] = []
        self.operators: list[Op] = []
        self.inputs: list[int] = []

    def tensor(self, shape: Sequence[int], scale: float, zero: int, **more: Any) -> int:
        name = f"tensor_{len(self.tensors)}"
        quantized: dict[str, Any] = {"scales": [scale], "zero_points": [zero], **more}
        self.tensors.append(Tensor(name, tuple(int(n) for n in shape), **quantized))
        return len(self.tensors) - 1

    def input(self, shape: Sequence[int], scale: float = 0.05, zero: int = 3, **more: Any) -> int:
        self.inputs.append(self.tensor(shape, scale, zero, **more))
        return self.inputs[-1]

    def drawn_input(self, shape: Sequence[int]) -> int:
        return self.input(shape, self.scale(), self.zero())

    def integers(self, values: Any) -> int:
        data = np.asarray(values, np.int32)
        return self.tensor(data.shape, 1, 0, code=INT32, data=data, scales=(), zero_points=())

    def constant(self, data: Array, scale: float, zero: int = 0, **more: Any) -> int:
        return self.tensor(data.shape, scale, zero, data=data, **more)

    def bytes(self, *shape: int) -> Array:
        return self.rng.integers(-127, 128, shape).astype(np.int8)

    def op(
        self, kind: str, inputs: Sequence[int], outputs: Sequence[int], options: Options | None
    ) -> None:
        self.operators.append(Op(kind, inputs, outputs, options))

    def graph(self, *outputs: int) -> Graph:
        return Graph(self.tensors, self.operators, self.inputs, outputs)

    # --- draws

    def scale(self, low: float = 0.004, high: float = 0.4) -> float:
        return float(np.float32(math.exp(self.rng.uniform(math.log(low), math.log(high)))))

    def zero(self) -> int:
        return int(self.rng.choice([-128, 127, 0, int(self.rng.integers(-128, 128))]))

    def size(self, low: int = 1, high: int = 8) -> int:
        return int(self.rng.integers(low, high + 1))

    def flag(self) -> bool:
        return bool(self.rng.integers(2))

    def fused(self) -> tuple[str, int]:
        return ("b", int(self.rng.choice([0, 0, 1, 2, 3])))

    def like(self, at: int, shape: Sequence[int]) -> int:
        """A tensor of another shape with the quantization of tensor ``at``."""
        source = self.tensors[at]
        return self.tensor(shape, source.scales[0], source.zero_points[0])
