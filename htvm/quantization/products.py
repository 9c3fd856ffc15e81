"""Layers with weights: sums of products over a batch, in numpy.

Everything is exact integer arithmetic.  Convolutions use a floating-point matrix product whose
partial sums provably stay integers below 2**24 (float32) or 2**53 (float64), so the result depends
neither on the library behind numpy nor on its number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import AnalogRequant, Array, Requant
from htvm.quantization.operators import Operator
from htvm.quantization.passing import pooled
from htvm.quantization.scaling import as_scheme, converted, factors_of, offset_of, requantize
from patterns.ops.analog.convolution import AnalogConv2d
from patterns.ops.analog.dense import AnalogDense
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.dense import Dense

if TYPE_CHECKING:
    from patterns.op import Op

__all__ = ["ConvolutionOperator", "DenseOperator", "DepthwiseOperator", "ProductOperator"]


_TOGETHER = 1 << 16  # results that a layer computes at a time


@dataclass(frozen=True, eq=False)
class ProductOperator(Operator):
    """Base of layers with weights.

    Attributes:
        weight: int8 ``[K, C / groups, fy, fx]``.
        bias: int64 ``[K]``, with the input's zero point folded in.
        requant: requantization from the accumulator to int8.
    """

    computes = requantizes = True

    _: KW_ONLY
    weight: Array
    bias: Array
    requant: Requant

    @property
    def padded(self) -> bool:
        """Whether the operator reads outside its input."""
        return False

    @property
    def wants_symmetric(self) -> bool:
        """See `Operator.wants_symmetric`: the core pads with 0."""
        return self.core is not None or self.padded

    @property
    def macs(self) -> int:
        """See `Operator.macs`."""
        return int(self.weight.size * np.prod(self.shape[:-1]))

    @property
    def area(self) -> int:
        """Number of input positions per output position."""
        return 1

    def factor(self) -> Array:
        """Return real factors ``[K]`` from accumulator steps to output steps."""
        return np.broadcast_to(factors_of(self.requant), (len(self.weight),))

    # -------------------------------------------------------------------- sums

    def columns(self, x: Array) -> Array:
        """Return the operands of each output position as rows of a matrix.

        Args:
            x: ``[N, C]``, or ``[N, y, x, C]`` for a convolution.

        Returns:
            ``[positions, C * fy * fx]``, columns in the order of ``weight.reshape(K, -1)``.
        """
        return x

    def operands(self, x: Array) -> Array:
        """The operands ``[B, positions, D]`` of each of the B parts of the weights that read
        operands of their own, as rows like those of `columns`."""
        return self.columns(x)[None]

    def accumulate(self, x: Array) -> Array:
        """Return the accumulators before the bias.

        Args:
            x: int8 ``[N, y, x, C]`` or ``[N, C]``.

        Returns:
            Integers in a floating-point array ``[N, oy, ox, K]``, or ``[N, K]`` for a dense layer.
        """
        dtype = self._float
        matrix = self.weight.reshape(len(self.weight), -1).astype(dtype).T
        return np.asarray(self.columns(x.astype(dtype)) @ matrix).reshape(len(x), *self.shape)

    @property
    def _float(self) -> str:
        """A type that holds every partial sum exactly."""
        rows = np.abs(self.weight.astype(np.int64)).reshape(len(self.weight), -1).sum(axis=1)
        return "float32" if 128 * int(rows.max()) < 1 << 24 else "float64"

    def pass_sums(self, x: Array, rows: int) -> list[Array]:
        """Return the sums of each pass of a ternary layer over an array with this many rows.

        A pass takes as many whole input channels as the rows hold.
        """
        channels = rows // int(np.prod(self.weight.shape[2:]))
        return [
            replace(self, weight=self.weight[:, start : start + channels])
            .accumulate(x[..., start : start + channels])
            .astype(np.int64)
            for start in range(0, self.weight.shape[1], channels)
        ]

    def real(self, x: Array, missing_zero: int = 0) -> Array:
        """Return the output for ``x`` before rounding and clipping, in steps of the output."""
        sums = self.accumulate(x).astype(np.float64) + self.bias
        return np.asarray(sums * self.factor() + offset_of(self.requant) - missing_zero)

    def run(self, inputs: Sequence[Array]) -> Array:
        """See `Operator.run`."""
        if isinstance(self.requant, AnalogRequant):
            assert self.core is not None, self.name
            passes = self.pass_sums(inputs[0], self.requant.rows)
            sums = converted(passes, self.requant.gain, self.core.adc_range)
            return requantize(sums, self.requant, self.clip)
        # A few samples at a time: what is computed in 64 bits stays in the processor's cache, and
        # networks with large maps need no memory for it.
        x, count = inputs[0], max(1, _TOGETHER // int(np.prod(self.shape)))
        parts = [self._few(x[start : start + count]) for start in range(0, len(x), count)]
        return np.concatenate(parts)

    def _few(self, x: Array) -> Array:
        sums = self.accumulate(x).astype(np.int64) + self.bias
        return requantize(sums, self.requant, self.clip)

    def before_clip(self, tensors: Mapping[str, Array], zero: Mapping[str, int]) -> Array:
        """See `Operator.before_clip`."""
        return self.real(tensors[self.inputs[0]])

    # -------------------------------------------------------------------- channels

    def per_input(self, values: Array) -> Array:
        """Reshape values ``[.., C]`` of inputs to broadcast over ``[.., K, C / groups]``."""
        return values[..., None, :]

    def over_inputs(self, matrix: Array, values: Array) -> Array:
        """``matrix [.., K, C / groups]`` times values ``[C]`` of inputs, summed: ``[.., K]``."""
        return np.asarray(matrix @ values)

    def over_outputs(self, values: Array, matrix: Array) -> Array:
        """Values ``[K]`` of outputs times ``matrix [.., K, C / groups]``, summed: ``[.., C]``."""
        return np.asarray(values @ matrix)

    def pass_back(self, through: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
        """See `Operator.pass_back`."""
        squares = np.square(self.magnitude()).sum(axis=-1)
        return [self.over_outputs(through, squares) / self.area]

    def magnitude(self) -> Array:
        """Return magnitudes of the weights in steps of the output, ``[K, C / groups, taps]``."""
        weight = self.weight.reshape(*self.weight.shape[:2], -1)
        return np.abs(weight * self.factor()[:, None, None])


@dataclass(frozen=True, eq=False)
class DenseOperator(ProductOperator):
    """A fully connected layer; its weight is ``[K, C, 1, 1]``."""

    def made(self) -> Op:
        """See `Operator.made`."""
        if isinstance(self.requant, AnalogRequant):
            return AnalogDense(self.weight, self.requant, self.clip)
        weight = self.weight.reshape(len(self.weight), -1)
        return Dense(weight, self.bias, as_scheme(self.requant, self.name), self.clip)


@dataclass(frozen=True, eq=False)
class ConvolutionOperator(ProductOperator):
    """A convolution with one group.

    Attributes:
        window: how it moves; it includes an explicit padding before it.
        pad_value: value of the padding; values other than 0 need an explicit padding operator.
    """

    _: KW_ONLY
    window: Window = Window()
    pad_value: int = 0

    @property
    def padded(self) -> bool:
        """See `ProductOperator.padded`."""
        return any(self.window.padding)

    @property
    def area(self) -> int:
        """See `ProductOperator.area`."""
        return self.window.strides[0] * self.window.strides[1]

    def windows(self, x: Array) -> Array:
        """Return a view of the operands of each output position.

        Args:
            x: ``[N, y, x, C]``.

        Returns:
            ``[N, oy, ox, C, fy, fx]``.
        """
        (fy, fx), (dy, dx) = self.weight.shape[2:], self.window.dilation
        span = (fy - 1) * dy + 1, (fx - 1) * dx + 1
        view = pooled(x, span, self.window.strides, self.window.padding, self.pad_value)
        return view[..., ::dy, ::dx]

    def columns(self, x: Array) -> Array:
        """See `ProductOperator.columns`."""
        view = self.windows(x)
        return np.asarray(view, order="C").reshape(int(np.prod(view.shape[:3])), -1)

    def made(self) -> Op:
        """See `Operator.made`."""
        if isinstance(self.requant, AnalogRequant):
            return AnalogConv2d(self.weight, self.requant, self.clip, self.window)
        if self.padded and self.pad_value:
            raise UnsupportedError(
                f"padding with {self.pad_value}",
                where=f"operator '{self.name}'",
                hint="the shift scheme pads with 0: its input must have zero point 0",
            )
        requant = as_scheme(self.requant, self.name)
        return conv2d_of(self.weight, self.bias, self.window, requant, self.clip)


@dataclass(frozen=True, eq=False)
class DepthwiseOperator(ConvolutionOperator):
    """A convolution that filters each channel separately.

    Its input's channels are the rows of its weight ``[C, 1, fy, fx]``.
    """

    def operands(self, x: Array) -> Array:
        """See `ProductOperator.operands`."""
        taps = int(np.prod(self.weight.shape[2:]))
        return np.moveaxis(self.windows(x), 3, 0).reshape(len(self.weight), -1, taps)

    def accumulate(self, x: Array) -> Array:
        """See `ProductOperator.accumulate`."""
        view, taps = self.windows(x.astype(self._float)), self.weight[:, 0].astype(self._float)
        out = np.zeros(view.shape[:4], self._float)
        for i, j in np.ndindex(*taps.shape[1:]):
            out += view[..., i, j] * taps[:, i, j]
        return out

    def per_input(self, values: Array) -> Array:
        """See `ProductOperator.per_input`."""
        return values[..., None]

    def over_inputs(self, matrix: Array, values: Array) -> Array:
        """See `ProductOperator.over_inputs`."""
        return np.asarray(matrix[..., 0] * values)

    def over_outputs(self, values: Array, matrix: Array) -> Array:
        """See `ProductOperator.over_outputs`."""
        return np.asarray(values * matrix[..., 0])
