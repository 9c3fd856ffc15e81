"""The token loop: a step reads a token and the cache, and returns scores, new keys and values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from htvm.tools.language.interface import FIXED_INPUTS
from htvm.tools.language.sampling import Draws, pick

if TYPE_CHECKING:
    from byoc_dory.layers import Array
    from htvm.tools.language.model import LanguageModel

Step: TypeAlias = "Callable[[list[Array]], list[Array]]"
"""Inputs of a language model's network to its outputs."""


def tokens_of(
    language: LanguageModel,
    step: Step,
    prompt: Sequence[int],
    sharpness: int = 0,
    draws: Draws | None = None,
) -> Iterator[int]:
    """Yield the tokens after a prompt, without end; the cache is a window that starts empty.

    A token is read when the one after it is asked for.

    Args:
        language: the language model.
        step: computes its network.
        prompt: ids of the tokens to read first, all in the vocabulary.
        sharpness, draws: see `pick`.
    """
    sizes = language.interface
    caches: list[Array] = [np.zeros(shape, "int8") for shape in sizes.input_shapes[FIXED_INPUTS:]]
    position, to_read, draws = 0, list(prompt), draws or Draws(0)
    while True:
        scores: Array | None = None
        for token in to_read:
            x = language.embedding[token].reshape(1, 1, -1)
            rotation = language.rotations[position].reshape(1, 1, sizes.head, sizes.head)
            mask = language.mask(min(position, sizes.length))
            _, *new, scores = step([x, mask, rotation, *caches])
            caches = [
                np.concatenate([cache[:, :, 1:], own], axis=2)
                for cache, own in zip(caches, new, strict=True)
            ]
            position += 1
        assert scores is not None, "a prompt has a token"
        to_read = [pick(scores.reshape(-1), sharpness, draws)]
        yield to_read[0]
