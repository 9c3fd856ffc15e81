"""The numbers of DIANA's cores: a digital array, and a ternary one in memory with converters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from byoc_dory.errors import TargetError
from byoc_dory.options import TilingOptions
from byoc_dory.soc.base import Accelerator, round_up
from byoc_dory.soc.parts import check_powers_of_two
from byoc_dory.soc.schemes import TernaryScheme


@lru_cache(maxsize=32)  # called for every tile size that is considered
def _with_channels(core: DigitalCore, channels: int) -> DigitalCore:
    return replace(core, depthwise_channels=channels)


@dataclass(frozen=True)
class DigitalCore(Accelerator):
    """A 2-D array that computes ``lanes`` output maps by ``columns`` output columns at a time.

    Cycles of a trigger = constant + weight bytes / ``weight_bytes_per_cycle`` + sum over (block of
    lanes, block of columns, output row) of ``C*fy'*fx + row_cycles*C*fy' + output_cycles``, where
    fy' counts the filter rows inside the tile; for dense ceil(C/columns) * ceil(K/lanes), for add
    ceil(elements/columns) instead of the sum.  The constants include the host's driver code, whose
    measured share is ``*_driver_cycles``.

    Attributes:
        lanes, columns: number of output maps and output columns that the array computes at a time.
        row_pitch: rows of activations are padded to multiples of this many bytes, in L1 and in L2.
        group: aligned groups of this many bytes are stored in reverse order.
        weight_memory: bytes of weights and biases that one trigger may load.
        weight_bytes_per_cycle: rate at which the trigger loads them from L2.
        bias_bytes: bytes of one block of ``lanes`` biases of a convolution.
        dense_bias_bytes: bytes of the biases of a dense trigger.
        row_cycles, output_cycles: alpha and beta of the cycle model.
        *_trigger_cycles: constant cycles of one trigger, including the driver (depthwise: per
            channel).
        *_driver_cycles: host cycles in them (depthwise: per channel, including the loop).
        *_ahead_cycles: cycles that each further trigger of one call saves if its registers are
            written while the previous one runs.
        filters: supported filter sizes per axis.
        strides: supported strides (equal on both axes).
        max_shift: largest right shift of the requantization.
        dense_max_k: number of outputs of one dense trigger.
        depthwise_channels: most channels of a depthwise layer per trigger.  1: the core's depthwise
            operation, for one channel at a time; more: its convolution over these channels, with
            zero weights between different ones, which computes as many sums in fewer triggers.
    """

    lanes: int
    columns: int
    row_pitch: int
    group: int
    weight_memory: int
    weight_bytes_per_cycle: int
    bias_bytes: int
    dense_bias_bytes: int
    row_cycles: int
    output_cycles: int
    conv_trigger_cycles: int
    depthwise_trigger_cycles: int
    dense_trigger_cycles: int
    add_trigger_cycles: int
    conv_driver_cycles: int
    depthwise_driver_cycles: int
    dense_driver_cycles: int
    add_driver_cycles: int
    depthwise_ahead_cycles: int
    dense_ahead_cycles: int
    filters: tuple[int, ...]
    strides: tuple[int, ...]
    max_shift: int
    dense_max_k: int
    depthwise_channels: int = 1

    def __post_init__(self) -> None:
        check_powers_of_two(self, "group", "row_pitch")
        wanted = {
            "bias_bytes": 4 * self.lanes,
            "dense_bias_bytes": 16 * self.lanes,
            "dense_max_k": self.lanes,
        }
        for name, number in wanted.items():
            if getattr(self, name) != number:
                raise TargetError(
                    f"{self.lanes} lanes with {name}={getattr(self, name)}",
                    where=f"accelerator {self.name}",
                    hint=f"{name} is then {number}; DIANA's parameter rows sets both",
                )

    def with_options(self, options: TilingOptions) -> DigitalCore:
        """Return the core with the channels per depthwise trigger that the schedule uses."""
        return _with_channels(self, 1 if options.schedule == "published" else self.lanes)

    def channels_at_a_time(self, fy: int, fx: int) -> int:
        """Return the channels of a depthwise trigger: as many as the weight memory has room for."""
        room = (self.weight_memory - self.bias_bytes) // (self.lanes * fy * fx)
        return max(1, min(self.depthwise_channels, room))

    @property
    def peak_macs(self) -> float:
        """One per cycle and cell of the array."""
        return self.lanes * self.columns

    def conv_weight_bytes(self, k: int, c: int, fy: int, fx: int) -> int:
        """Return the bytes of the packed weights and biases of a convolution trigger."""
        blocks = -(-k // self.lanes)
        return blocks * (self.lanes * c * fy * fx + self.bias_bytes)

    @property
    def depthwise_block_channels(self) -> int:
        """Channels that share a block of depthwise weights: one per reversed group of lanes."""
        return self.lanes // self.group

    def depthwise_weight_bytes(self, k: int, fy: int, fx: int) -> int:
        """Return the bytes of the packed weights and biases of ``k`` depthwise channels."""
        channels_at_once = self.channels_at_a_time(fy, fx)
        if channels_at_once > 1:
            # Weights of c input channels take the same bytes in any number of blocks.
            return self.lanes * k * fy * fx + -(-k // channels_at_once) * self.bias_bytes
        blocks = -(-k // self.depthwise_block_channels)
        return blocks * (self.lanes * fy * fx + self.bias_bytes)

    def dense_weight_bytes(self, c: int) -> int:
        """The bytes of packed weights and biases of a dense trigger (up to ``lanes`` outputs)."""
        return self.lanes * round_up(c, self.columns) + self.dense_bias_bytes


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

    def with_options(self, options: TilingOptions) -> AnalogCore:
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
