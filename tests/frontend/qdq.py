"""Helper: build quantize/dequantize modules, the way TVM's importers write them."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax
from tvm.ir import IRModule
from tvm.relax import op as R

from tests.reference.interpreter import Array


class QdqBuilder:
    """Writes float operators between dequantize and quantize.

    Args:
        seed: of the weights and scales.
        shape: of the one input.
        layout: of the feature maps.
    """

    def __init__(self, seed: int, shape: tuple[int, ...], layout: str = "NHWC") -> None:
        self.rng = np.random.default_rng(seed)
        self.layout = layout
        self.builder = relax.BlockBuilder()
        self.source = relax.Var("data", relax.TensorType(shape, "int8"))
        self.steps: dict[Any, tuple[float, int]] = {}
        self.steps[self.source] = self.step()

    def step(self) -> tuple[float, int]:
        """A random activation scale and zero point."""
        return float(np.float32(np.exp(self.rng.uniform(-4, 0)))), int(self.rng.integers(-128, 128))

    def dequantized(self, x: Any) -> Any:
        scale, zero_point = self.steps[x]
        return R.dequantize(
            x, relax.const(scale, "float32"), relax.const(zero_point, "int32"), axis=0
        )

    def quantized(self, value: Any, step: tuple[float, int] | None = None) -> Any:
        step = step or self.step()
        scale, zero_point = relax.const(step[0], "float32"), relax.const(step[1], "int32")
        result = self.builder.emit(R.quantize(value, scale, zero_point, axis=0, out_dtype="int8"))
        self.steps[result] = step
        return result

    def weights(self, *shape: int, axis: int) -> tuple[Any, Array]:
        """Dequantized int8 weights with scales along ``axis``."""
        scales = np.exp(self.rng.uniform(-6, -3, shape[axis])).astype(np.float32)
        data = self.rng.integers(-127, 128, shape).astype(np.int8)
        zero = relax.const(0, "int32")
        return R.dequantize(relax.const(data), relax.const(scales), zero, axis=axis), scales

    def with_bias(self, product: Any, x: Any, scales: Array, axis: int = -1) -> Any:
        data = self.rng.integers(-2000, 2000, scales.shape).astype(np.int32)
        scale = (np.float32(self.steps[x][0]) * scales).astype(np.float32)
        zero = relax.const(0, "int32")
        bias = R.dequantize(relax.const(data), relax.const(scale), zero, axis=0)
        if axis == 1:
            bias = R.reshape(self.builder.normalize(bias), (1, len(scales), 1, 1))
        return R.add(product, bias)

    def fitting(self, x: Any, fan_in: int, scales: Array) -> tuple[float, int]:
        """An output step that uses much of int8."""
        deviation = self.steps[x][0] * float(scales.mean()) * 74 * 74 * fan_in**0.5
        return float(np.float32(deviation / 50)), int(self.rng.integers(-128, 100))

    def conv(
        self,
        x: Any,
        channels: int,
        kernel: tuple[int, int] = (3, 3),
        strides: tuple[int, int] = (1, 1),
        padding: tuple[int, int, int, int] = (1, 1, 1, 1),
        depthwise: bool = False,
        activation: str = "none",
    ) -> Any:
        nhwc = self.layout == "NHWC"
        source = int(x.ty.shape[3 if nhwc else 1])
        each = 1 if depthwise else source
        channels = source if depthwise else channels
        if not nhwc:
            weight, scales = self.weights(channels, each, *kernel, axis=0)
            kernel_layout = "OIHW"
        elif depthwise:
            weight, scales = self.weights(1, *kernel, channels, axis=3)
            weight, kernel_layout = R.reshape(weight, (*kernel, channels, 1)), "HWOI"
        else:
            weight, scales = self.weights(*kernel, each, channels, axis=3)
            kernel_layout = "HWIO"
        value = R.nn.conv2d(
            self.dequantized(x),
            weight,
            strides=strides,
            padding=padding,
            groups=source if depthwise else 1,
            data_layout=self.layout,
            kernel_layout=kernel_layout,
        )
        value = self.with_bias(value, x, scales, -1 if nhwc else 1)
        value = self.activated(value, activation)
        return self.quantized(value, self.fitting(x, each * kernel[0] * kernel[1], scales))

    def activated(self, value: Any, activation: str) -> Any:
        if activation == "relu":
            return R.nn.relu(value)
        if activation == "relu6":
            return R.clip(value, 0.0, 6.0)
        return value

    def dense(self, x: Any, channels: int, activation: str = "none") -> Any:
        features = int(x.ty.shape[-1])
        weight, scales = self.weights(features, channels, axis=1)
        value = self.with_bias(R.matmul(self.dequantized(x), weight), x, scales)
        value = self.activated(value, activation)
        return self.quantized(value, self.fitting(x, features, scales))

    def add(self, a: Any, b: Any, activation: str = "none") -> Any:
        value = R.add(self.dequantized(a), self.dequantized(b))
        scale = 1.3 * (self.steps[a][0] + self.steps[b][0])
        step = (float(np.float32(scale)), int(self.rng.integers(-60, 60)))
        return self.quantized(self.activated(value, activation), step)

    def requantize(self, x: Any) -> Any:
        scale = float(np.float32(self.steps[x][0] * 1.7))
        return self.quantized(R.nn.relu(self.dequantized(x)), (scale, -100))

    def keep_step(self, x: Any, call: Any) -> Any:
        result = self.builder.emit(call)
        self.steps[result] = self.steps[x]
        return result

    def average_pool(self, x: Any, kernel: tuple[int, int]) -> Any:
        wide = R.nn.avg_pool2d(R.astype(x, "int32"), kernel, kernel, layout=self.layout)
        return self.keep_step(x, R.astype(wide, "int8"))

    def max_pool(self, x: Any) -> Any:
        return self.keep_step(x, R.nn.max_pool2d(x, (2, 2), (2, 2), layout=self.layout))

    def flatten(self, x: Any) -> Any:
        size = int(np.prod([int(size) for size in x.ty.shape]))
        return self.keep_step(x, R.reshape(x, (1, size)))

    def softmax(self, x: Any) -> Any:
        return self.quantized(R.nn.softmax(self.dequantized(x), axis=-1), (1 / 256, -128))

    def module(self, write: Any) -> IRModule:
        """``main`` returning what ``write(source)`` returns."""
        with self.builder.function("main", [self.source]):
            with self.builder.dataflow():
                result = write(self.source)
                result = self.builder.emit_output(
                    relax.Tuple(list(result)) if isinstance(result, tuple) else result
                )
            self.builder.emit_func_output(result)
        return self.builder.get()
