"""`AnalogCore`: a ternary in-memory array with converters behind its columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from byoc_dory.soc.base import Accelerator, round_up
from byoc_dory.soc.schemes import TernaryScheme

if TYPE_CHECKING:
    from byoc_dory.options import TilingOptions

__all__ = ["AnalogCore"]


@dataclass(frozen=True)
class AnalogCore(Accelerator):
    """An array of ternary cells: a row for each input value of a window, a column for each output.

    A *pass* loads the weights of as many whole input channels as the rows hold and computes one
    output position of all columns at a time; a converter behind each column makes ``adc_bits`` of
    its sum.  Passes over further channels are summed in int16.

    Cycles of a pass = ``trigger_cycles + row_cycles * rows + position_cycles * oy * ceil(ox / u)``,
    where u output columns are computed at a time (unrolled: each has columns of its own in the
    array, and rows are those of their common window).  The constant includes the host's driver
    code, whose measured share is ``driver_cycles``.

    Attributes:
        rows, columns: of the array.
        weight_memory: bytes of the array's image, 2 bits a cell.
        activation_bits: of the signed inputs.
        adc_bits: of the converters, signed.
        row_step, column_step: rows and columns of an image are padded to multiples of these.
        row_block: rows over which the sign of stored cells alternates.
        row_pitch: rows of activations are padded to this many bytes, in L1 and in L2.
        group: aligned groups of this many bytes are stored reversed.
        trigger_cycles: constant of one pass, driver included.
        row_cycles: to load one row of weights.
        position_cycles: to compute one output position.
        driver_cycles: host cycles in ``trigger_cycles``.
        ahead_cycles: what each further pass of a tile saves, as its registers are written while
            the one before runs.
        strides: strides (both axes alike).
        max_filter: largest filter size per axis.
        max_shift: largest right shift of the requantization.
        max_gain: largest right shift before the converter.
        dense_max_k: outputs of one trigger of a dense layer; each loads all weights again.
        max_passes: most passes a layer may take.
        unrolls: output columns that can be computed at a time, ascending.
        unroll: most that are (an option of the tiler); the rest of the array stays unused.
        unroll_channels: with more than one, fewer channels take as many rows as this many.
        noise_register, seed_register: offsets of the simulation's settings (`noise_settings`).
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

    @property
    def peak_macs(self) -> float:
        """All cells, once for each output position."""
        return self.rows * self.columns / self.position_cycles

    @property
    def scheme(self) -> TernaryScheme:
        """Ternary weights, converters, and one multiplier per column."""
        return TernaryScheme(
            self.rows, self.activation_bits, self.adc_bits, self.max_gain, self.max_shift
        )

    def configured(self, options: TilingOptions) -> AnalogCore:
        """The core with the output columns at a time that are asked for."""
        return replace(self, unroll=1 if options.schedule == "published" else options.unroll)

    @property
    def output_ranges(self) -> tuple[tuple[int, int], ...]:
        """The ranges to which outputs can be clipped: int8 or what is input again, with ReLU."""
        low, high = self.scheme.activation_range
        return (-128, 127), (0, 127), (low, high), (0, high)

    def noise_settings(self, deviation: float, seed: int) -> dict[int, int]:
        """Register -> value with which the device model adds noise before each conversion.

        Args:
            deviation: standard deviation in steps of the converter, below 65536.
            seed: 32 bits.
        """
        return {
            self.registers + self.noise_register: round(deviation * 65_536),
            self.registers + self.seed_register: seed,
        }

    def pass_channels(self, fy: int, fx: int) -> int:
        """Whole input channels that one pass takes (0 where not even one fits)."""
        return self.rows // (fy * fx)

    def unroll_of(self, k: int, c: int, fy: int, fx: int, stride: int) -> int:
        """Output columns at a time for ``k`` outputs: the largest allowed for which there is room.

        There is none for several passes, nor with a stride.
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
        """Bytes of the image of an array of which so many rows and columns are in use."""
        stored = round_up(rows, self.row_step) * round_up(columns, self.column_step)
        return stored * 2 // 8

    def pass_cycles(self, rows: int, oy: int, ox: int, unroll: int) -> int:
        """Cycles of one pass, host code of the driver included."""
        positions = oy * -(-ox // unroll)
        return self.trigger_cycles + self.row_cycles * rows + self.position_cycles * positions
