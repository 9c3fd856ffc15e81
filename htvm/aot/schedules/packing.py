"""Layouts of constant weights, as the intrinsics of a core read them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt
    from tvm import s_tir


@dataclass(frozen=True)
class WeightWords:
    """Weights (fy, run, K) packed as [K / channels][fy][run / width][channels][width].

    The run has the elements of a filter's row, (fx, C), or of a row of a matrix, where fy is 1.

    Attributes:
        parameter: the PrimFunc's parameter with the weights.
        channels: output channels whose words are interleaved.
        width: elements of a word.
        whole: whether the run has all of a filter's elements, then zeros up to whole words; there
            is no axis fy.
        places: where the run has its elements, zeros between them; empty: side by side.
        lifted: whether 128 is added to all of them, which are then unsigned bytes.
        first: whether the weights come as (K, C, fy, fx).
        paired: whether a word has two elements of two channels, as 256 times the second's plus the
            first's, those with even numbers before the odd ones; of weights that `suit_pairs`.
        last: output channels whose words are interleaved behind the others, in this number, one or
            two times if needed, so that none is left; 0: the channels are a multiple.
    """

    parameter: int
    channels: int
    width: int = 4
    whole: bool = False
    places: tuple[int, ...] = ()
    lifted: bool = False
    first: bool = False
    paired: bool = False
    last: int = 0

    def apply(self, weight: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the packed weights."""
        weight = weight.transpose(2, 3, 1, 0) if self.first else weight
        if self.last:
            k = weight.shape[-1]
            count = next(
                n for n in range(self.channels) if (k - n * self.last) % self.channels == 0
            )
            split = k - count * self.last
            rest = replace(self, channels=self.last, first=False, last=0)
            parts = [rest.apply(weight[..., split:])]
            if split:
                parts.insert(0, replace(rest, channels=self.channels).apply(weight[..., :split]))
            return np.concatenate([part.reshape(-1) for part in parts])
        fy = 1 if self.whole or weight.ndim == 2 else weight.shape[0]
        k = weight.shape[-1]
        runs = weight.reshape(fy, -1, k)
        if self.places:
            spread = np.zeros((fy, max(self.places) + 1, k), runs.dtype)
            spread[:, self.places] = runs
            runs = spread
        filled = np.pad(runs, ((0, 0), (0, -runs.shape[1] % self.width), (0, 0)))
        split = filled.reshape(fy, -1, self.width, k // self.channels, self.channels)
        packed = np.asarray(split.transpose(3, 0, 1, 4, 2), order="C")
        packed = _in_pairs(packed) if self.paired else packed
        packed = packed[:, 0] if self.whole else packed
        return packed ^ np.int8(-128) if self.lifted else packed


def _in_pairs(words: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return words [..., channels, 4] as [..., 2 (even, odd), channels / 2, 4]."""
    *outer, channels, width = words.shape
    split = words.reshape(*outer, channels // 2, 2, width // 2, 2)
    low, high = split[..., 0, :, :], split[..., 1, :, :]
    pairs = np.stack([low, high - (low < 0)], axis=-1)  # [..., pair, j, even or odd, channel]
    pairs = np.moveaxis(pairs, -2, -4)
    return np.asarray(pairs.reshape(*outer, channels, width), dtype="int8", order="C")


def suit_pairs(weights: npt.NDArray[Any]) -> bool:
    """Whether words may have weights (..., K) of two channels each.

    Halfwords must hold 256 times one plus another, and 24 bits each channel's sum of products with
    int8, whatever these are.
    """
    if weights.dtype != np.int8 or weights.ndim == 0 or weights.min(initial=0) < -127:
        return False
    total = np.abs(weights.astype(np.int64)).reshape(-1, weights.shape[-1]).sum(axis=0)
    return bool(128 * total.max(initial=0) < 1 << 23)


def are_small(values: npt.NDArray[Any]) -> bool:
    """Whether sums that begin with such biases may be doubled, and nine bits be moved to the left
    by two less than such shifts."""
    most = 24 if values.dtype == np.uint8 else (1 << 29) - 1
    return int(np.abs(values.astype(np.int64)).max(initial=0)) <= most


@dataclass(frozen=True)
class WeightTaps:
    """Depthwise weights (fy, fx, C) packed as [C / group][fy * fx][group].

    Attributes:
        parameter: the PrimFunc's parameter with the weights.
        group: channels that are side by side.
    """

    parameter: int
    group: int

    def apply(self, weight: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the packed weights."""
        taps = weight.shape[0] * weight.shape[1]
        split = weight.reshape(taps, -1, self.group)
        return np.asarray(split.transpose(1, 0, 2), order="C")


@dataclass(frozen=True)
class WeightColumns:
    """Depthwise weights (fy, fx, C) packed as [C][fx][fy, then zeros up to 4], and a word of zeros.

    Attributes:
        parameter: the PrimFunc's parameter with the weights.
    """

    parameter: int

    def apply(self, weight: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the packed weights."""
        rows, columns = weight.shape[:2]
        split = weight.reshape(rows, columns, -1).transpose(2, 1, 0)
        words = np.pad(split, ((0, 0), (0, 0), (0, 4 - rows))).ravel()
        return np.pad(words, (0, 4))


Packing: TypeAlias = WeightWords | WeightTaps | WeightColumns


def packed_words(
    sch: s_tir.Schedule, block: Any, parameter: int, kt: int, width: int
) -> WeightWords:
    """Pack the weights (..., C, K) of a product, which are a parameter's, in words."""
    weight = sch.get(block).reads[1].source
    channels = kt if int(weight.ty.shape[-1]) % kt == 0 else 1

    size = int(weight.ty.shape[-2])

    def packed(*index: Any) -> Any:
        *taps, c, k = index
        run = taps.pop() * size + c if taps else c
        return (k // channels, *taps, run // width, k % channels, run % width)

    sch.transform_layout(block, ("read", 1), packed)
    return WeightWords(parameter, channels, width)
