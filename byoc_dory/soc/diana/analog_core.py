"""`AnalogCore`: a ternary in-memory array with converters behind its columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from byoc_dory.soc.base import Accelerator, round_up
from byoc_dory.soc.parts import check_powers_of_two
from byoc_dory.soc.schemes import TernaryScheme

if TYPE_CHECKING:
    from byoc_dory.options import TilingOptions


@dataclass(frozen=True)
class AnalogCore(Accelerator):
    """An array of ternary cells: one row per input value of a window, one column per output.

    A *pass* loads the weights of as many whole input channels as the rows can hold, and computes
    one output position of all columns at a time; a converter behind each column converts its sum to
    ``adc_bits``.  Passes over further channels are summed in int16.

    Cycles of a pass = ``trigger_cycles + row_cycles * rows + position_cycles * oy * ceil(ox / u)``,
    where u output columns are computed at a time (unrolled: each has its own columns in the array,
    and the rows are those of their common window).  The constant includes the host's driver code,
    whose measured share is ``driver_cycles``.

    Attributes:
        rows, columns: size of the array.
        weight_memory: bytes of the array's image, with 2 bits per cell.
        activation_bits: number of bits of the signed inputs.
        adc_bits: number of bits of the converters, signed.
        row_step, column_step: rows and columns of an image are padded to multiples of these.
        row_block: number of rows after which the sign of stored cells alternates.
        row_pitch: rows of activations are padded to multiples of this many bytes, in L1 and in L2.
        group: aligned groups of this many bytes are stored in reverse order.
        trigger_cycles: constant cycles of one pass, including the driver.
        row_cycles: cycles to load one row of weights.
        position_cycles: cycles to compute one output position.
        driver_cycles: host cycles in ``trigger_cycles``.
        ahead_cycles: cycles that each further pass of a tile saves because its registers are
            written while the previous one runs.
        strides: supported strides (equal on both axes).
        max_filter: largest filter size per axis.
        max_shift: largest right shift of the requantization.
        max_gain: largest right shift before the converter.
        dense_max_k: number of outputs per trigger of a dense layer; each trigger loads all weights
            again.
        max_passes: largest number of passes per layer.
        unrolls: numbers of output columns that can be computed at a time, ascending.
        unroll: largest number in use (an option of the tiler); the rest of the array stays unused.
        unroll_channels: smallest number of channels whose rows are counted with more than one
            column.
        noise_register, seed_register: offsets of the simulation's registers (`noise_settings`).
    """

    rows: int
    columns: int
    weight_memory: int
    activation_bits: int
    adc_bits: int
    row_step: int
    column_step: int
    row_block: int
    row_pitch: int
    group: int
    trigger_cycles: int
    row_cycles: int
    position_cycles: int
    driver_cycles: int
    ahead_cycles: int
    strides: tuple[int, ...]
    max_filter: int
    max_shift: int
    max_gain: int
    dense_max_k: int
    max_passes: int
    unrolls: tuple[int, ...]
    unroll_channels: int
    noise_register: int
    seed_register: int
    unroll: int = 1

    def __post_init__(self) -> None:
        check_powers_of_two(self, "group", "row_pitch")

    @property
    def peak_macs(self) -> float:
        """All cells, once per output position."""
        return self.rows * self.columns / self.position_cycles

    @property
    def scheme(self) -> TernaryScheme:
        """Ternary weights, converters, and one multiplier per column."""
        return TernaryScheme(
            self.rows, self.activation_bits, self.adc_bits, self.max_gain, self.max_shift
        )

    def under(self, options: TilingOptions) -> AnalogCore:
        """Return the core with the requested number of output columns at a time."""
        return replace(self, unroll=1 if options.schedule == "published" else options.unroll)

    def can_clip_to(self, bounds: tuple[int, int]) -> bool:
        """See `Accelerator.can_clip_to`: int8 or the range of inputs, or either with ReLU."""
        low, high = self.scheme.activation_range
        return bounds in ((-128, 127), (0, 127), (low, high), (0, high))

    def noise_settings(self, deviation: float, seed: int) -> dict[int, int]:
        """Return register -> value with which the device model adds noise before each conversion.

        Args:
            deviation: standard deviation in steps of the converter, below 65536.
            seed: 32-bit seed.
        """
        return {
            self.registers + self.noise_register: round(deviation * 65_536),
            self.registers + self.seed_register: seed,
        }

    def pass_channels(self, fy: int, fx: int) -> int:
        """Return how many whole input channels one pass takes (0 if not even one fits)."""
        return self.rows // (fy * fx)

    def unroll_of(self, k: int, c: int, fy: int, fx: int, stride: int) -> int:
        """How many output columns are computed at a time for ``k`` outputs, if there is room.

        With several passes, or with a stride, it is one.
        """
        fitting = [
            u
            for u in self.unrolls
            if u <= self.unroll
            and u * k <= self.columns
            and max(c, self.unroll_channels) * fy * (fx + u - 1) <= self.rows
        ]
        return max(fitting, default=1) if stride == 1 else 1

    def image_bytes(self, rows: int, columns: int) -> int:
        """Return the bytes of an array's image with this many rows and columns in use."""
        stored = round_up(rows, self.row_step) * round_up(columns, self.column_step)
        return stored * 2 // 8

    def pass_cycles(self, rows: int, oy: int, ox: int, unroll: int) -> int:
        """Return the cycles of one pass, including the host code of the driver."""
        positions = oy * -(-ox // unroll)
        return self.trigger_cycles + self.row_cycles * rows + self.position_cycles * positions
