"""Helper: the loop of a language model over its decoding step, in plain Python.

An independent definition that shares no code with the product: caches are histories of which the
last positions are taken, weights and random numbers are Python's whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, getcontext
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Step: TypeAlias = Callable[[list[Array]], Sequence[Array]]


def rope(position: int, head: int) -> Array:
    """The rotation of a position by its definition: (x_i, x_j) as a complex number times e^ia."""
    matrix = np.zeros((head, head), "int8")
    for i in range(head // 2):
        turn = complex(math.cos(position / 10000 ** (2 * i / head)), 0)
        turn += 1j * math.sin(position / 10000 ** (2 * i / head))
        for basis, (real, imaginary) in ((1, (i, i + head // 2)), (1j, (i, i + head // 2))):
            # The product of a unit row vector is a row of the matrix.
            row = real if basis == 1 else imaginary
            product = basis * turn
            matrix[row, real] = math.trunc(127 * product.real)
            matrix[row, imaginary] = math.trunc(127 * product.imag)
    return matrix


def splitmix(seed: int) -> Iterator[int]:
    """The upper halves of SplitMix64's numbers."""
    with np.errstate(over="ignore"):
        for count in range(1, 1 << 32):
            z = np.uint64(seed) + np.uint64(count) * np.uint64(0x9E3779B97F4A7C15)
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            yield int(z ^ (z >> np.uint64(31))) >> 32


def halvings() -> list[int]:
    """65536 * 2 ** (-i / 16) for i = 0 to 16, to the nearest, in 60 digits."""
    getcontext().prec = 60
    return [int((65536 * Decimal(2) ** (Decimal(-i) / 16)).to_integral_value()) for i in range(17)]


def weight(distance: int, sharpness: int) -> int:
    """The weight of a score so far below the highest."""
    table = halvings()
    exponent = distance * sharpness
    whole, rest = divmod(exponent, 1 << 16)
    at, fraction = divmod(rest, 1 << 12)
    value = table[at] - (table[at] - table[at + 1]) * fraction // (1 << 12)
    return value // 2**whole if whole < 40 else 0


def draw(scores: Sequence[int], sharpness: int, number: int) -> int:
    """The token whose range of weights holds the number's share of all weights."""
    found = [weight(max(scores) - score, sharpness) for score in scores]
    left = number * sum(found) // 2**32
    for token, own in enumerate(found):
        if left < own:
            return token
        left -= own
    raise AssertionError("a share of the whole is below the whole")


def written(
    step: Step,
    embedding: Array,
    output: Array,
    prompt: Sequence[int],
    steps: int,
    *,
    caches: Sequence[tuple[int, ...]],
    sharpness: int = 0,
    seed: int = 0,
) -> list[int]:
    """The tokens that a language model writes.

    Args:
        step: the decoding step: inputs to outputs.
        embedding, output: rows of the tokens.
        prompt, steps: tokens to read first, and number of tokens to write.
        caches: shapes of the caches, [1, heads, length, head].
        sharpness: 0: the highest score; else that of the draws.
        seed: of the draws.
    """
    length, head = caches[0][2:]
    history: list[list[Array]] = [[] for _ in caches]
    numbers, tokens = splitmix(seed), list(prompt)
    for position in range(len(prompt) + steps - 1):
        known = min(position, length)
        mask = np.array([-128] * (length - known) + [0] * (known + 1), "int8")
        inputs = [embedding[tokens[position]][None, None], mask, rope(position, head)[None, None]]
        for shape, past in zip(caches, history, strict=True):
            cache = np.zeros(shape, "int8")
            for place in range(known):
                cache[:, :, length - 1 - place] = past[-1 - place]
            inputs.append(cache)
        hidden, *longer = step(inputs)
        for past, returned in zip(history, longer, strict=True):
            past.append(returned[:, :, length].copy())
        if position + 1 < len(tokens):
            continue
        scores = [
            sum(int(a) * int(b) for a, b in zip(row, hidden.flat, strict=True)) for row in output
        ]
        if sharpness == 0:
            tokens.append(scores.index(max(scores)))
        else:
            tokens.append(draw(scores, sharpness, next(numbers)))
    return tokens[len(prompt) :]
