"""`Neureka`: the numbers of N-EUREKA, the convolution engine, by mode."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from byoc_dory.errors import TargetError
from byoc_dory.soc.base import Accelerator
from byoc_dory.soc.schemes import MulShiftScheme

_JOB_REGISTERS = 24  # neureka_emit.py lists them


class Mode(IntEnum):
    """What a job computes; the values are those of the register conf0, bits 6:5."""

    CONV3X3 = 0
    DEPTHWISE3X3 = 1
    CONV1X1 = 2


@dataclass(frozen=True)
class Neureka(Accelerator):
    """An array that computes blocks of outputs from weights in bit-planes.

    A job (register map: ``siracusa_neureka_regs.h``) is a convolution with stride 1.  It is
    computed in tiles of output channels ("Ko tiles"); within each, in blocks of ``block`` x
    ``block`` outputs; within each, in tiles of input channels ("Ki tiles"), whose input patch is
    loaded first.  `neureka_jobs` has the formulas of the cycles.

    Fields with three numbers have one for each `Mode`, in the order of its values.

    Attributes:
        weight_memory: name of the memory that keeps layers' weights; empty if they are loaded into
            L1 with each tile.
        further_memories: names of other memories that can keep weights where the first is full.
        weight_window: device address that addresses of weights in the weight memory count from.
        block: rows and columns of a block of outputs.
        filter: rows and columns of the filter, except in `Mode.CONV1X1`.
        input_channels: channels of a Ki tile.
        output_channels: channels of a Ko tile.
        min_weight_bits, max_weight_bits: allowed bits of a weight.
        word_bytes: bytes of a word of weights, and of the words of int32 outputs.
        max_padding: largest padding on any side.
        max_shift: largest right shift.
        max_stall: cycles in a row in which the engine keeps a core from a bank of L1.
        contexts: number of jobs that may be queued, including the running one.
        job_ids: jobs are numbered modulo this.
        trigger, acquire, finished, status, running_job, soft_clear: offsets of the control
            registers, in bytes.
        job: offset of the first job register.
        job_registers: number of job registers, 4 bytes each.
        job_cycles: cycles of each job besides its blocks.
        load_cycles: cycles of loading a patch besides its pixels.
        prepare_cycles: cycles between loading and computing.
        leave_cycles: cycles after computing.
        prefetch_prepare_cycles: ``prepare_cycles`` with prefetch.
        prefetch_window_cycles: cycles that hide computing with prefetch, besides those of the
            pixels.
        prefetch_last_cycles: additional cycles, with prefetch, of the last Ki tile of the last
            block of a Ko tile, which hides behind nothing.
        scale_channels: channels that the scales of a Ko tile are read for, except in the last one.
        scale_word_bytes: bytes of scales read in a cycle.
        scale_cycles: cycles of scaling a block besides reading the scales.
        shift_cycles: additional cycles with a shift per channel.
        bias_cycles, no_bias_cycles: cycles of bias and shift with and without a bias.
        store_cycles: cycles of storing a block besides its words.
        stream_in_cycles: cycles of reading partial sums of a block besides its words.
        block_slack_cycles: further cycles of each block and Ko tile, which `cautious` sets.
        uncertain_block_cycles: upper bound of what the public model of the chip may lack there.
        program_cycles: host cycles for giving a job to the engine.
        order_cycles: host cycles for starting a transfer.
        latency_cycles: cycles from then until an idle DMA begins, for the core that programs it.
        wait_cycles: host cycles for noticing that something is done.
        call_cycles: additional cycles per call of a layer's function.
        relu_cycles: cycles for starting the cores' kernel that clips a tile's result at 0.
        relu_word_cycles: cycles in which the cores clip 16 words of 4 results.
        relu_row_cycles: cycles for 16 rows of these, if there are several.
        beside_percent: how much longer a sum takes while the engine takes banks of L1.
        window_cores: number of cores that copy windows.
        window_call_cycles: cycles for starting them.
        window_cycles: cycles in which a core copies a window, besides its rows.
        window_row_cycles: cycles for each row of a window, besides its words.
        window_word_cycles, window_odd_word_cycles: cycles for a word of these, where pixels and
            rows are whole words, and elsewhere.
        window_edge_cycles: further cycles for a window that leaves the map to the left or right.
        window_clear_cycles: further cycles for a window that only leaves it above or below.
        block_call_cycles: cycles for starting the cores that copy blocks.
        block_line_cycles: cycles in which a core copies a line of blocks, besides its pairs.
        block_pair_cycles: cycles for a pair of pixels of these.
        keep_word_cycles: cycles in which the cores copy 16 words, or bytes, of kept pixels.
    """

    weight_memory: str
    further_memories: tuple[str, ...]
    weight_window: int
    block: int
    filter: int
    input_channels: tuple[int, int, int]
    output_channels: tuple[int, int, int]
    min_weight_bits: int
    max_weight_bits: int
    word_bytes: int
    max_padding: int
    max_shift: int
    max_stall: int
    contexts: int
    job_ids: int
    trigger: int
    acquire: int
    finished: int
    status: int
    running_job: int
    soft_clear: int
    job: int
    job_registers: int
    job_cycles: int
    load_cycles: tuple[int, int, int]
    prepare_cycles: tuple[int, int, int]
    leave_cycles: tuple[int, int, int]
    prefetch_prepare_cycles: tuple[int, int, int]
    prefetch_window_cycles: tuple[int, int, int]
    prefetch_last_cycles: tuple[int, int, int]
    scale_channels: int
    scale_word_bytes: int
    scale_cycles: int
    shift_cycles: int
    bias_cycles: int
    no_bias_cycles: int
    store_cycles: tuple[int, int, int]
    stream_in_cycles: int
    block_slack_cycles: int
    uncertain_block_cycles: int
    program_cycles: int
    order_cycles: int
    latency_cycles: int
    wait_cycles: int
    call_cycles: int
    relu_cycles: int
    relu_word_cycles: int
    relu_row_cycles: int
    beside_percent: int
    keep_word_cycles: int
    window_cores: int
    window_call_cycles: int
    window_cycles: int
    window_row_cycles: int
    window_word_cycles: int
    window_odd_word_cycles: int
    window_edge_cycles: int
    window_clear_cycles: int
    block_call_cycles: int
    block_line_cycles: int
    block_pair_cycles: int

    def __post_init__(self) -> None:
        bits = self.filter**2 * self.input_channels[Mode.CONV3X3]
        if 8 * self.word_bytes < bits:
            raise TargetError(
                f"word_bytes is {self.word_bytes}, and a word of weights has {bits} bits",
                where=f"'{self.name}'",
                hint=f"give it at least {-(-bits // 8)}",
            )
        if self.job_registers != _JOB_REGISTERS:
            raise TargetError(
                f"job_registers is {self.job_registers}",
                where=f"'{self.name}'",
                hint=f"jobs are written with {_JOB_REGISTERS}",
            )

    @property
    def scheme(self) -> MulShiftScheme:
        """Multiplication, addition and shift, per channel: as on the cores of its cluster."""
        return MulShiftScheme(per_channel=True, unsigned=True, averages=True)

    @property
    def peak_macs(self) -> float:
        """Those of the array with weights of 8 bits: a column for each output of a block."""
        return self.block**2 * self.word_bytes

    def window(self, mode: Mode) -> int:
        """Return the rows and columns of the filter."""
        return 1 if mode == Mode.CONV1X1 else self.filter

    def taps(self, mode: Mode) -> int:
        """Return the number of positions of the filter."""
        return self.window(mode) ** 2
