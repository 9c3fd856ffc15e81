"""`DigitalCore`: an array of multiply-accumulate units with a separate weight memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from byoc_dory.errors import TargetError
from byoc_dory.soc.base import Accelerator, round_up
from byoc_dory.soc.parts import check_powers_of_two

if TYPE_CHECKING:
    from byoc_dory.options import TilingOptions


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

    def under(self, options: TilingOptions) -> DigitalCore:
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
        each = self.channels_at_a_time(fy, fx)
        if each > 1:
            # Weights of c input channels take the same bytes in any number of blocks.
            return self.lanes * k * fy * fx + -(-k // each) * self.bias_bytes
        blocks = -(-k // self.depthwise_block_channels)
        return blocks * (self.lanes * fy * fx + self.bias_bytes)

    def dense_weight_bytes(self, c: int) -> int:
        """The bytes of packed weights and biases of a dense trigger (up to ``lanes`` outputs)."""
        return self.lanes * round_up(c, self.columns) + self.dense_bias_bytes
