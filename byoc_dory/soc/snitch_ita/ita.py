"""ITA as an accelerator: its rules, attention as the layers that ITA and the cores execute, cycles.

Products and heads run on ITA.  If one output product takes all heads side by side, the products of
queries, keys and values do so, too, and the heads are computed in one layer.  If each head has its
own output product (as published for ITA), so has everything before it, and the cores add the int8
results.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from byoc_dory.layers import (
    Add,
    Attention,
    Gemm,
    Layer,
    MulShift,
    MultiHeadAttention,
    Projection,
    Tensor,
    attend_layer,
    gemm_layer,
    rows_layer,
)
from byoc_dory.layers.rowwise import TableMap
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.soc.base import Soc
from byoc_dory.soc.cluster.emit import ClusterLayout
from byoc_dory.soc.cluster.requant import numbers_that_count
from byoc_dory.soc.snitch_ita.ita_core import Ita
from byoc_dory.soc.snitch_ita.ita_emit import ItaEmitter
from byoc_dory.soc.snitch_ita.ita_program import costs_of, ita_program, tiling_problem
from byoc_dory.soc.snitch_ita.ita_rules import RULES
from byoc_dory.tileloop.cycles import Costs
from byoc_dory.tileloop.program import TileProgram
from byoc_dory.tiling import Heuristic, Objective, Size, TilingProblem


def heads_of(layer: MultiHeadAttention, ita: str, cores: str) -> tuple[tuple[Layer, str], ...]:
    """Return an ``mha`` layer's parts with their accelerators' names; the last has its output."""
    attention = layer.attention
    if attention.joined:
        return tuple((part, ita) for part in _joined_heads(layer, attention))
    parts: list[tuple[Layer, str]] = []
    results = []
    for head in range(attention.heads):
        for part in _head(layer, attention, head):
            parts.append((part, ita))
        results.append(parts[-1][0].output)
    parts.append((_sum(layer, attention, results), cores))
    return tuple(parts)


def _joined_heads(layer: Layer, attention: Attention) -> tuple[Layer, ...]:
    source = layer.inputs[0]
    query = _product(f"{layer.name}.query", source, _stacked(attention.query))
    key = _product(f"{layer.name}.key", source, _stacked(attention.key))
    value = _product(f"{layer.name}.value", source, _stacked(attention.value), transposed=True)
    context = attend_layer(
        f"{layer.name}.context",
        query.output,
        key.output,
        value.output,
        attention.scores,
        attention.heads,
    )
    output = _product(layer.name, context.output, attention.output[0])
    return query, key, value, context, replace(output, output=layer.output)


def _head(layer: Layer, attention: Attention, head: int) -> tuple[Layer, ...]:
    name, source = f"{layer.name}.head{head}", layer.inputs[0]
    query = _product(f"{name}.query", source, attention.query[head])
    key = _product(f"{name}.key", source, attention.key[head])
    value = _product(f"{name}.value", source, attention.value[head], transposed=True)
    context = attend_layer(
        f"{name}.context", query.output, key.output, value.output, attention.scores
    )
    output = _product(f"{name}.output", context.output, attention.output[head])
    return query, key, value, context, output


def _sum(layer: Layer, attention: Attention, results: list[Tensor]) -> Layer:
    assert attention.accumulate is not None
    mul, shift, add = attention.accumulate
    if len(results) == 1:
        values = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.int64)
        table = np.clip((values * mul + add) >> shift, -128, 127).astype(np.int8).view(np.uint8)
        only = rows_layer(layer.name, results[0], TableMap(table))
        return replace(only, output=layer.output)
    requant = MulShift((mul,), (shift,), (add,))
    return Add(name=layer.name, inputs=tuple(results), output=layer.output, requant=requant)


def _product(name: str, source: Tensor, product: Projection, transposed: bool = False) -> Gemm:
    requant = MulShift((product.mul,), (product.shift,), (product.add,))
    return gemm_layer(
        name, source, product.weight, product.bias, requant=requant, transposed=transposed
    )


def _stacked(products: tuple[Projection, ...]) -> Projection:
    first = products[0]
    return replace(
        first,
        weight=np.concatenate([product.weight for product in products]),
        bias=np.concatenate([product.bias for product in products]),
    )


_CORES = "cluster"


@dataclass(frozen=True)
class ItaAccelerator(Ita):
    """ITA: its numbers, rules, tiles, cycles and C.

    Attention is checked as a whole and executed as products, heads and sums.
    """

    rules = RULES

    def expand(self, soc: Soc, layer: Layer) -> Sequence[tuple[Layer, str]]:
        """Return attention as products, heads and sums; any other layer unchanged."""
        if isinstance(layer, MultiHeadAttention):
            return heads_of(layer, self.name, _CORES)
        return ((layer, self.name),)

    @property
    def preloads(self) -> bool:
        """The core in control loads the next layer's weights while ITA computes."""
        return True

    @property
    def rows_together(self) -> int:
        """Rows of a tile."""
        return self.tile

    def instead(self, layer: Layer) -> str:
        """Return that sums are products; empty for other layers."""
        if not isinstance(layer, Add):
            return ""
        return f"a sum of {len(layer.inputs)} as a product with identities"

    @property
    def objectives(self) -> Mapping[str, Objective]:
        """``array`` prefers tiles with many rows, ``none`` takes any that fits."""
        rows = Heuristic("rows", Size("y"), 64, "weights are loaded once for all rows")
        return {"none": Objective("none"), "array": Objective("array", (rows,))}

    def tiling_problem(self, soc: Soc, layer: Layer, options: TilingOptions) -> TilingProblem:
        """Return a tile's use of L1, with the limit; for attention, that of its largest part."""
        parts = self.expand(soc, layer)
        if len(parts) == 1:
            return tiling_problem(soc, self, layer, self.budget(soc, options))
        homes = [(part, soc.accelerator(name)) for part, name in parts]
        problems = [home.tiling_problem(soc, part, options) for part, home in homes]
        return max(problems, key=_smallest_bytes)

    def counts(self, soc: Soc, layer: Layer, options: TilingOptions) -> Hashable:
        """Return the sizes of products and sums, and how results are scaled; else everything.

        The tiles of attention's parts depend on the options, too.
        """
        if len(self.expand(soc, layer)) > 1:
            return super().counts(soc, layer, options)
        return numbers_that_count(layer)

    def tile_program(
        self, soc: Soc, layer: Layer, plan: LayerPlan, options: TilingOptions
    ) -> TileProgram:
        """Return the tile-by-tile execution of a product or a head of attention under a plan."""
        return ita_program(self, layer, plan)

    def costs(self, soc: Soc, layer: Layer, program: TileProgram, options: TilingOptions) -> Costs:
        """Return the cycles of tasks and transfers."""
        return costs_of(soc, self, layer, program)

    def layout(self, soc: Soc) -> ClusterLayout:
        """Return the layout of tensors, the same for cores and ITA."""
        return ClusterLayout(soc.host.cost.layout_byte, soc)

    def emitter(self, soc: Soc) -> ItaEmitter:
        """Return the emitter that generates C from plans."""
        return ItaEmitter(self, soc)


def _smallest_bytes(problem: TilingProblem) -> int:
    """Return the bytes of L1 that the smallest tile needs."""
    tile = problem.smallest
    return int(problem.l1_bytes(tile.k, tile.c, tile.y, tile.x))


ITA = ItaAccelerator(
    name="ita",
    title="integer transformer accelerator 16x64",
    registers=0x20001000,  # assumed
    l1="L1",
    family="cluster",
    lanes=16,  # published: N = 16 dot products of M = 64 elements, D = 26 bits (paper IV-B)
    vector=64,
    accumulator_bits=26,
    bias_bytes=3,  # published: 24-bit biases
    tile=64,  # public code: PyITA pads all dimensions to multiples of 64
    max_dim=512,  # published
    align=8,  # assumed: ports of the TCDM are 64 bits wide
    contexts=2,  # published: a dual-context register file
    max_shift=31,  # assumed: registers have 8 bits; more than 31 leave nothing of a 26-bit sum
    softmax_group=16,  # public code: as many columns as dot products
    # public code: (distance + 16) >> 5 until November 2024, and the paper is from before that.
    softmax_shift=5,
    weight_bytes_per_cycle=128,  # published: 16 ports of 64 bits
    tile_cycles=256,  # published: a tile takes at least 256 cycles
    tile_overhead_cycles=56,  # derived: 82.1 % utilization of products (paper V-A) are 312
    dividers=5,  # public code: NumDiv
    divide_cycles=22,  # public code: a serial divider of 20 bits, with its handshake
    # derived: the rest of the published 69.5 % of single-head attention with sequence 128,
    # embedding 128, projection 64, after everything else is charged; it is not explained.
    attention_cycles=400,
    drain_cycles=21,  # public code: 7 stages of pipeline, 14 entries of the output's queue
    softmax_numerator=65280,  # public code: 255 * 256
    # derived: measured on our simulator, for our drivers and the code around them.
    program_cycles=75,
    constant_cycles=98,
    order_cycles=53,
    latency_cycles=32,
    wait_cycles=8,
    call_cycles=10,
)
"""The numbers of ITA; `byoc_dory.soc.snitch_ita.description` has the cluster around it."""
