"""The convolution with stride 1 that N-EUREKA executes for a layer, and its scales and biases.

Strides of 1x1 are strides of addresses.  Convolutions with other filters than the engine's, or 3x3
with a stride, are executed as 1x1 on windows: the cores copy each output's window, which is one
pixel with as many channels as the filter has weights.  With stride 2 and few channels this takes
longer than larger pixels:

- Blocks of 2x2 pixels are one with four times the channels.  The cores copy each pixel once.  This
  is for images: two neighbours have to be more than a word, and at most two.
- Pairs of neighbours are one with twice the channels, which takes no copies.  The filter covers the
  pairs before, at and after an output's.  This halves the columns; rows are all computed, and every
  other one is dropped when the result is stored.

Both have zeros where the layer has no weight.
Depthwise with stride 2, which has no sums over channels, computes all pixels; the cores copy those
that are kept.

The engine computes ``clip((sum * scale + bias) >> shift)`` in 32 bits, where public models of it
disagree beyond; without a bias, the product has 64 bits.  A layer's own bias becomes part of the
engine's: ``sum * mul + (bias * mul + add)``.  Bounds hold for all inputs of the layer's type.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from byoc_dory.layers import Array, Convolution, MulShift, Weighted
from byoc_dory.soc.base import round_up
from byoc_dory.soc.cluster.requant import mul_shift

_FILTERS = ((1, 1), (3, 3))  # the engine's own
# Most channels of which pairs are one tile of input channels: there the cores would take longer to
# copy windows.
_IN_PAIRS = 14
_WORD = 4  # bytes that the cores copy at a time
_BLOCK = 20  # SIRACUSA_NEUREKA_BLOCK: bytes from block to block


@dataclass(frozen=True, eq=False)
class View:
    """A convolution with stride 1.

    Attributes:
        channels: input channels.
        weight: int64 ``[K, channels, f, f]``, depthwise ``[C, 1, f, f]``.
        pixel, row: bytes from pixel to pixel of the input, and from row to row.
        left, right: columns of padding.
        columns: columns computed.
        row_step: rows computed for each row that is kept.
        column_step: columns computed for each column that is kept.
        windows: whether pixels are windows that the cores copy.
        blocks: whether they are blocks of 2x2 pixels that the cores copy; a tile has one row of
            these more than of outputs.
        top: rows of zeros above the blocks of a tile.
    """

    channels: int
    weight: Array
    pixel: int
    row: int
    left: int
    right: int
    columns: int
    row_step: int = 1
    column_step: int = 1
    windows: bool = False
    blocks: bool = False
    top: int = 0

    @property
    def copied(self) -> bool:
        """Whether the cores copy what the engine reads."""
        return self.windows or self.blocks


def keeps_some(layer: Weighted) -> bool:
    """Whether a depthwise layer computes pixels that are dropped."""
    depthwise = isinstance(layer, Convolution) and layer.depthwise
    return depthwise and layer.fy == 3 and layer.stride == (2, 2)


def in_blocks(layer: Weighted) -> bool:
    """Whether a layer is executed on blocks of 2x2 pixels."""
    return _is_3x3_by_2(layer) and _WORD < 2 * layer.C <= 2 * _WORD and max(layer.pad) <= 2


def in_pairs(layer: Weighted) -> bool:
    """Whether a layer is executed on pairs of pixels."""
    if not _is_3x3_by_2(layer) or in_blocks(layer) or layer.ix % 2:
        return False
    return layer.C <= _IN_PAIRS and layer.pad[1] <= 1 and max(layer.pad) <= 2


def _is_3x3_by_2(layer: Weighted) -> bool:
    full = isinstance(layer, Convolution) and layer.full
    return full and layer.fy == layer.fx == 3 and layer.stride == (2, 2)


def in_windows(layer: Weighted) -> bool:
    """Whether a layer is executed as 1x1 on windows."""
    if not isinstance(layer, Convolution) or not layer.full:
        return False
    if in_blocks(layer) or in_pairs(layer):
        return False
    own = (layer.fy, layer.fx) in _FILTERS
    return not own or (layer.fy == 3 and layer.stride != (1, 1))


@lru_cache(maxsize=256)  # called for every tile size that is considered
def view_of(layer: Weighted) -> View:
    """Return what the engine executes for a layer that the rules accept."""
    weight, row = layer.weight.astype(np.int64), layer.C * layer.ix
    if keeps_some(layer):
        left, columns = layer.pad[1], 2 * layer.ox - 1
        right = max(0, columns + 2 - left - layer.ix)
        return View(layer.C, weight, layer.C, row, left, right, columns, 2, 2)
    if in_windows(layer):
        line = layer.fx * layer.C
        # Rows are copied in whole words, the last one without reaching the next window.  The number
        # of words is odd, so that the cores do not write to the same bank at a time.
        words = -(-((layer.fy - 1) * line + round_up(line, _WORD)) // _WORD)
        pixel = (words | 1) * _WORD
        weight = weight.transpose(0, 2, 3, 1).reshape(layer.K, layer.fy * line, 1, 1)
        return View(layer.fy * line, weight, pixel, pixel * layer.ox, 0, 0, layer.ox, windows=True)
    if in_blocks(layer):
        return _blocks(layer, weight)
    if in_pairs(layer):
        return _pairs(layer, weight, row)
    sy, sx = layer.stride
    left, right = layer.pad[1], layer.pad[3]
    return View(layer.C, weight, layer.C * sx, row * sy, left, right, layer.ox)


def _blocks(layer: Weighted, weight: Array) -> View:
    """The filter covers the blocks before and at an output's, or, without padding, at and behind.

    Of a block's four words (``siracusa_neureka_windows.h``), bytes that are no pixels have zeros.
    """
    top, left = layer.pad[:2]
    blocked = np.zeros((layer.K, 4 * _WORD, 3, 3), np.int64)
    for y, x in np.ndindex(3, 3):
        (block_y, lower), (block_x, right) = divmod(y - top, 2), divmod(x - left, 2)
        channel = 2 * _WORD * lower + layer.C * right
        place = slice(channel, channel + layer.C)
        blocked[:, place, 1 + block_y, 1 + block_x] = weight[:, :, y, x]
    # Without padding, the last output's filter may reach one more block.
    columns = layer.ox if left else min(layer.ox + 1, -(-layer.ix // 2))
    return View(
        4 * _WORD, blocked, _BLOCK, _BLOCK * columns, 1, layer.ox + 1 - columns, layer.ox,
        blocks=True, top=int(not top),
    )  # fmt: skip


def _pairs(layer: Weighted, weight: Array, row: int) -> View:
    left, channels = layer.pad[1], layer.C
    paired = np.zeros((layer.K, 2 * channels, 3, 3), np.int64)
    for pair in (-1, 0, 1):
        for half in (0, 1):
            column = 2 * pair + half + left
            if 0 <= column < layer.fx:
                place = slice(half * channels, (half + 1) * channels)
                paired[:, place, :, pair + 1] = weight[:, :, :, column]
    right = layer.ox + 1 - layer.ix // 2
    return View(2 * channels, paired, 2 * channels, row, 1, right, layer.ox, row_step=2)


_INT32 = (-(2**31), 2**31 - 1)
_RANGES = {"int8": (-128, 127), "uint8": (0, 255)}


@dataclass(frozen=True, eq=False)
class Factors:
    """What the engine applies to the sums of each output channel.

    Attributes:
        scale, bias, shift: int64 ``[K]``; scales and biases fit 32 bits.
        signed: whether results are clipped to int8, else to uint8.
        relu: whether negative results become 0 after that, which the cores do.
    """

    scale: Array
    bias: Array
    shift: Array
    signed: bool
    relu: bool

    @property
    def scale_bytes(self) -> int:
        """Bytes of a scale in memory: 1 if all are unsigned bytes, else 4."""
        return 1 if 0 <= self.scale.min() and self.scale.max() <= 255 else 4

    @property
    def biased(self) -> bool:
        """Whether the engine adds biases; it then also takes negative scales."""
        return bool(self.bias.any() or (self.scale < 0).any())

    @property
    def shift_per_channel(self) -> bool:
        """Whether channels have different shifts."""
        return bool((self.shift != self.shift[0]).any())

    @property
    def bytes(self) -> int:
        """Bytes of a channel's scale, bias and shift in L1."""
        return self.scale_bytes + 4 * self.biased + self.shift_per_channel


@lru_cache(maxsize=256)  # called for every tile size that is considered
def factors_of(layer: Weighted) -> Factors | str:
    """Return the factors of a layer, or the reason why the engine cannot requantize it exactly."""
    requant = mul_shift(layer)
    if requant is None:
        return f"the requantization is {type(layer.requant).__name__}"
    bias = np.zeros(layer.K, np.int64) if layer.bias is None else layer.bias.astype(np.int64)
    scale, shift, add = (_channel_values(part, layer.K) for part in _parts(requant))
    low, high = _sums(layer)
    reason = _range_refusal("a sum", low, high)
    if reason is not None:
        return reason
    # Python's integers: products of a scale and a bias may exceed 64 bits.
    total = scale.astype(object) * bias.astype(object) + add
    reason = _range_refusal("a bias, times the scale, plus the addend,", total, total)
    if reason is not None:
        return reason
    bias = total.astype(np.int64)
    ends = np.sort(np.stack([low * scale, high * scale]), axis=0)
    if bias.any() or (scale < 0).any():
        reason = _range_refusal("a scaled sum", ends[0], ends[1]) or _range_refusal(
            "a scaled sum with its bias", ends[0] + bias, ends[1] + bias
        )
        if reason is not None:
            return reason
    least = int(((ends[0] + bias) >> shift).min())
    most = int(((ends[1] + bias) >> shift).max())
    clip = _clip(layer, least, most)
    if clip is None:
        return f"the clip range is [{layer.clip[0]}, {layer.clip[1]}] for {layer.output.dtype}"
    return Factors(scale, bias, shift, *clip)


def _parts(requant: MulShift) -> tuple[tuple[int, ...], ...]:
    return requant.mul, requant.shift, requant.add


def _channel_values(values: tuple[int, ...], count: int) -> Array:
    array = np.asarray(values, np.int64)
    return np.repeat(array, count) if array.size == 1 else array


def _sums(layer: Weighted) -> tuple[Array, Array]:
    """Return the least and the largest sum of each channel; padding has zeros, which are inputs."""
    low, high = _RANGES[layer.inputs[0].dtype]
    weights = layer.weight.astype(np.int64).reshape(layer.K, -1)
    positive, negative = weights.clip(min=0).sum(1), weights.clip(max=0).sum(1)
    return positive * low + negative * high, positive * high + negative * low


def _range_refusal(what: str, low: Array, high: Array) -> str | None:
    """Return the value that leaves 32 bits, as a reason; ``None`` if none does."""
    least, most = int(low.min()), int(high.max())
    worst = least if least < _INT32[0] else most
    return None if _INT32[0] <= least and most <= _INT32[1] else f"{what} may be {worst}"


def _clip(layer: Weighted, least: int, most: int) -> tuple[bool, bool] | None:
    """Return (signed, relu) for results between two numbers; ``None`` if no clip is the layer's."""
    low, high = layer.clip
    signed = layer.output.dtype == "int8"

    def clips_like(own_low: int, own_high: int) -> bool:
        return (low == own_low or max(low, own_low) <= least) and (
            high == own_high or min(high, own_high) >= most
        )

    if not signed:
        return (False, False) if clips_like(0, 255) else None
    if clips_like(-128, 127):
        return True, False
    if most <= 127 and clips_like(0, 255):
        return False, False
    # ReLU: to int8 first.
    return (True, True) if clips_like(0, 127) else None
