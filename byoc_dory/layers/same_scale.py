"""Layers whose result has the scale of its input: pools, moves of elements, maps at another size.

Retargeting never writes them in another number scheme, so they are offered only to accelerators
that compute in the source's numbers (`byoc_dory.soc.schemes.SourceScheme`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from byoc_dory.layers.layer import Array, Layer, Requant, Shift, out_size


@dataclass(frozen=True, eq=False, kw_only=True)
class SameScale(Layer):
    """The base of these layers, which are not requantized."""

    requant: Requant = Shift(0)

    macs: ClassVar[int] = 0
    """Always 0: there are no multiplications."""

    @property
    def shape_text(self) -> str:
        """Sizes of input and output as text."""
        return f"C={self.C} {self.iy}x{self.ix} -> K={self.K} {self.oy}x{self.ox}"


@dataclass(frozen=True, eq=False, kw_only=True)
class Pool(SameScale):
    """Averages or maxima of windows of a map ``(C, y, x)``; positions outside do not count.

    Averages are rounded half away from zero.

    Attributes:
        function: ``"average"`` or ``"max"``.
        kernel: height and width of a window.
        stride: stride (y, x).
        pad: rows and columns outside at (top, left, bottom, right).
    """

    function: Literal["average", "max"]
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    pad: tuple[int, int, int, int] = (0, 0, 0, 0)

    @property
    def op(self) -> str:
        """The name in reports, ``average_pool`` or ``max_pool``."""
        return f"{self.function}_pool"

    @property
    def fy(self) -> int:
        """Height of a window."""
        return self.kernel[0]

    @property
    def fx(self) -> int:
        """Width of a window."""
        return self.kernel[1]

    @property
    def geometry(self) -> tuple[object, ...]:
        """Shapes, function, window, stride and padding, which determine the cycles."""
        return (*super().geometry, self.function, self.kernel, self.stride, self.pad)

    def _check(self) -> None:
        top, left, bottom, right = self.pad
        oy = out_size(self.iy, top + bottom, self.fy, self.stride[0])
        ox = out_size(self.ix, left + right, self.fx, self.stride[1])
        self._check_shape(self.output, (self.C, oy, ox))


@dataclass(frozen=True, eq=False, kw_only=True)
class Padding(SameScale):
    """A map with rows and columns of a value around it.

    Attributes:
        value: the value, usually the zero point.
        sizes: rows and columns added at (top, left, bottom, right).
    """

    value: int
    sizes: tuple[int, int, int, int]

    op: ClassVar[str] = "pad"

    @property
    def geometry(self) -> tuple[object, ...]:
        """Shapes and where is padded, which determine the cycles."""
        return (*super().geometry, self.sizes)

    def _check(self) -> None:
        top, left, bottom, right = self.sizes
        self._check_shape(self.output, (self.C, self.iy + top + bottom, self.ix + left + right))


@dataclass(frozen=True, eq=False, kw_only=True)
class Interleaving(SameScale):
    """A map filled with a value, with the elements of a map spread over it.

    Attributes:
        value: the value, usually the zero point.
        start: position (y, x) of the first element.
        distance: distance (y, x) between elements; those beyond the result are left out.
    """

    value: int
    start: tuple[int, int]
    distance: tuple[int, int]

    op: ClassVar[str] = "interleave"

    @property
    def geometry(self) -> tuple[object, ...]:
        """Shapes and places of elements."""
        return (*super().geometry, self.start, self.distance)

    def _check(self) -> None:
        self._check_shape(self.output, (self.C, *self.output.shape[1:]))
        if min(self.start) < 0 or min(self.distance) < 1:
            raise self._error(f"elements from {self.start} on, {self.distance} apart")


@dataclass(frozen=True, eq=False, kw_only=True)
class Repetition(SameScale):
    """A map whose rows and columns are each repeated ``factor`` times."""

    factor: int

    op: ClassVar[str] = "nearest"

    def _check(self) -> None:
        sizes = self.iy * self.factor, self.ix * self.factor
        self._check_shape(self.output, (self.C, *sizes))


@dataclass(frozen=True, eq=False, kw_only=True)
class Doubling(SameScale):
    """A map of twice the size, interpolated along both axes, rounded half away from zero.

    Along an axis, elements 2i and 2i+1 of the result are:

    - centred: three quarters of element i and one of i-1 or i+1, the nearer neighbour;
    - else: element i, and the mean of i and i+1.

    Beyond its ends the map has the elements there.

    Attributes:
        centred: whether elements stand for the centres of pixels.
    """

    centred: bool

    op: ClassVar[str] = "bilinear"

    @property
    def geometry(self) -> tuple[object, ...]:
        """Shapes and mode."""
        return (*super().geometry, self.centred)

    def _check(self) -> None:
        self._check_shape(self.output, (self.C, 2 * self.iy, 2 * self.ix))


def doubling_weights(size: int, centred: bool) -> Array:
    """Return the weights of a `Doubling` along an axis, in quarters: int ``[2 * size, size]``."""
    weights = np.zeros((2 * size, size), np.int64)
    for place in range(2 * size):
        own, odd = divmod(place, 2)
        weight, other = (1, own + 1 if odd else own - 1) if centred else (2 * odd, own + 1)
        weights[place, own] += 4 - weight
        weights[place, min(max(other, 0), size - 1)] += weight
    return weights


@dataclass(frozen=True, eq=False, kw_only=True)
class Reshaping(SameScale):
    """The same elements in another shape, of rows of channels as they are stored."""

    op: ClassVar[str] = "reshape"

    def _check(self) -> None:
        if self.inputs[0].elements != self.output.elements:
            raise self._error(f"{self.inputs[0].elements} elements become {self.output.elements}")


@dataclass(frozen=True, eq=False, kw_only=True)
class Slicing(SameScale):
    """A part of a tensor.

    Attributes:
        begin: first element of each axis, in the order of the tensors' shapes.
    """

    begin: tuple[int, ...]

    op: ClassVar[str] = "slice"

    @property
    def geometry(self) -> tuple[object, ...]:
        """Shapes and where the part is."""
        return (*super().geometry, self.begin)

    def _check(self) -> None:
        shapes = self.inputs[0].shape, self.output.shape
        if {len(shape) for shape in shapes} != {len(self.begin)} or any(
            first < 0 or first + count > size
            for size, count, first in zip(*shapes, self.begin, strict=True)
        ):
            raise self._error(f"{shapes[1]} elements from {self.begin} on of {shapes[0]}")


@dataclass(frozen=True, eq=False, kw_only=True)
class Concatenation(SameScale):
    """Tensors one behind the other along an axis.

    Attributes:
        axis: axis, in the order of the tensors' shapes.
    """

    axis: int

    op: ClassVar[str] = "concat"

    @property
    def operands(self) -> int:
        """Number of operands: as many as there are inputs."""
        return len(self.inputs)

    @property
    def geometry(self) -> tuple[object, ...]:
        """Shapes and axis."""
        return (*super().geometry, self.axis)

    def _check(self) -> None:
        shape, axis = self.output.shape, self.axis
        for tensor in self.inputs:
            size = tensor.shape[axis : axis + 1]
            self._check_shape(tensor, (*shape[:axis], *size, *shape[axis + 1 :]))
        if shape[axis] != sum(tensor.shape[axis] for tensor in self.inputs):
            raise self._error(f"{shape[axis]} elements along axis {axis}")
