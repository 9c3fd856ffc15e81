"""What the integer transformer accelerator computes, in numpy.

An independent definition: it shares no code with the product, neither the device model nor the
driver.  Everything is exact: integers in int64, and where the accelerator has fewer bits, the code
says so.

Sources: ITA (Islamoglu et al., ISLPED 2023) and its public golden model; I-BERT (Kim et al., ICML
2021) for the polynomial behind GELU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Activation = Literal["identity", "relu", "gelu"]

ACCUMULATOR_BITS = 26
GROUP = 16


@dataclass(frozen=True)
class Requant:
    """clip(floor(x * mult / 2**shift + 1/2) + add) to int8; mult 0..255, add int8.

    With shift 0 there is nothing to round.
    """

    mult: int
    shift: int
    add: int = 0


@dataclass(frozen=True)
class Gelu:
    """Constants of the polynomial, int16, and what brings its result back to int8."""

    b: int
    c: int
    requant: Requant


def wrap(x: Array, bits: int = ACCUMULATOR_BITS) -> Array:
    """The signed number of so many bits that is congruent to ``x``."""
    half = 1 << (bits - 1)
    return (np.asarray(x, np.int64) + half) % (2 * half) - half


def requantize(x: Array, r: Requant) -> Array:
    """int8 of sums of any size."""
    scaled = np.asarray(x, np.int64) * r.mult
    # floor(p / 2**s + 1/2) = floor((2 p + 2**s) / 2**(s + 1))
    rounded = np.floor_divide(2 * scaled + (1 << r.shift), 2 << r.shift) if r.shift else scaled
    return np.clip(rounded + r.add, -128, 127).astype(np.int8)


def product(left: Array, right: Array, bias: Array | None = None) -> Array:
    """Sums of [rows, inner] times [cols, inner] transposed, plus what broadcasts to them."""
    sums = np.asarray(left, np.int64) @ np.asarray(right, np.int64).T
    if bias is not None:
        assert (np.abs(np.asarray(bias, np.int64) + 0.5) < 1 << 23).all()
        sums = sums + np.asarray(bias, np.int64)
    return wrap(sums)


def gelu_constants(scale: float) -> tuple[int, int]:
    """b and c for inputs of this scale, clipped to int16."""
    b = math.floor(-1.769 * math.sqrt(2.0) / scale + 0.5)
    c = math.floor(-2.0 / (0.2888 * scale * scale) + 0.5)
    return max(b, -(1 << 15)), max(c, -(1 << 15))


def gelu_sums(x: Array, b: int, c: int) -> Array:
    """Of int8 ``x``, x * (erf + c) with erf = sign(x) ((min(|x|, -b) + b)**2 + c), in 26 bits.

    About -2 / (0.2888 S**3) times GELU of x * S, so negative where GELU is positive.
    """
    x = np.maximum(np.asarray(x, np.int64), -127)
    erf = np.sign(x) * ((np.minimum(np.abs(x), -b) + b) ** 2 + c)
    return wrap(x * (erf + c))


def activate(
    x: Array, activation: Activation, requant: Requant | None = None, gelu: Gelu | None = None
) -> Array:
    """int8 to int8."""
    if activation == "identity":
        return x
    if activation == "relu":
        assert requant is not None
        return requantize(np.maximum(x, 0), requant)
    assert gelu is not None
    return requantize(gelu_sums(x, gelu.b, gelu.c), gelu.requant)


def halvings(distance: Array, shift: int) -> Array:
    """R(d): how often an element this far below the maximum is halved.

    floor(d / 2**shift + 1/2), and d itself for shift 0.
    """
    d = np.asarray(distance, np.int64)
    return d if shift == 0 else np.floor_divide(2 * d + (1 << shift), 2 << shift)


def _halved(value: Array, times: Array) -> Array:
    """floor(value / 2**times)."""
    return np.floor_divide(value, np.int64(1) << np.minimum(times, 40))


def softmax_statistics(scores: Array, shift: int = 5) -> tuple[Array, Array]:
    """Maximum and sum of each row of [rows, length] int8 scores, columns in groups of 16."""
    scores = np.asarray(scores, np.int64)
    highest = np.full(len(scores), -128, np.int64)
    total = np.zeros(len(scores), np.int64)
    for first in range(0, scores.shape[1], GROUP):
        group = scores[:, first : first + GROUP]
        now = np.maximum(highest, group.max(axis=1))
        parts = _halved(np.int64(256), halvings(now[:, None] - group, shift))
        total = _halved(total, halvings(now - highest, shift)) + parts.sum(axis=1)
        highest = now
    return highest, total


def softmax(scores: Array, length: int | None = None, shift: int = 5) -> Array:
    """Unsigned weights 0..255 of [rows, cols] scores, 0 from column ``length`` on."""
    scores = np.asarray(scores, np.int64)
    length = scores.shape[1] if length is None else length
    highest, total = softmax_statistics(scores[:, :length], shift)
    weights = np.zeros(scores.shape, np.int64)
    weights[:, :length] = _halved(
        (65280 // total)[:, None], halvings(highest[:, None] - scores[:, :length], shift)
    )
    assert (weights < 256).all()
    return weights


@dataclass(frozen=True)
class Head:
    """Weights of one head, [out, in] int8, biases [out], requantizations.

    Attributes:
        wq, wk, wv: [proj, embed].
        wo: [embed, proj].
    """

    wq: Array
    wk: Array
    wv: Array
    wo: Array
    bq: Array
    bk: Array
    bv: Array
    bo: Array
    q: Requant
    k: Requant
    v: Requant
    qk: Requant
    av: Requant
    o: Requant


@dataclass(frozen=True)
class HeadRun:
    """Every tensor of one head, int8: ``vt`` is [proj, seq], ``scores`` [seq, seq]."""

    q: Array
    k: Array
    vt: Array
    scores: Array
    context: Array
    out: Array


def run_head(x: Array, head: Head, length: int | None = None, shift: int = 5) -> HeadRun:
    """One head on [seq, embed] int8; keys from row ``length`` on are padding."""
    q = requantize(product(x, head.wq, head.bq), head.q)
    k = requantize(product(x, head.wk, head.bk), head.k)
    vt = requantize(product(head.wv, x, np.asarray(head.bv)[:, None]), head.v)
    scores = requantize(product(q, k), head.qk)
    context = requantize(product(softmax(scores, length, shift), vt), head.av)
    out = requantize(product(context, head.wo, head.bo), head.o)
    return HeadRun(q, k, vt, scores, context, out)


def multi_head_attention(
    x: Array,
    heads: Sequence[Head],
    requant: Requant,
    length: int | None = None,
    shift: int = 5,
) -> Array:
    """[seq, embed] int8: the heads' outputs, int8 each, summed by the cores and requantized."""
    parts = [run_head(x, head, length, shift).out.astype(np.int64) for head in heads]
    return requantize(np.sum(parts, axis=0), requant)
