"""Helper: attentions in the integer form, written in the ways in which files write them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from byoc_dory.layers.layer import MulShift
from byoc_dory.layers.rowwise import ItaSoftmax
from patterns.ops.dense import Dense
from patterns.ops.integer.combine import IntegerMatmul
from patterns.ops.integer.rescale import Rescale
from patterns.ops.moves.concat import Concat
from patterns.ops.moves.reshape import Reshape, Slice, Transpose
from patterns.ops.pulp.elementwise import Accumulate
from patterns.ops.pulp.ita import ItaMax
from patterns.ops.pulp.norm import PulpSoftmax

STYLES = ("apart", "fused", "interleaved", "per head")


@dataclass(frozen=True)
class Attention:
    """A writer of one attention of (1, S, E).

    Attributes:
        rows, columns, heads, head_size: S, E, H, P.
        style: ``apart`` (a product each for queries, keys, values), ``fused`` (one for all three,
            cut by slices), ``interleaved`` (one, a head's columns H apart), ``per head``.
        accumulated: whether each head has an output product of its own.
        transposed: whether keys are read by their rows.
        softmax: what makes probabilities of scores.
        mask: written between scores and softmax.
        leak: whether a head's queries are a result, too.
    """

    rows: int = 6
    columns: int = 8
    heads: int = 3
    head_size: int = 4
    style: str = "apart"
    accumulated: bool = False
    transposed: bool = False
    softmax: Callable[..., Any] | None = None
    mask: Callable[..., Any] | None = None
    leak: bool = False
    seed: int = 1

    def __call__(self, bb: Any, x: Any) -> Any:
        return _Writer(self, bb).write(x)


class _Writer:
    def __init__(self, spec: Attention, bb: Any) -> None:
        self.spec, self.bb = spec, bb
        self.rng = np.random.default_rng(spec.seed)
        self.count = 0

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}_{self.count}"

    def linear(self, x: Any, k: int, name: str) -> Any:
        channels = int(x.ty.shape[-1])
        weight = self.rng.integers(-60, 60, (k, channels)).astype(np.int8)
        bias = self.rng.integers(-3000, 3000, k).astype(np.int32)
        mul = int(self.rng.integers(100, 200))
        return Dense(weight, bias, MulShift((mul,), (14,), (8192,))).write(self.bb, [x], name)

    def reshape(self, x: Any, *size: int) -> Any:
        return Reshape(size).write(self.bb, [x], self.name("reshape"))

    def transpose(self, x: Any, *axes: int) -> Any:
        return Transpose(tuple(axes)).write(self.bb, [x], self.name("transpose"))

    def columns(self, x: Any, first: int, count: int, step: int = 1) -> Any:
        size = [int(extent) for extent in x.ty.shape]
        begin, strides = [0] * (len(size) - 1) + [first], [1] * (len(size) - 1) + [step]
        part = Slice(tuple(begin), (*size[:-1], count), tuple(strides))
        return part.write(self.bb, [x], self.name("slice"))

    def write(self, x: Any) -> Any:
        s = self.spec
        flat = self.reshape(x, s.rows, s.columns)
        first: Any = None
        if s.style == "per head" or s.accumulated and s.style == "interleaved":
            contexts = []
            every = None if s.style == "per head" else self.fused(flat)
            for head in range(s.heads):
                parts = self.one_head(flat, every, head)
                first = parts[0] if first is None else first
                contexts.append(self.attend(*parts, leading=()))
            if s.accumulated:
                return self.result(self.accumulate(contexts), first)
            joined = Concat(-1).write(self.bb, contexts, "concat_0")
        else:
            parts = self.all_heads(x, flat)
            first = parts[0]
            context = self.attend(*parts, leading=(1, s.heads))
            if s.accumulated:
                split = self.reshape(context, s.heads, s.rows, s.head_size)
                parts = [
                    Slice.every((head, 0, 0), (1, s.rows, s.head_size)) for head in range(s.heads)
                ]
                slices = [
                    part.write(self.bb, [split], f"head_{head}") for head, part in enumerate(parts)
                ]
                heads = [self.reshape(part, s.rows, s.head_size) for part in slices]
                return self.result(self.accumulate(heads), first)
            rows = self.transpose(context, 0, 2, 1, 3)
            joined = self.reshape(rows, s.rows, s.heads * s.head_size)
        return self.result(self.linear(joined, s.columns, "output"), first)

    def result(self, y: Any, first: Any) -> Any:
        return [y, first] if self.spec.leak else y

    def fused(self, flat: Any) -> Any:
        return self.linear(flat, 3 * self.spec.heads * self.spec.head_size, "qkv")

    def one_head(self, flat: Any, every: Any, head: int) -> tuple[Any, Any, Any]:
        s, found = self.spec, []
        for at, role in enumerate("qkv"):
            if every is None:
                found.append(self.linear(flat, s.head_size, f"{role}_{head}"))
            else:
                start = at * s.heads * s.head_size + head
                found.append(self.columns(every, start, s.head_size, s.heads))
        return found[0], found[1], found[2]

    def all_heads(self, x: Any, flat: Any) -> tuple[Any, Any, Any]:
        s, found = self.spec, []
        width = s.heads * s.head_size
        every = None if s.style == "apart" else self.fused(flat)
        for at, role in enumerate("qkv"):
            if every is None:
                source = self.reshape(x, s.rows, s.columns) if role == "k" else flat
                part = self.linear(source, width, role)
            else:
                part = self.columns(every, at * width, width)
            if s.style == "interleaved":
                part = self.reshape(part, 1, s.rows, s.head_size, s.heads)
                found.append(self.transpose(part, 0, 3, 1, 2))
            else:
                part = self.reshape(part, 1, s.rows, s.heads, s.head_size)
                found.append(self.transpose(part, 0, 2, 1, 3))
        return found[0], found[1], found[2]

    def attend(self, q: Any, k: Any, v: Any, leading: tuple[int, ...]) -> Any:
        s = self.spec
        if not s.transposed:
            rank = len(leading) + 2
            k = self.transpose(k, *range(rank - 2), rank - 1, rank - 2)
        scores = self.matmul(q, k, s.transposed, (9, 9, 256))
        if s.mask is not None:
            scores = s.mask(self.bb, scores)
        make = s.softmax or (lambda bb, y, name: ItaMax(ItaSoftmax()).write(bb, [y], name))
        return self.matmul(make(self.bb, scores, self.name("softmax")), v, False, (77, 14, 8192))

    def matmul(self, a: Any, b: Any, transposed: bool, scale: tuple[int, int, int]) -> Any:
        product = IntegerMatmul(transpose_b=transposed).write(self.bb, [a, b], self.name("matmul"))
        mul, bits, add = scale
        return Rescale(np.array(mul), np.array(add), bits, (-128, 127)).write(
            self.bb, [product], self.name("rescale")
        )

    def accumulate(self, contexts: list[Any]) -> Any:
        parts = [
            self.linear(context, self.spec.columns, f"output_{head}")
            for head, context in enumerate(contexts)
        ]
        return Accumulate(11, 4, 5).write(self.bb, parts, "sum")


def polynomial(bb: Any, x: Any, name: str) -> Any:
    return PulpSoftmax((1, 173, 15599), 127, 256).write(bb, [x], name)
