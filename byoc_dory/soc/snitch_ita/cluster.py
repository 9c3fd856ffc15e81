"""The compute cores of the Snitch cluster in numbers."""

from __future__ import annotations

from byoc_dory.soc.cluster.accelerator import ClusterAccelerator

__all__ = ["CLUSTER_CORES"]

# derived: fitted to our kernels on our simulator (benchmarks/cluster_kernels.py).
CLUSTER_CORES = ClusterAccelerator(
    name="cluster",
    title="cluster of 8 cores",
    registers=0x20002000,  # assumed
    l1="L1",
    family="cluster",
    cores=8,  # published
    fork_cycles=74,
    # derived: measured on our simulator, for our drivers and the code around them.
    order_cycles=53,
    plane_cycles=26,
    latency_cycles=32,
    wait_cycles=8,
    call_cycles=10,
    tile_cycles=0,
    most_operands=8,
    gemm=(
        ("call", 228.08),
        ("block", 354.2),
        ("mac", 2.79),
        ("column", 202.84),
        ("column_mac", 5.02),
        ("row", 226.23),
        ("row_mac", 3.73),
        ("single", 118.84),
        ("single_mac", 12.13),
        ("per_channel", 4.86),
        ("table", 3.25),
        ("wide", 35.43),
    ),
    matmul_rows=(
        ("call", 233),
        ("block", 376.4),
        ("mac", 2.78),
        ("column", 177.96),
        ("column_mac", 4.93),
        ("row", 209.6),
        ("row_mac", 3.53),
        ("single", 118.78),
        ("single_mac", 12.12),
        ("run", 225.35),
    ),
    matmul=(
        ("call", 200.26),
        ("block", 365.9),
        ("mac", 2.83),
        ("column", 176.12),
        ("column_mac", 4.93),
        ("row", 197.94),
        ("row_mac", 3.59),
        ("single", 126.12),
        ("single_mac", 11.79),
        ("run", 242.25),
    ),
    conv2d=(
        ("call", 347.23),
        ("block", 271.87),
        ("mac", 2.81),
        ("column", 336.59),
        ("column_mac", 4.62),
        ("row", 139.42),
        ("row_mac", 3.69),
        ("single", 117.86),
        ("single_mac", 9.41),
        ("run", 322.79),
        ("tap", 57.19),
    ),
    depthwise=(
        ("call", 247.53),
        ("block", 250.77),
        ("mac", 3.54),
        ("row", 147.63),
        ("row_mac", 2.97),
        ("single_mac", 8.88),
        ("run", 199.63),
        ("tap", 57.36),
    ),
    add=(("call", 93.7), ("turn", 51.37), ("element", 5.72), ("operand", 2.41)),
    map=(("call", 36.23), ("turn", 43.07), ("element", 5.52)),
    transpose=(("call", 116.33), ("block", 11.69), ("element", 3.86), ("single", 9.04)),
    table_softmax=(
        ("call", 11.57),
        ("row", 202.51),
        ("column", 0.93),
        ("gather", 9.01),
        ("scale", 12.99),
    ),
    ita_softmax=(("row", 139.94), ("column", 0.58), ("gather", 12.16), ("scale", 5.02)),
    layer_norm=(
        ("call", 179.5),
        ("row", 183.41),
        ("column", 14.6),
        ("gather", 8.4),
        ("scale", 8.83),
    ),
    rms_norm=(
        ("call", 149.07),
        ("row", 150.47),
        ("column", 11.02),
        ("gather", 7.43),
        ("scale", 6.51),
    ),
    affine_norm=(("call", 88.25), ("row", 6.51), ("column", 9.98), ("scale", 8.91)),
)
