"""`ClusterCores`: the compute cores as an accelerator, their numbers and their cycle model."""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.soc.accelerator import Accelerator, Scheme

__all__ = ["CLUSTER_CORES", "ClusterCores"]


@dataclass(frozen=True)
class ClusterCores(Accelerator):
    """Eight cores that run one kernel together, on tiles in L1.

    A kernel's rows are shared among the cores, or its columns where there are fewer rows; the core
    with most to do sets the pace.  Cycles of a tile = ``fork_cycles`` + what that core does, which
    is the sum over its rows of ``<kernel>_row_cycles`` and of ``<kernel>_cycles`` for each
    multiply-accumulate or element, in hundredths.

    Attributes:
        cores: how many.
        fork_cycles: from the host's call until all work, and back.
        order_cycles: host cycles of ordering a transfer.
        wait_cycles: host cycles of waiting for one that is done.
        call_cycles: of a layer's function, besides.
        most_operands: of an add.
        gemm_mac, matmul_mac, conv_mac, depthwise_mac: hundredths of a cycle for each
            multiply-accumulate of a core.
        add_element: the same for each operand's element; add_result for each of the result.
        map_element, softmax_element, table_softmax_element, layer_norm_element,
        rms_norm_element, affine_norm_element: the same for each element.
        *_row: hundredths of a cycle for each row (conv: output) of a core.
    """

    cores: int
    fork_cycles: int
    order_cycles: int
    wait_cycles: int
    call_cycles: int
    most_operands: int
    gemm_mac: int
    gemm_row: int
    matmul_mac: int
    matmul_row: int
    conv_mac: int
    conv_row: int
    depthwise_mac: int
    depthwise_row: int
    add_element: int
    add_result: int
    map_element: int
    softmax_element: int
    softmax_row: int
    table_softmax_element: int
    table_softmax_row: int
    layer_norm_element: int
    layer_norm_row: int
    rms_norm_element: int
    rms_norm_row: int
    affine_norm_element: int
    affine_norm_row: int

    @property
    def scheme(self) -> Scheme:
        """Multiplication, addition and shift, per tensor or per channel."""
        return "mul_shift"


# derived: fitted to our kernels on our simulator (benchmarks/cluster_kernels.py).
CLUSTER_CORES = ClusterCores(
    name="cluster",
    title="cluster of 8 cores",
    registers=0x20002000,  # assumed
    l1="L1",
    family="cluster",
    toolkit_module="byoc_dory.soc.snitch_ita.cluster",
    cores=8,  # published
    fork_cycles=90,
    order_cycles=40,
    wait_cycles=20,
    call_cycles=40,
    most_operands=8,
    gemm_mac=300,
    gemm_row=4000,
    matmul_mac=350,
    matmul_row=4000,
    conv_mac=400,
    conv_row=6000,
    depthwise_mac=800,
    depthwise_row=4000,
    add_element=300,
    add_result=700,
    map_element=500,
    softmax_element=1800,
    softmax_row=6000,
    table_softmax_element=2600,
    table_softmax_row=6000,
    layer_norm_element=2600,
    layer_norm_row=10000,
    rms_norm_element=2600,
    rms_norm_row=10000,
    affine_norm_element=1000,
    affine_norm_row=4000,
)
