"""Helper: executes a converted module whose scales are powers of two, in integers alone.

A real tensor is an integer array times a power of two.  Layers are requantized as a core does it
that has only a right shift: ``(sum + bias + half) >> shift``, which floors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any


@dataclass
class Number:
    """``values * 2**exponent / parts``."""

    values: Array
    exponent: int
    parts: int = 1


def exponent_of(scale: float) -> int:
    """Return the exponent of a power of two."""
    mantissa, exponent = math.frexp(scale)
    assert mantissa == 0.5, f"{scale} is no power of two"
    return exponent - 1


class Machine:
    """Executes the graph of an exported program."""

    def __init__(self, program: Any) -> None:
        self.graph = program.graph
        signature = program.graph_signature
        state = {**program.state_dict, **program.constants}
        named = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
        self.state = {name: state[key].numpy(force=True) for name, key in named.items()}
        self.ties = 0

    def run(self, image: Array) -> Array:
        """Return the real outputs for one input."""
        env: dict[str, Any] = {}
        for node in self.graph.nodes:
            if node.op == "placeholder":
                env[node.name] = self.state.get(node.name, image)
            elif node.op == "output":
                found = env[node.args[0][0].name]
                return found.values * 2.0**found.exponent
            else:
                name = str(node.target).removeprefix("aten.").removeprefix("quantized_decomposed.")
                args = [env[arg.name] if hasattr(arg, "name") else arg for arg in node.args]
                env[node.name] = getattr(self, name.replace(".", "_"))(*args)
        raise AssertionError("no output")

    # ------------------------------------------------------------------ quantization

    def quantize_per_tensor_default(
        self, x: Any, scale: float, zero: int, low: int, high: int, dtype: Any
    ) -> Array:
        assert zero == 0
        if not isinstance(x, Number):  # the input
            return np.clip(np.rint(np.float32(x) * np.float32(1 / scale)), low, high).astype(int)
        shift = exponent_of(scale) - x.exponent
        if x.parts > 1:  # a mean, which a host computes: halves to even
            return np.clip(np.rint(x.values / (x.parts * 2.0**shift)), low, high).astype(int)
        if shift <= 0:
            return np.clip(x.values << -shift, low, high)
        half = 1 << (shift - 1)
        self.ties += int((x.values % (1 << shift) == half).sum())
        return np.clip((x.values + half) >> shift, low, high)

    def dequantize_per_tensor_default(
        self, x: Array, scale: float, zero: int, low: int, high: int, dtype: Any
    ) -> Number:
        assert zero == 0
        return Number(x.astype(np.int64), exponent_of(scale))

    def dequantize_per_channel_default(
        self, x: Array, scales: Array, zeros: Array, axis: int, *_: Any
    ) -> Number:
        assert not zeros.any() and axis == 0
        exponents = np.array([exponent_of(float(scale)) for scale in scales])
        least = int(exponents.min())
        factors = 1 << (exponents - least)
        return Number(x.astype(np.int64) * factors.reshape(-1, *[1] * (x.ndim - 1)), least)

    # ------------------------------------------------------------------ layers

    def conv2d_default(
        self, x: Number, weight: Number, bias: Array, stride: Any = (1, 1), padding: Any = (0, 0),
        dilation: Any = (1, 1), groups: int = 1,
    ) -> Number:  # fmt: skip
        assert tuple(dilation) == (1, 1)
        py, px = padding
        padded = np.pad(x.values[0], ((0, 0), (py, py), (px, px)))
        out, each, fy, fx = weight.values.shape
        windows = np.lib.stride_tricks.sliding_window_view(padded, (fy, fx), axis=(1, 2))
        windows = windows[:, :: stride[0], :: stride[1]]
        sums = [
            np.einsum(
                "cyxab,cab->yx",
                windows[(k * groups // out) * each : (k * groups // out + 1) * each],
                weight.values[k],
            )
            for k in range(out)
        ]
        return self._biased(np.stack(sums)[None], x.exponent + weight.exponent, bias[:, None, None])

    def linear_default(self, x: Number, weight: Number, bias: Array) -> Number:
        return self._biased(x.values @ weight.values.T, x.exponent + weight.exponent, bias)

    def _biased(self, sums: Array, exponent: int, bias: Array) -> Number:
        halves = bias.astype(np.float64) / 2.0 ** (exponent - 1)
        assert np.array_equal(halves, np.rint(halves)), "a bias off the grid"
        return Number(2 * sums + halves.astype(np.int64), exponent - 1)

    # ------------------------------------------------------------------ the rest

    def relu_default(self, x: Number) -> Number:
        return Number(np.maximum(x.values, 0), x.exponent)

    def relu6_default(self, x: Number) -> Number:
        assert x.exponent <= 1
        return Number(np.clip(x.values, 0, int(6 / 2.0**x.exponent)), x.exponent)

    def add_Tensor(self, a: Number, b: Any) -> Number:
        if not isinstance(b, Number):  # what is added behind an array
            return self._biased(a.values, a.exponent, b)
        least = min(a.exponent, b.exponent)
        left, right = (each.values << (each.exponent - least) for each in (a, b))
        return Number(left + right, least)

    def mul_Tensor(self, a: Number, b: Number) -> Number:
        return Number(a.values * b.values, a.exponent + b.exponent)

    def slice_Tensor(self, x: Number, axis: int, first: int, last: int) -> Number:
        return Number(x.values.take(range(first, last), axis), x.exponent)

    def max_pool2d_default(self, x: Number, size: Any, stride: Any) -> Number:
        windows = np.lib.stride_tricks.sliding_window_view(x.values, tuple(size), axis=(2, 3))
        return Number(windows[:, :, :: stride[0], :: stride[1]].max(axis=(4, 5)), x.exponent)

    def adaptive_avg_pool2d_default(self, x: Number, size: Any) -> Number:
        assert tuple(size) == (1, 1)
        parts = x.values.shape[2] * x.values.shape[3]
        return Number(x.values.sum(axis=(2, 3), keepdims=True), x.exponent, parts)

    def flatten_using_ints(self, x: Number, start: int = 0) -> Number:
        assert start == 1
        return Number(x.values.reshape(len(x.values), -1), x.exponent)
