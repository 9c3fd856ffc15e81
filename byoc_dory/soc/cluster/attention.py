"""Attention on the cores: constants, arguments and work of its kernel.

``runtime_c/cluster/simd/attention.c`` computes a query of a head on one core: heads and queries are
shared among the cores.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from byoc_dory.layers import Array, CachedAttention, MulShift
from byoc_dory.soc.cluster.work import Work
from byoc_dory.tileloop.axes import TileAxis
from byoc_dory.tileloop.values import Entry, Own, Place

_INT32_MAX = 2**31 - 1
_WEIGHTS = Place("weights")
_AFTER = 1536  # bytes of the tables before the weights'
_EXPONENTIALS = _AFTER + 256


def attention_obstacle(layer: CachedAttention) -> str:
    """Return what the kernel cannot compute, in words; empty if there is nothing."""
    mul, add, shift = layer.weighing.scores
    largest = layer.C * 128 * 128 * abs(mul) + abs(add)
    softmax = layer.weighing.softmax
    exponentials = softmax.exponentials
    if layer.C % 4:
        return f"heads have {layer.C} elements, no multiple of 4"
    if largest > _INT32_MAX or not 0 <= shift <= 31:
        return f"scores of up to {largest}, shifted by {shift}, leave 32 bits"
    if max(exponentials) * layer.positions * (softmax.levels - 1) > 2 * _INT32_MAX + 1:
        return f"{layer.positions} exponentials of up to {max(exponentials)} leave 32 bits"
    if layer.positions * 128 * 128 > _INT32_MAX:
        return f"sums of {layer.positions} values leave 32 bits"
    return ""


@lru_cache(maxsize=64)  # read for every tile that is considered
def attention_constants(layer: CachedAttention) -> Array:
    """Return the kernel's tables, as in ``cluster_attention_t``; uint8."""
    how = layer.weighing
    scores = np.clip(np.arange(-128, 128), *how.scores_clip)
    before = _signed(how.before.table)[scores + 128]
    mask = _signed(how.mask.table)
    mul, add, shift = how.masked
    sums = (np.arange(-256, 256, dtype=np.int64) * mul + add) >> shift
    sums = np.clip(sums, *how.masked_clip)
    open_, shut = (sums[before + int(mask[at]) + 256] for at in (128, 0))
    tables = (open_, shut, before, mask, sums, how.after.table.view(np.int8))
    parts = [np.asarray(each).astype(np.int8).view(np.uint8) for each in tables]
    parts.append(np.asarray(how.softmax.exponentials, "<u4").view(np.uint8))
    return np.concatenate(parts)


def _signed(table: Array) -> Array:
    """Return a table of bytes by the values -128 to 127 of its argument, with signed entries."""
    return np.roll(table.view(np.int8), 128).astype(np.int64)


def attention_fields(layer: CachedAttention, y: TileAxis) -> dict[str, Entry]:
    """Return the fields of ``cluster_attention_t`` for a tile, a range of heads."""
    first, rows = y.out_start, layer.queries * layer.C
    mul, add, shift = layer.weighing.scores
    requant, exponentials = layer.requant, layer.weighing.softmax.exponentials
    assert isinstance(requant, MulShift)
    apart: dict[str, Entry] = {}
    if layer.apart:
        apart = {each: Place(each) + first * layer.C for each in ("key", "value")}
    return {
        "keys": Place("keys"),
        "values": Place("values"),
        "query": Place("query") + first * rows,
        "mask": Place("mask"),
        **apart,
        "out": Place("out"),
        "tables": _WEIGHTS,
        "after": _WEIGHTS + _AFTER,
        "exponentials": _WEIGHTS + _EXPONENTIALS,
        "distances": int(np.flatnonzero(exponentials)[-1]) + 1,
        "rise": _rise(exponentials),
        "heads": y.out_size,
        "queries": layer.queries,
        "cached": layer.cached,
        "size": layer.C,
        "masks": layer.masks,
        "levels": layer.weighing.softmax.levels,
        "mul": Own("scores_mul", mul),
        "add": Own("scores_add", add),
        "shift": Own("scores_shift", shift),
        "requant.mul": Own("mul", requant.mul[0]),
        "requant.add": Own("add", requant.add[0]),
        "requant.shift": Own("shift", requant.shift[0]),
        "requant.low": layer.clip[0],
        "requant.high": layer.clip[1],
    }


@lru_cache(maxsize=64)
def _rise(exponentials: tuple[int, ...]) -> int:
    """Return the left shift of an exponential that none behind it exceeds, 31 if there is none."""
    values = np.asarray(exponentials, np.int64)
    behind = np.maximum.accumulate(values[::-1])[::-1]  # the largest from each on
    return next((n for n in range(31) if (behind[1:] <= values[:-1] << n).all()), 31)


def attention_work(layer: CachedAttention, heads: int, cores: int) -> tuple[Work, ...]:
    """Return the work of the core with the most queries."""
    rows = -(-heads * layer.queries // cores)
    words = layer.C // 4
    at = rows * layer.positions
    return ({"call": 1, "row": rows, "position": at, "word": at * words},)
