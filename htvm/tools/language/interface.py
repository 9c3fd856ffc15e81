"""The interface of a decoding step: hidden state, mask, rotation and cache; and rotations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import ModelError

if TYPE_CHECKING:
    from byoc_dory.layers import Array
    from htvm.model import TensorInfo


_BASE = 10000.0
_ONE = 127


def rotations(positions: int, head: int) -> Array:
    """Return the rotation of each position, int8 [positions, head, head].

    A row vector is multiplied from the left.  Its elements i and i + head / 2 are a pair, which is
    rotated by ``position / 10000 ** (2 * i / head)``; 127 represents 1.0, and products are rounded
    toward zero, as in the development set's files.

    Raises:
        ModelError: there is no position, or ``head`` is not even.
    """
    if positions < 1 or head < 2 or head % 2:
        raise ModelError(
            f"no rotations for {positions} positions and heads of {head}",
            where="htvm.language.rotations",
            hint="at least one position, and an even number of elements",
        )
    half = head // 2
    table = np.zeros((positions, head, head), "int8")
    for position in range(positions):
        for i in range(half):
            angle = position * _BASE ** (-2 * i / head)
            cosine, sine = int(_ONE * math.cos(angle)), int(_ONE * math.sin(angle))
            table[position, i, i] = table[position, i + half, i + half] = cosine
            table[position, i, i + half] = sine
            table[position, i + half, i] = -sine
    return table


FIXED_INPUTS = 3
"""Inputs before the caches: hidden state, mask and rotation."""


@dataclass(frozen=True)
class StepInterface:
    """Sizes of a decoding step, a network that reads one token and a cache of earlier ones.

    All tensors are int8.  Inputs, in this order: the hidden state [1, 1, width]; a mask [length +
    1] that is added to the scores of each position; the rotation of the token's position [1, 1,
    head, head]; and for each layer a cache of keys and one of values, [1, heads, length, head].
    Outputs: the hidden state, and the caches with the token as their last position, [1, heads,
    length + 1, head]; or, of a step whose caches stay in place, the token's keys and values alone,
    [1, heads, 1, head].

    Attributes:
        width: elements of the hidden state.
        length: positions of a cache, L.
        heads: number of attention heads.
        head: elements of a head's key, query or value.
        caches: number of caches, two for each layer.
        in_place: whether only the token's keys and values are returned.
    """

    width: int
    length: int
    heads: int
    head: int
    caches: int
    in_place: bool = False

    @classmethod
    def of(
        cls,
        inputs: Sequence[TensorInfo],
        outputs: Sequence[TensorInfo],
        where: str,
        *,
        in_place: bool = False,
    ) -> StepInterface:
        """Return the sizes of a decoding step.

        Args:
            inputs, outputs: the interface of a network.
            where: what the network is called, for messages.
            in_place: whether it returns the token's keys and values alone.

        Raises:
            ModelError: the network is no decoding step; the message names the first tensor that
                does not fit.
        """
        if len(inputs) <= FIXED_INPUTS:
            raise _refused(
                f"{len(inputs)} inputs: it is no decoding step, it has no caches of keys and "
                "values",
                where,
            )
        hidden, cache = inputs[0], inputs[FIXED_INPUTS]
        if len(hidden.shape) != 3 or len(cache.shape) != 4:
            raise _refused(
                f"the inputs '{hidden.name}' {list(hidden.shape)} and '{cache.name}' "
                f"{list(cache.shape)} are no hidden state and no cache",
                where,
            )
        width = hidden.shape[-1]
        heads, length, head = cache.shape[1:]
        sizes = cls(width, length, heads, head, len(inputs) - FIXED_INPUTS, in_place)
        sizes._check("input", inputs, sizes.input_shapes, where)
        sizes._check("output", outputs, sizes.output_shapes, where)
        return sizes

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the inputs, in order."""
        cache = (1, self.heads, self.length, self.head)
        own = (1, 1, self.width), (self.length + 1,), (1, 1, self.head, self.head)
        return own + (cache,) * self.caches

    @property
    def output_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the outputs, in order."""
        cache = (1, self.heads, 1 if self.in_place else self.length + 1, self.head)
        return ((1, 1, self.width), *(cache,) * self.caches)

    def _check(
        self,
        what: str,
        infos: Sequence[TensorInfo],
        shapes: Sequence[tuple[int, ...]],
        where: str,
    ) -> None:
        if len(infos) != len(shapes) or self.caches % 2:
            raise _refused(
                f"{len(infos)} {what}s with {self.caches} caches: there are two caches for each "
                "layer, and each is an input and an output",
                where,
            )
        for info, shape in zip(infos, shapes, strict=True):
            if tuple(info.shape) != shape or info.dtype != "int8":
                raise _refused(
                    f"the {what} '{info.name}' is {info.dtype}{list(info.shape)}, a decoding step "
                    f"with a cache of {self.length} positions has int8{list(shape)} there",
                    where,
                )


def _refused(what: str, where: str) -> ModelError:
    return ModelError(
        what,
        where=where,
        hint="a decoding step takes hidden state, mask, rotation, and caches of keys and values",
    )
