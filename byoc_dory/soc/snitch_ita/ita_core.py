"""`Ita`: the integer transformer accelerator, its kinds of numbers and its cycle model."""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.soc.base import Accelerator
from byoc_dory.soc.schemes import MulShiftScheme

__all__ = ["Ita"]


@dataclass(frozen=True)
class Ita(Accelerator):
    """Dot products of bytes, with softmax statistics and activations behind them.

    A *task* is a product of matrices [rows, inner] x [inner, cols] in L1 (register map:
    ``snitch_regs.h``), computed in tiles of ``tile`` cubed.  Cycles of a task = exposed load of its
    first weights + tiles * (``tile_cycles`` + ``tile_overhead_cycles``), and for attention
    `reciprocal_cycles` at the end of a QK and ``attention_cycles`` before the first AV behind it.
    Results are in L1 ``drain_cycles`` later; the next task does not wait for that unless it reads
    them, and loads its first weights before, if it was programmed in time and they are not results
    of the task before.

    Attributes:
        lanes: dot products at a time.
        vector: length of each.
        accumulator_bits: of a sum; no sum of ``max_dim`` products and a bias leaves them.
        bias_bytes: of one bias.
        tile: all dimensions are multiples of it; attention takes so many rows at a time.
        max_dim: largest dimension.
        align: of addresses and strides.
        contexts: tasks that may be programmed, the running one included.
        max_shift: largest right shift of a requantization.
        softmax_group: columns of a row whose maximum is taken at a time.
        softmax_shift: logarithm of the distance to the maximum that halves an element.
        weight_bytes_per_cycle: how fast the first weights are loaded.
        tile_cycles: array cycles of a tile.
        tile_overhead_cycles: other cycles of a tile.
        dividers: serial dividers.
        divide_cycles: of one reciprocal.
        attention_cycles: of each turn from QK to AV, beyond tiles and reciprocals.
        drain_cycles: from the last array cycle until the result is in L1.
        softmax_numerator: what the reciprocals of a softmax are of.
        program_cycles: host cycles of programming a task.
        constant_cycles: the same where all tiles have one task, which is a constant in L2.
        order_cycles: host cycles of ordering a transfer.
        latency_cycles: from then until an idle DMA begins, for the core that programs it.
        wait_cycles: host cycles of finding that something is done.
        call_cycles: of a layer's function, besides.
    """

    lanes: int
    vector: int
    accumulator_bits: int
    bias_bytes: int
    tile: int
    max_dim: int
    align: int
    contexts: int
    max_shift: int
    softmax_group: int
    softmax_shift: int
    weight_bytes_per_cycle: int
    tile_cycles: int
    tile_overhead_cycles: int
    dividers: int
    divide_cycles: int
    attention_cycles: int
    drain_cycles: int
    softmax_numerator: int
    program_cycles: int
    constant_cycles: int
    order_cycles: int
    latency_cycles: int
    wait_cycles: int
    call_cycles: int

    @property
    def scheme(self) -> MulShiftScheme:
        """Multiplication, addition and shift, one each."""
        return MulShiftScheme()

    @property
    def peak_macs(self) -> float:
        """One per cycle and element of each dot product."""
        return self.lanes * self.vector

    @property
    def fill_cycles(self) -> int:
        """Cycles of loading one tile of weights, exposed where nothing runs before."""
        return -(-self.tile * self.tile // self.weight_bytes_per_cycle)

    @property
    def reciprocal_cycles(self) -> int:
        """Cycles for which the sums of ``tile`` rows, which come one per cycle, wait."""
        return -(-self.tile * self.divide_cycles // self.dividers) - self.tile

    def product_cycles(self, rows: int, cols: int, inner: int) -> int:
        """Return the cycles of the tiles of one product; sizes are multiples of ``tile``."""
        tiles = (rows // self.tile) * (cols // self.tile) * (inner // self.tile)
        return tiles * (self.tile_cycles + self.tile_overhead_cycles)

    def attention_turn_cycles(self, length: int, proj: int) -> int:
        """Return the cycles of QK and AV for one block of ``tile`` rows, drains included.

        Args:
            length: columns of QK's result.
            proj: inner size of QK, and columns of AV's result.
        """
        products = self.product_cycles(self.tile, length, proj) * 2
        return products + self.reciprocal_cycles + self.drain_cycles + self.attention_cycles
