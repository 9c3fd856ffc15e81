"""The numbers of N-EUREKA, the engine of Siracusa.

Every number carries its kind and source: *published* (Siracusa, arXiv 2312.14750), *public code*
(pulp-nnx, GVSoC's model of the engine), *derived* or *assumed*.  This is the chip's engine, not its
successor, whose RTL is public: that has 32 channels in all modes and words of 36 bytes.
"""

from __future__ import annotations

from dataclasses import replace

from byoc_dory.soc.siracusa.memories import L1, MRAM
from byoc_dory.soc.siracusa.neureka_core import Neureka

__all__ = ["NEUREKA", "cautious"]

NEUREKA = Neureka(
    name="neureka",
    title="N-EUREKA, convolution engine 6x6",
    registers=0x00201000,  # public code: pulp-nnx
    l1=L1.name,
    weight_window=MRAM.base,  # public code: pulp-nnx subtracts it from addresses of weights
    block=6,  # public code, all that follows unless something else is said
    filter=3,
    input_channels=(28, 28, 32),
    output_channels=(32, 28, 32),
    min_weight_bits=2,  # published
    max_weight_bits=8,  # published
    word_bytes=32,
    max_padding=2,
    max_shift=31,
    contexts=2,
    job_ids=256,
    trigger=0x00,
    acquire=0x04,
    finished=0x08,
    status=0x0C,
    running_job=0x10,
    soft_clear=0x14,
    job=0x20,
    job_registers=24,
    # public code: GVSoC's state machine, with memories that never wait.
    job_cycles=1,
    load_cycles=(6, 6, 12),
    prepare_cycles=(6, 34, 10),
    leave_cycles=(8, 0, 0),
    prefetch_prepare_cycles=(6, 34, 3),
    prefetch_window_cycles=(3, 3, 9),
    prefetch_last_cycles=(0, 0, 10),
    scale_channels=32,
    scale_word_bytes=4,
    scale_cycles=9,
    shift_cycles=8,
    bias_cycles=12,
    no_bias_cycles=8,
    store_cycles=(0, 0, 3),
    stream_in_cycles=10,
    block_slack_cycles=0,
    # derived: by how much cycle counts published with the successor's RTL exceed this model,
    # scaled to that array.
    uncertain_block_cycles=20,
)
"""The engine as GVSoC's model of it counts cycles."""


def cautious(core: Neureka) -> Neureka:
    """Return the engine with the cycles that may be missing in each block and Ko tile."""
    return replace(core, block_slack_cycles=core.uncertain_block_cycles)
