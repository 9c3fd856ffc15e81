"""Helper: random small networks of matrices: products, attention, sums, functions of rows.

Like `tests.e2e.networks`, for cores that are made for transformers: the first n operators of a
network are the network of the same seed with n operators.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

import htvm
from byoc_dory.layers import MulShift
from byoc_dory.layers.rowwise import AffineNorm, LayerNorm, RmsNorm
from patterns.ops.add import Add
from patterns.ops.dense import dense_of
from patterns.ops.integer.rescale import Rescale
from patterns.ops.pulp.elementwise import PulpGelu
from patterns.ops.pulp.norm import PulpAffineNorm, PulpLayerNorm, PulpRmsNorm
from tests.e2e.draws import SPREAD, Array, Draws, brief
from tests.e2e.networks import Network
from tests.patterns.attention_nets import STYLES, Attention


def matrix_network(seed: int, operators: int | None = None) -> Network:
    """The network of a seed; it has two to six operators or blocks, or the first few of these."""
    return _Writer(seed).network(operators)


class _Writer:
    """Writes operators on matrices of one number of rows."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.draw = Draws(seed, "mul_shift")
        self.ends = np.random.default_rng([seed, 9])  # choices that need the whole network
        self.name = f"matrices{seed}"
        # In plain networks, an engine with tiles of 64 takes halves of all that is linear.
        sizes = [128] if self.draw.plain else [64, 192, 256, self.draw.between(2, 200)]
        self.rows = self.draw.pick(sizes)
        self.bb = relax.BlockBuilder()
        self.text = [f"{self.rows} rows"]
        count = self.draw.pick([1, 1, 2])
        self.inputs = [self._input(number, self.columns()) for number in range(count)]
        self.tensors = list(self.inputs)
        self.read: set[int] = set()
        self.attends = False

    def network(self, operators: int | None) -> Network:
        count = self.draw.between(2, 6)
        with self.bb.function("main", self.inputs):
            with self.bb.dataflow():
                for number in range(count if operators is None else min(count, operators)):
                    self._operator(number)
                fields = [self.bb.emit_output(tensor) for tensor in self._outputs()]
            self.bb.emit_func_output(fields[0] if len(fields) == 1 else relax.Tuple(fields))
        return Network(htvm.load(self.bb.get(), name=self.name), tuple(self.text))

    def _outputs(self) -> list[Any]:
        """All that nobody reads, and sometimes an inner tensor."""
        made = self.tensors[len(self.inputs) :]
        outputs = [tensor for tensor in made if id(tensor) not in self.read]
        inner = [tensor for tensor in made if id(tensor) in self.read]
        if inner and self.ends.random() < 0.2:
            outputs.append(inner[self.ends.integers(len(inner))])
        return outputs

    # -------------------------------------------------------------------- choosing

    def columns(self) -> int:
        """Tiles of 64, or any number."""
        sizes = [128, 128, 256] if self.draw.plain else [64, 192, self.draw.between(3, 90)]
        return int(self.draw.pick(sizes))

    def requant(self, deviation: Array, bound: int) -> MulShift:
        """What an engine with one multiplier of eight bits takes, or any other."""
        if not self.draw.plain and self.draw.chance(0.3):
            found = self.draw.requant(deviation, bound, 0)
            assert isinstance(found, MulShift)
            return found
        factor = 50 / max(float(np.median(deviation)), 1e-3)
        shift = int(np.clip(np.floor(np.log2(255 / factor)), 1, 15))
        mul = int(np.clip(round(factor * 2**shift), 1, 255))
        return MulShift((mul,), (shift,), (1 << shift >> 1,))

    def _input(self, number: int, columns: int) -> Any:
        return relax.Var(f"input_{number}", relax.TensorType((self.rows, columns), "int8"))

    def _operator(self, number: int) -> None:
        """Write one operator, mostly on the latest tensor."""
        source = self.tensors[-1] if self.draw.chance(0.75) else self.draw.pick(self.tensors)
        kinds = ["linear", "add", "norm", "gelu", "attention", "block", "block", "block", "block"]
        kind = self.draw.pick(kinds)
        name = f"{kind}_{number}"
        made, sources, words = getattr(self, f"_{kind}")(source, name)
        self.read.update(map(id, sources))
        self.tensors.append(made)
        operands = " + ".join(tensor.name for tensor in sources)
        self.text.append(f"{name} = {operands} -> {made.ty.shape} {words}")

    # -------------------------------------------------------------------- operators

    def _block(self, source: Any, name: str) -> tuple[Any, list[Any], str]:
        """Feed-forward networks in a row: what an engine and the cores have to do in turn."""
        made, words = source, []
        for number in range(self.draw.between(1, 3)):
            part = f"{name}_{number}"
            inner, _, one = self._linear(made, f"{part}_inner")
            outer, _, other = self._linear(inner, f"{part}_outer", int(source.ty.shape[-1]))
            requant = self.requant(np.full(1, SPREAD * 1.4), 256)
            total = Add(requant).write(self.bb, [outer, made], f"{part}_sum")
            made, _, norm = self._norm(total, f"{part}_norm")
            words += [one, other, brief(requant), norm]
        return made, [source], "; ".join(words)

    def _linear(
        self, source: Any, name: str, columns: int | None = None
    ) -> tuple[Any, list[Any], str]:
        columns = self.columns() if columns is None else columns
        weight = self.draw.weights((columns, int(source.ty.shape[-1])))
        wide = weight.astype(np.int64)
        deviation = SPREAD * np.sqrt((wide**2).sum(axis=1))
        bias = np.rint(self.draw.rng.normal(size=len(weight)) * (deviation + 1)).astype(np.int32)
        bound = int((np.abs(bias) + 128 * np.abs(wide).sum(axis=1)).max())
        requant = self.requant(deviation, bound)
        clip = self.draw.pick([(-128, 127), (-128, 127), (0, 127)])
        op = dense_of((self.rows,), weight, bias, requant, clip)
        return op.write(self.bb, [source], name), [source], f"{clip=} {brief(requant)}"

    def _add(self, source: Any, name: str) -> tuple[Any, list[Any], str]:
        shape = list(source.ty.shape)
        others = [other for other in self.tensors if list(other.ty.shape) == shape]
        pair = [source, self.draw.pick(others)]
        requant = self.requant(np.full(1, SPREAD * 1.4), 256)
        return Add(requant).write(self.bb, pair, name), pair, brief(requant)

    def _norm(self, source: Any, name: str) -> tuple[Any, list[Any], str]:
        columns = int(source.ty.shape[-1])
        weight = self.draw.rng.integers(-90, 90, columns).astype(np.int32)
        bias = self.draw.rng.integers(-900, 900, columns).astype(np.int32)
        affine = PulpAffineNorm(AffineNorm(weight, bias, self.draw.pick([1, 3]), 6))
        others = [PulpLayerNorm(LayerNorm(weight, bias, 1)), PulpRmsNorm(RmsNorm(weight, 1))]
        op = affine if self.draw.chance(0.6) else self.draw.pick(others)
        return op.write(self.bb, [source], name), [source], type(op.function).__name__

    def _gelu(self, source: Any, name: str) -> tuple[Any, list[Any], str]:
        """A GELU, whose result has 32 bits, and the factor that makes bytes of it."""
        made = PulpGelu(-20, 400).write(self.bb, [source], name)
        factor, half = np.array(self.draw.between(60, 255)), np.array(1 << 14)
        made = Rescale(factor, half, 15, (-128, 127)).write(self.bb, [made], f"{name}_scaled")
        return made, [source], f"{factor=}"

    def _attention(self, source: Any, name: str) -> tuple[Any, list[Any], str]:
        """Attention, at most once: its operators have the same names each time."""
        if self.attends:
            return self._linear(source, name)
        self.attends = True
        rows, columns = (int(size) for size in source.ty.shape)
        heads = self.draw.between(1, 3)
        head_size = self.draw.pick([64, 64, self.draw.between(4, 40)])
        style = self.draw.pick(STYLES[:2])
        accumulated = heads > 1 and self.draw.chance(0.5)
        spec = Attention(rows, columns, heads, head_size, style, accumulated, seed=self.seed)
        return spec(self.bb, source), [source], f"{heads} x {head_size} {style}"
