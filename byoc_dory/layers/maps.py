"""Layers of maps and vectors: convolutions, fully connected layers, sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from byoc_dory.layers.layer import INT8, Array, Layer, Requant, Tensor, out_size


@dataclass(frozen=True, eq=False, kw_only=True)
class Weighted(Layer):
    """A layer that sums products with constant weights.

    Attributes:
        weight: constant weights ``[K, C / groups, fy, fx]``.
        bias: int32 ``[K]``, beside activations of int16 int64; or ``None`` for zero.
    """

    weight: Array
    bias: Array | None = None

    @property
    def K(self) -> int:
        """Output channels."""
        return int(self.weight.shape[0])

    @property
    def C(self) -> int:
        """Input channels."""
        return int(self.weight.shape[1]) * self.groups

    @property
    def depthwise(self) -> bool:
        """Whether every input channel is filtered separately into one output channel."""
        return self.groups > 1 and self.groups == self.C == self.K

    @property
    def macs(self) -> int:
        """Multiply-accumulates, not counting padding."""
        return int(self.weight.size) * self.oy * self.ox

    def _check_weight(self) -> None:
        if self.weight.ndim != 4 or not self.weight.size:
            raise self._error(f"weight has shape {self.weight.shape}", "[K, C / groups, fy, fx]")
        if self.bias is not None and self.bias.shape != (self.K,):
            raise self._error(f"bias has shape {self.bias.shape}, not ({self.K},)")


@dataclass(frozen=True, eq=False, kw_only=True)
class Convolution(Weighted):
    """Sums of products over a window, in one or several groups of channels.

    ``out[k,y,x] = clip(requant(sum in[c, y*sy - top + i*dy, x*sx - left + j*dx] * weight + bias))``
    with zeros outside the input.

    Attributes:
        stride: stride (y, x).
        pad: zeros added at (top, left, bottom, right).
        dilation: dilation (y, x).
        groups: number of groups of channels; output channels sum the input channels of their group.
    """

    stride: tuple[int, int] = (1, 1)
    pad: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1

    @property
    def full(self) -> bool:
        """Whether every output channel sums all input channels."""
        return self.groups == 1

    @property
    def op(self) -> str:
        """The name in reports, ``conv2d`` or ``depthwise``."""
        return "depthwise" if self.depthwise else "conv2d"

    @property
    def fy(self) -> int:
        """Height of the kernel."""
        return int(self.weight.shape[2])

    @property
    def fx(self) -> int:
        """Width of the kernel."""
        return int(self.weight.shape[3])

    @property
    def shape_text(self) -> str:
        """Channels, sizes, kernel and stride as text."""
        return (
            f"C={self.C} {self.iy}x{self.ix} -> K={self.K} {self.oy}x{self.ox}, "
            f"kernel {self.fy}x{self.fx}, stride {self.stride[0]}x{self.stride[1]}"
        )

    @property
    def geometry(self) -> tuple[object, ...]:
        """Shapes, kernel, stride, padding, dilation and groups, which determine the cycles."""
        window = (self.fy, self.fx, self.stride, self.pad, self.dilation, self.groups)
        return (*super().geometry, *window)

    def _check(self) -> None:
        self._check_weight()
        if any(size < 1 for size in (self.groups, *self.stride, *self.dilation)):
            raise self._error(f"a size is below 1 in {self.shape_text}")
        if any(pad < 0 for pad in self.pad):
            raise self._error(f"negative padding {self.pad}")
        if self.K % self.groups:
            raise self._error(f"groups={self.groups} does not divide C={self.C} and K={self.K}")
        top, left, bottom, right = self.pad
        for axis, size, before, after, kernel, stride, dilation, out in (
            ("y", self.iy, top, bottom, self.fy, self.stride[0], self.dilation[0], self.oy),
            ("x", self.ix, left, right, self.fx, self.stride[1], self.dilation[1], self.ox),
        ):
            expected = out_size(size, before + after, kernel, stride, dilation)
            if expected != out:
                raise self._error(
                    f"o{axis}={out}, but i{axis}={size}, pads {before}+{after}, kernel {kernel}, "
                    f"stride {stride}, dilation {dilation} give {expected}"
                )
        self._check_shape(self.output, (self.K, self.oy, self.ox))
        self._check_shape(self.inputs[0], (self.C, self.iy, self.ix))


def conv2d_layer(
    name: str,
    source: Tensor,
    output: str,
    weight: Array,
    bias: Array | None,
    *,
    stride: tuple[int, int] = (1, 1),
    pad: tuple[int, int, int, int] = (0, 0, 0, 0),
    requant: Requant,
    clip: tuple[int, int] = INT8,
    groups: int = 1,
) -> Convolution:
    """Return a convolution (weight ``[K, C / groups, fy, fx]``); the output's shape is derived."""
    _, iy, ix = source.shape
    k, _, fy, fx = weight.shape
    oy = out_size(iy, pad[0] + pad[2], fy, stride[0])
    ox = out_size(ix, pad[1] + pad[3], fx, stride[1])
    return Convolution(
        name=name, inputs=(source,), output=Tensor(output, (k, oy, ox)), weight=weight, bias=bias,
        stride=stride, pad=pad, groups=groups, requant=requant, clip=clip,
    )  # fmt: skip


def depthwise_layer(
    name: str,
    source: Tensor,
    output: str,
    weight: Array,
    bias: Array | None,
    *,
    stride: tuple[int, int] = (1, 1),
    pad: tuple[int, int, int, int] = (0, 0, 0, 0),
    requant: Requant,
    clip: tuple[int, int] = INT8,
) -> Convolution:
    """Return a depthwise convolution (weight ``[C, 1, fy, fx]``); the output's shape is derived."""
    return conv2d_layer(
        name, source, output, weight, bias, stride=stride, pad=pad, requant=requant, clip=clip,
        groups=source.shape[0],
    )  # fmt: skip


_HINT = "dense layers take and give vectors (C,)"


@dataclass(frozen=True, eq=False, kw_only=True)
class Dense(Weighted):
    """``clip(requant(weight x + bias))`` for a vector ``(C,)``; the weight is ``[K, C, 1, 1]``."""

    op: ClassVar[str] = "dense"

    @property
    def shape_text(self) -> str:
        """Input and output channels as text."""
        return f"C={self.C} -> K={self.K}"

    @property
    def sizes_text(self) -> str:
        """Input and output channels for tables."""
        return f"{self.C} -> {self.K}"

    def _check(self) -> None:
        self._check_weight()
        if self.weight.shape[2:] != (1, 1):
            raise self._error(f"a kernel of {self.weight.shape[2]}x{self.weight.shape[3]}")
        self._check_shape(self.output, (self.K,), _HINT)
        self._check_shape(self.inputs[0], (self.C,), _HINT)


def dense_layer(
    name: str,
    source: Tensor,
    output: str,
    weight: Array,
    bias: Array | None,
    *,
    requant: Requant,
    clip: tuple[int, int] = INT8,
) -> Dense:
    """A fully connected layer (weight ``[K, C]`` or ``[K, C, 1, 1]``) on a vector ``(C,)``."""
    k, channels = weight.shape[:2]
    return Dense(
        name=name, inputs=(source,), output=Tensor(output, (k,)),
        weight=weight.reshape(k, channels, 1, 1), bias=bias, requant=requant, clip=clip,
    )  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class Elementwise(Layer):
    """The base of layers that compute each element from those of several tensors at its place.

    Operands of different shapes are possible here; rules decide whether they are accepted.
    """

    @property
    def operands(self) -> int:
        """Number of operands."""
        return 2

    @property
    def of_vectors(self) -> bool:
        """Whether the operands are vectors ``(K,)``."""
        return len(self.output.shape) == 1

    @property
    def C(self) -> int:
        """Input channels, equal to the output's."""
        return self.K

    @property
    def iy(self) -> int:
        """Height of the operands, equal to the output's."""
        return self.oy

    @property
    def ix(self) -> int:
        """Width of the operands, equal to the output's."""
        return self.ox

    macs: ClassVar[int] = 0
    """Always 0: there are no multiplications."""

    @property
    def shape_text(self) -> str:
        """The output's shape as text."""
        return "x".join(str(size) for size in self.output.shape)

    @property
    def sizes_text(self) -> str:
        """The output's sizes for tables."""
        return f"{self.K}x{self.oy}x{self.ox}"

    def _check(self) -> None:
        pass


@dataclass(frozen=True, eq=False, kw_only=True)
class Add(Elementwise):
    """``clip(requant(a + b))``, or more operands, of maps, vectors or matrices."""

    op: ClassVar[str] = "add"

    @property
    def operands(self) -> int:
        """Number of operands: as many as there are inputs, at least two."""
        return max(2, len(self.inputs))


@dataclass(frozen=True, eq=False, kw_only=True)
class Difference(Elementwise):
    """``clip(requant(a - b))``, of maps, vectors or matrices."""

    op: ClassVar[str] = "subtract"


@dataclass(frozen=True, eq=False, kw_only=True)
class Product(Elementwise):
    """``clip(requant(a * b))``, of maps, vectors or matrices."""

    op: ClassVar[str] = "multiply"


def add_layer(
    name: str,
    a: Tensor,
    b: Tensor,
    output: str,
    *,
    requant: Requant,
    clip: tuple[int, int] = INT8,
) -> Add:
    """Return the element-wise sum of two tensors of the same shape."""
    return Add(name=name, inputs=(a, b), output=Tensor(output, a.shape), requant=requant, clip=clip)
