"""`LanguageModel`: a decoding step with what turns token ids into its inputs and back."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import ModelError
from htvm.model import Model
from htvm.public import public
from htvm.tools.language.interface import StepInterface
from htvm.tools.language.interface import rotations as rotations_of
from htvm.tools.language.sampling import LARGEST_VOCABULARY

if TYPE_CHECKING:
    from typing_extensions import Self

    from byoc_dory.layers import Array

MASKED = -128
"""What is added to the scores of a position that does not count; 0 to those that do."""

POSITIONS = 512
VOCABULARY = 256
_SCORE_SCALE = 2.0**-12
_MATRICES = 2  # embedding and output
_WEIGHTS = (4, 31)  # this many uniform integers are added, up to this magnitude


@public
@dataclass(frozen=True, eq=False, repr=False)
class LanguageModel(Model):
    """A decoding step with what makes it read and write token ids; `of` makes one.

    It is a `Model`: the step (see `StepInterface`), which returns the token's keys and values
    instead of whole caches (`in_place`), with one more output, the scores of the next token,
    ``output @ hidden``, int32 [1, vocabulary].  Everything that takes a model takes it, and
    `htvm.generate` takes what was built of it.  Token ``t`` at position ``p`` is read with the
    hidden state ``embedding[t]`` and the rotation ``rotations[p]``; the cache is a window of the
    last `length` tokens, of which those that do not exist yet are masked.

    Attributes:
        step: the decoding step alone.
        embedding: hidden state of each token, int8 [vocabulary, width].
        output: row of each token, int8 [vocabulary, width].
        rotations: rotation of each position, int8 [positions, head, head].
        score_scale: real value of one step of a score, which temperatures refer to.

    Raises:
        ModelError: the network is no decoding step with scores, or a table has another type or
            shape.
    """

    step: Model = field(kw_only=True)
    embedding: Array = field(kw_only=True)
    output: Array = field(kw_only=True)
    rotations: Array = field(kw_only=True)
    score_scale: float = field(default=_SCORE_SCALE, kw_only=True)

    def __post_init__(self) -> None:
        where = f"language model '{self.name}'"
        sizes = StepInterface.of(self.inputs, self.outputs[:-1], where, in_place=True)
        self._check_tables(sizes, where)
        scores = self.outputs[-1]
        if scores.dtype != "int32" or scores.shape != (1, self.vocabulary):
            raise ModelError(
                f"the output '{scores.name}' is {scores.dtype}{list(scores.shape)}, the scores of "
                f"{self.vocabulary} tokens are int32[1, {self.vocabulary}]",
                where=where,
                hint="LanguageModel.of(step) adds them",
            )

    def _check_tables(self, sizes: StepInterface, where: str) -> None:
        shapes = {
            "embedding": (self.vocabulary, sizes.width),
            "output": (self.vocabulary, sizes.width),
            "rotations": (len(self.rotations), sizes.head, sizes.head),
        }
        for name, shape in shapes.items():
            table = getattr(self, name)
            if table.dtype != np.int8 or table.shape != shape or not table.size:
                raise ModelError(
                    f"{name} is {table.dtype}{list(table.shape)}, the step needs int8{list(shape)}",
                    where=where,
                    hint="quantize and transpose it; a table has at least one row",
                )
        if self.vocabulary > LARGEST_VOCABULARY:
            raise ModelError(
                f"a vocabulary of {self.vocabulary}",
                where=where,
                hint=f"at most {LARGEST_VOCABULARY}",
            )
        if not 0 < self.score_scale < float("inf"):
            raise ModelError(
                f"the scale of the scores cannot be {self.score_scale!r}",
                where=where,
                hint="the real value of one step, above 0",
            )

    @classmethod
    def of(
        cls,
        step: Model,
        *,
        embedding: Array | None = None,
        output: Array | None = None,
        rotations: Array | None = None,
        score_scale: float = _SCORE_SCALE,
        vocabulary: int = VOCABULARY,
        positions: int = POSITIONS,
        seed: int = 0,
    ) -> Self:
        """Return the language model of a decoding step, such as one from `htvm.load`.

        Args:
            step: the decoding step, or a language model of which only the step is taken.
            embedding, output, score_scale: see `LanguageModel`.  Tables that are not given are
                random, drawn with ``seed``: such a model has the speed of a trained one and says
                nothing sensible.
            rotations: rotation of each position; those of RoPE with base 10000 by default.
            vocabulary: rows of tables that are drawn, unless one is given.
            positions: number of rotations, if they are not given.
            seed: seed of the random tables.

        Raises:
            ModelError: ``step`` is no decoding step, or a table has another type or shape.
        """
        step = step.step if isinstance(step, LanguageModel) else step
        sizes = StepInterface.of(step.inputs, step.outputs, f"model '{step.name}'")
        given = embedding if embedding is not None else output
        rows = vocabulary if given is None else len(given)
        drawn = _drawn(rows, sizes.width, seed)
        output = drawn[1] if output is None else output
        # The compiler takes a second to import.
        from htvm.tools.language.rewrite import in_place, with_scores

        whole = with_scores(in_place(step), output)
        return cls(
            **{each.name: getattr(whole, each.name) for each in fields(Model)},
            step=step,
            embedding=drawn[0] if embedding is None else embedding,
            output=output,
            rotations=rotations_of(positions, sizes.head) if rotations is None else rotations,
            score_scale=score_scale,
        )

    def __repr__(self) -> str:
        return (
            f"LanguageModel({self.name!r}, vocabulary={self.vocabulary}, length={self.length}, "
            f"positions={self.positions}, from {self.source!r})"
        )

    @cached_property
    def interface(self) -> StepInterface:
        """Sizes of the decoding step."""
        return StepInterface.of(self.inputs, self.outputs[:-1], self.name, in_place=True)

    @property
    def vocabulary(self) -> int:
        """Number of tokens."""
        return len(self.embedding)

    @property
    def length(self) -> int:
        """Positions of the cache, L."""
        return self.interface.length

    @property
    def positions(self) -> int:
        """How many tokens can be read until the rotations are used up."""
        return len(self.rotations)

    def mask(self, filled: int) -> Array:
        """Return the mask, int8 [length + 1], of a cache whose last ``filled`` positions count."""
        mask = np.zeros(self.length + 1, "int8")
        mask[: self.length - filled] = MASKED
        return mask


def _drawn(rows: int, width: int, seed: int) -> Array:
    """Return random embedding and output, int8 [2, rows, width], bell-shaped."""
    count, largest = _WEIGHTS
    drawn = np.random.default_rng([7, seed]).integers(
        -largest, largest + 1, (_MATRICES, count, rows, width)
    )
    return drawn.sum(axis=1).astype("int8")
