"""`Ita`: the numbers of the integer transformer accelerator, its requantization and cycle model."""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.layers.rowwise import ItaSoftmax
from byoc_dory.soc.base import Accelerator
from byoc_dory.soc.schemes import MulShiftScheme


@dataclass(frozen=True)
class ItaRequant:
    """``saturate(((acc * mult) >> shift, rounded half up) + add)``."""

    mult: int
    shift: int
    add: int


def ita_requant(mul: int, shift: int, add: int, max_shift: int) -> ItaRequant | str:
    """Return ``(acc * mul + add) >> shift`` for ITA, or the reason why ITA cannot compute it."""
    if not 0 <= mul <= 255:
        return f"the multiplier is {mul}, not in 0..255"
    if not 0 <= shift <= max_shift:
        return f"the shift is {shift}, not in 0..{max_shift}"
    half = (1 << shift) >> 1
    offset, rest = divmod(add - half, 1 << shift)
    if rest:
        return f"the addend {add} does not round half up: {half} plus a multiple of {1 << shift}"
    if not -128 <= offset <= 127:
        return f"the addend {add} is an offset of {offset}, not in -128..127"
    return ItaRequant(mul, shift, offset)


@dataclass(frozen=True)
class Ita(Accelerator):
    """Dot products of bytes, followed by softmax statistics and activations.

    A *task* is a product of matrices [rows, inner] x [inner, cols] in L1 (register map:
    ``snitch_regs.h``), computed in tiles of ``tile`` cubed.  Cycles of a task = exposed load of its
    first weights + tiles * (``tile_cycles`` + ``tile_overhead_cycles``), and for attention
    `reciprocal_cycles` at the end of a QK and ``attention_cycles`` before the first AV after it.
    Results are in L1 ``drain_cycles`` later; the next task does not wait for them unless it reads
    them.  It loads its first weights in advance if it was programmed in time and they are not
    results of the previous task.

    Attributes:
        lanes: number of dot products at a time.
        vector: length of each dot product.
        accumulator_bits: number of bits of a sum; no sum of ``max_dim`` products and a bias exceeds
            them.
        bias_bytes: bytes of one bias.
        tile: all dimensions are multiples of it; attention takes this many rows at a time.
        max_dim: largest dimension.
        align: alignment of addresses and strides in bytes.
        contexts: number of tasks that may be programmed, including the running one.
        max_shift: largest right shift of a requantization.
        softmax_group: number of columns of a row whose maximum is taken at a time.
        softmax_shift: binary logarithm of the distance to the maximum that halves an element.
        weight_bytes_per_cycle: rate at which the first weights are loaded.
        tile_cycles: array cycles of a tile.
        tile_overhead_cycles: other cycles of a tile.
        dividers: number of serial dividers.
        divide_cycles: cycles of one reciprocal.
        attention_cycles: cycles of each turn from QK to AV, beyond tiles and reciprocals.
        drain_cycles: cycles from the last array cycle until the result is in L1.
        softmax_numerator: numerator of the reciprocals of a softmax.
        program_cycles: host cycles for programming a task.
        constant_cycles: host cycles for programming a task that is the same for all tiles, a
            constant in L2.
        order_cycles: host cycles for starting a transfer.
        latency_cycles: cycles from then until an idle DMA begins, for the core that programs it.
        wait_cycles: host cycles for noticing that something is done.
        call_cycles: additional cycles per call of a layer's function.
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
        """Multiplication, addition and shift, with one number each."""
        return MulShiftScheme()

    @property
    def softmax(self) -> ItaSoftmax:
        """Of as many columns at a time as there are dot products."""
        return ItaSoftmax(self.softmax_group, self.softmax_shift, self.softmax_numerator)

    @property
    def peak_macs(self) -> float:
        """One per cycle and element of each dot product."""
        return self.lanes * self.vector

    @property
    def fill_cycles(self) -> int:
        """Cycles of loading one tile of weights, exposed if nothing runs before."""
        return -(-self.tile * self.tile // self.weight_bytes_per_cycle)

    @property
    def reciprocal_cycles(self) -> int:
        """Cycles that the sums of ``tile`` rows, one per cycle, wait for their reciprocals."""
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
