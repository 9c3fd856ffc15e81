"""A small language model of LLaMA's kind with seeded weights: microLlama's shape and operators.

Eight layers of width 64, with 16 heads of 4 elements and 256 inside of the feed-forward network:
524,288 weights.  `microllama` is a decoding step with a cache, and tables for tokens;
`microllama_prompt` reads several tokens at once and returns their caches.  Both have the same
weights and scales whatever the sizes of cache and prompt, and the softmax halves every 8 steps
while masked positions are at least 64 steps below the others: they have weight 0, so that both
forms compute the same, and a longer cache changes nothing while the tokens fit a shorter one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from htvm.tools.language.model import POSITIONS, VOCABULARY, LanguageModel
from htvm.tools.zoo.schemes import check_number

if TYPE_CHECKING:
    from htvm.model import Model

LAYERS = 8
LENGTH = 64
"""Positions of the cache of ``zoo:microllama``."""
PROMPT = 16
"""Tokens of ``zoo:microllama:prompt``."""


def microllama(
    length: int = LENGTH,
    *,
    layers: int = LAYERS,
    vocabulary: int = VOCABULARY,
    positions: int = POSITIONS,
    seed: int = 0,
) -> LanguageModel:
    """Return a language model whose decoding step has a cache of ``length`` positions.

    It returns the token's keys and values only; its attribute `step` has a step that returns whole
    caches, like the published files.

    Args:
        length: positions of the cache; ``zoo:microllama:256`` has 256.
        layers: number of layers, 8 as in microLlama.  Models that differ only in this have the
            same first layers.
        vocabulary: number of tokens.
        positions: how many tokens can be read.
        seed: seed of the weights.

    Raises:
        ModelError: a size is not positive, or the seed is negative.
    """
    _check(seed, length=length, layers=layers, vocabulary=vocabulary, positions=positions)
    from htvm.tools.zoo.llama_drawing import step_model

    step = step_model(f"microllama_{length}", length, layers, seed)
    return LanguageModel.of(step, vocabulary=vocabulary, positions=positions, seed=seed)


def microllama_prompt(tokens: int = PROMPT, *, layers: int = LAYERS, seed: int = 0) -> Model:
    """Return the same network for a prompt: all its tokens at once, without a cache.

    All tensors are int8.  Inputs: hidden states [1, tokens, 64]; a mask, [1, tokens, tokens] or
    [1] for one token; the rotations of the positions [1, tokens, 4, 4].  Outputs: hidden states,
    and for each layer the keys and values [1, 16, tokens, 4].

    Args:
        tokens: number of tokens; ``zoo:microllama:prompt4`` reads 4.
        layers, seed: as for `microllama`.

    Raises:
        ModelError: a size is not positive, or the seed is negative.
    """
    _check(seed, tokens=tokens, layers=layers)
    from htvm.tools.zoo.llama_drawing import prompt_model

    name = f"microllama_prompt{tokens}"
    return prompt_model(name, tokens, layers, seed)


def _check(seed: int, **sizes: int) -> None:
    for role, size in sizes.items():
        check_number(role, size, where="htvm.zoo.microllama")
    check_number("seed", seed, least=0, where="htvm.zoo.microllama")
