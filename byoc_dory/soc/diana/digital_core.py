"""`DigitalCore`: an array of multiply-accumulate units with a memory of its own for weights."""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.soc.base import Accelerator, round_up

__all__ = ["DigitalCore"]


@dataclass(frozen=True)
class DigitalCore(Accelerator):
    """A 2-D array that computes ``lanes`` output maps by ``columns`` output columns at a time.

    Cycles of a trigger = constant + weight bytes / ``weight_bytes_per_cycle`` + sum over
    (block of lanes, block of columns, output row) of ``C*fy'*fx + row_cycles*C*fy' +
    output_cycles``, with fy' the filter rows inside the tile; dense ceil(C/columns) *
    ceil(K/lanes), add ceil(elements/columns) instead of the sum.  The constants include the
    host's driver code, whose measured share is ``*_driver_cycles``.

    Attributes:
        lanes, columns: output maps and output columns of the array.
        row_pitch: rows of activations are padded to this many bytes, in L1 and in L2.
        group: aligned groups of this many bytes are stored reversed.
        weight_memory: bytes of weights and bias one trigger may load.
        weight_bytes_per_cycle: how fast the trigger loads them from L2.
        bias_bytes: bytes of one block of ``lanes`` biases of a conv.
        dense_bias_bytes: the same of a dense trigger.
        row_cycles, output_cycles: alpha and beta of the cycle model.
        *_trigger_cycles: constant of one trigger, driver included (depthwise: per channel).
        *_driver_cycles: host cycles in it (depthwise: of each channel, loop included).
        *_ahead_cycles: what each further trigger of one call saves when its registers are written
            while the one before runs.
        filters: filter sizes per axis.
        strides: strides (both axes alike).
        max_shift: largest right shift of the requantization.
        dense_max_k: outputs of one dense trigger.
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

    @property
    def peak_macs(self) -> float:
        """One per cycle and cell of the array."""
        return self.lanes * self.columns

    def conv_weight_bytes(self, k: int, c: int, fy: int, fx: int) -> int:
        """Bytes of the packed weights and biases of a conv trigger."""
        blocks = -(-k // self.lanes)
        return blocks * (self.lanes * c * fy * fx + self.bias_bytes)

    @property
    def depthwise_block_channels(self) -> int:
        """Channels that share a block of depthwise weights: one per reversed group of lanes."""
        return self.lanes // self.group

    def depthwise_weight_bytes(self, k: int, fy: int, fx: int) -> int:
        """Bytes of the packed weights and biases of ``k`` depthwise channels."""
        blocks = -(-k // self.depthwise_block_channels)
        return blocks * (self.lanes * fy * fx + self.bias_bytes)

    def dense_weight_bytes(self, c: int) -> int:
        """Bytes of the packed weights and biases of one dense trigger (up to ``lanes`` outputs)."""
        return self.lanes * round_up(c, self.columns) + self.dense_bias_bytes
