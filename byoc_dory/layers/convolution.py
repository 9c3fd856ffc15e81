"""`Convolution`: two-dimensional, over all channels, in groups, or depthwise."""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.layers.layer import INT8, Requant, Tensor, out_size
from byoc_dory.layers.tensor import Array
from byoc_dory.layers.weighted import Weighted


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
