"""Windows of convolutions and pools: kernel, strides, padding, dilation, and output sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.operators import Pads, Pair
from patterns.ops.convolution import Window

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode

CHANNELS_LAST = "com.ms.internal.nhwc"
"""onnxruntime's domain of the standard's operators on maps (N, y, x, C)."""

ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
"""How a Resize chooses the nearest element."""

_INT32_MAX = 2**31 - 1


@dataclass(frozen=True)
class Windows:
    """Windows on maps.

    Attributes:
        kernel, strides, dilation: sizes (y, x).
        padding: sizes (top, left, bottom, right).
        outputs: number of windows, (y, x).
        sizes: size (y, x) of the input.
        ceiled: part of the padding at the bottom and at the right that rounding up has added.
        layout: layout of the maps, ``"NCHW"`` or ``"NHWC"``.
    """

    kernel: Pair
    strides: Pair
    padding: Pads
    dilation: Pair
    outputs: Pair
    sizes: Pair = (0, 0)
    ceiled: Pair = (0, 0)
    layout: str = "NCHW"

    def results(self, shape: Sequence[int], channels: int | None = None) -> tuple[int, ...]:
        """Return the shape that maps of a shape have behind the windows, and these channels."""
        last = self.layout == "NHWC"
        count = shape[3 if last else 1] if channels is None else channels
        maps = (*self.outputs, count) if last else (count, *self.outputs)
        return (shape[0], *maps)

    def check_padding(self, node: OnnxNode) -> None:
        """Check that every window of a pool reaches into the map.

        Raises:
            ModelError: a padding is as large as the kernel.
            UnsupportedError: a window holds nothing of the map, as dilation allows.
        """
        if any(pad >= self.kernel[at % 2] for at, pad in enumerate(self.padding)):
            raise node.damaged(
                f"a padding of {self.padding} around windows of {self.kernel}",
                "each side smaller than the kernel",
            )
        if not self.counts(padding=False).all():
            raise node.unsupported("a window that holds nothing but padding", "leave it out")

    def counts(self, padding: bool) -> Array:
        """Return how many elements each window averages, float64 [y, x].

        Args:
            padding: whether the padding counts; what rounding up adds behind it never does.
        """
        rows = []
        for axis in (0, 1):
            first = np.arange(self.outputs[axis]) * self.strides[axis] - self.padding[axis]
            reach = self.padding[axis + 2] - self.ceiled[axis]
            low, high = (
                (-self.padding[axis], self.sizes[axis] + reach)
                if padding
                else (0, self.sizes[axis])
            )
            taps = first[:, None] + np.arange(self.kernel[axis]) * self.dilation[axis]
            rows.append(((low <= taps) & (taps < high)).sum(axis=1).astype("float64"))
        return np.outer(rows[0], rows[1])

    def filter(self, groups: int = 1) -> Window:
        """Return the window of a filter over maps."""
        return Window(self.strides, self.padding, self.dilation, groups, self.layout)


def groups_of(node: OnnxNode, channels: int, weight: Sequence[int]) -> int:
    """Return the number of groups of a convolution with weights of shape (K, C / groups, ...).

    Raises:
        ModelError: the weights are for another number of channels, or do not divide into groups.
    """
    groups = node.integer("group", 1)
    if groups < 1 or channels != weight[1] * groups or weight[0] % groups:
        raise node.damaged(
            f"{channels} input channels in {groups} groups, and weights of shape {list(weight)}"
        )
    return groups


def check_storage_order(node: OnnxNode) -> None:
    """Check a MaxPool's attribute of how places of maxima count, which nothing here uses.

    Raises:
        ModelError: it is neither 0 (rows first) nor 1 (columns first).
    """
    order = node.integer("storage_order", 0)
    if order not in (0, 1):
        raise node.damaged(f"storage_order {order}", "0 or 1")


def sizes_of(node: OnnxNode, shape: Sequence[int]) -> Sequence[int]:
    """Return the sizes of the spatial axes of maps that a node reads."""
    return shape[1:-1] if node.domain == CHANNELS_LAST else shape[2:]


def windows_of(
    node: OnnxNode,
    sizes: Sequence[int],
    kernel: Sequence[int] | None = None,
    *,
    one_axis: bool = False,
) -> Windows:
    """Return the windows of a node on maps.

    Args:
        node: a node with the attributes of a convolution or pool.
        sizes: size (y, x) of the input.
        kernel: kernel size of the weights; ``None`` if only the attribute has it.
        one_axis: whether maps may have one axis; their height is then 1.

    Raises:
        UnsupportedError: the maps do not have two axes, or the sizes are to be rounded up.
        ModelError: attributes contradict each other or the shapes.
    """
    count = len(sizes)
    if count != 2 and not (one_axis and count == 1):
        raise node.unsupported(
            f"windows on maps of {count} axes",
            "two are supported; give a one-dimensional map a height of 1",
        )
    kernel_shape = node.integers("kernel_shape", tuple(kernel) if kernel is not None else None)
    if kernel is not None and tuple(kernel) != kernel_shape:
        raise node.damaged(f"kernel_shape {kernel_shape}, but weights of {tuple(kernel)}")
    ones = (1,) * count
    strides = _pair(node, "strides", node.integers("strides", ones), count)
    dilation = _pair(node, "dilations", node.integers("dilations", ones), count)
    window = _pair(node, "kernel_shape", kernel_shape, count)
    maps = (1, *sizes)[-2:]
    padding = _padding(node, maps, window, strides, dilation, count)
    padded = [maps[axis] + padding[axis] + padding[axis + 2] for axis in (0, 1)]
    if padded[0] * padded[1] > _INT32_MAX:
        raise node.unsupported(f"padded maps of {tuple(padded)}", f"at most {_INT32_MAX} elements")
    rounds_up = node.integer("ceil_mode", 0)
    if rounds_up not in (0, 1):
        raise node.damaged(f"attribute 'ceil_mode' is {rounds_up}", "0 or 1")
    outputs, added = [], []
    for axis in (0, 1):
        span = padded[axis] - (dilation[axis] * (window[axis] - 1) + 1)
        if span < 0:
            raise node.damaged(f"a kernel of {window} on maps of {tuple(sizes)}")
        count = span // strides[axis] + 1
        # A last window that starts in the padding at the end does not count.
        begins = count * strides[axis] - padding[axis] < maps[axis]
        count += rounds_up and span % strides[axis] > 0 and begins
        outputs.append(count)
        added.append(max((count - 1) * strides[axis] - span, 0))
    top, left, bottom, right = padding
    return Windows(
        window,
        strides,
        (top, left, bottom + added[0], right + added[1]),
        dilation,
        (outputs[0], outputs[1]),
        (maps[0], maps[1]),
        (added[0], added[1]),
        "NHWC" if node.domain == CHANNELS_LAST else "NCHW",
    )


def _pair(node: OnnxNode, name: str, values: tuple[int, ...], count: int) -> Pair:
    if len(values) != count or min(values) < 1 or max(values) > _INT32_MAX:
        number = {1: "one positive integer", 2: "two positive integers"}[count]
        raise node.damaged(f"attribute '{name}' is {values}", f"{number} of 32 bits")
    return (values[0] if count == 2 else 1), values[-1]


def _padding(
    node: OnnxNode, sizes: Sequence[int], kernel: Pair, strides: Pair, dilation: Pair, count: int
) -> Pads:
    mode = node.text("auto_pad", "NOTSET")
    if mode == "VALID":
        return (0, 0, 0, 0)
    if mode == "NOTSET":
        pads = node.integers("pads", (0,) * (2 * count))
        if len(pads) != 2 * count or min(pads) < 0:
            number = {1: "two", 2: "four"}[count]
            raise node.damaged(f"attribute 'pads' is {pads}", f"{number} integers from 0 on")
        return pads if len(pads) == 4 else (0, pads[0], 0, pads[1])
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise node.unsupported(f"auto_pad '{mode}'", "NOTSET, VALID, SAME_UPPER or SAME_LOWER")
    if dilation != (1, 1) and node.op.endswith("Pool"):
        # onnxruntime pads as without dilation, and the outputs are not those of the standard.
        raise node.unsupported(f"auto_pad '{mode}' of a pool with dilations", "give pads")
    before, after = [], []
    for axis in (0, 1):
        outputs = -(-sizes[axis] // strides[axis])
        span = (outputs - 1) * strides[axis] + dilation[axis] * (kernel[axis] - 1) + 1
        total = span - sizes[axis]
        if total < 0 and node.op.endswith("Pool"):
            # The standard's formula is negative here; runtimes refuse it, or clamp it.
            raise node.unsupported(
                f"auto_pad '{mode}' of strides {strides} beyond the kernel {kernel}", "give pads"
            )
        total = max(total, 0)
        small, large = total // 2, total - total // 2
        before.append(small if mode == "SAME_UPPER" else large)
        after.append(large if mode == "SAME_UPPER" else small)
    return (before[0], before[1], after[0], after[1])
