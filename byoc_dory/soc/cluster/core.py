"""`ClusterCores`: the numbers of the compute cores as an accelerator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from byoc_dory.soc.base import Accelerator
from byoc_dory.soc.cluster.work import Cycles
from byoc_dory.soc.schemes import MulShiftScheme


@dataclass(frozen=True)
class ClusterCores(Accelerator):
    """Eight cores that run one kernel together, on tiles in L1.

    A kernel's rows are shared among the cores, or its columns if there are few rows; the core with
    the most work determines the time.  Cycles of a tile = ``fork_cycles`` + the cycles of that
    core: the number of each unit of work (`cluster_work`) times its cycles.

    Attributes:
        cores: number of cores.
        fork_cycles: cycles from the host's call until all cores work, and back.
        order_cycles: host cycles for starting a transfer.
        plane_cycles: host cycles for starting each further transfer of a tile with several planes.
        latency_cycles: cycles from then until an idle DMA begins, for the core that programs it.
        wait_cycles: host cycles for noticing that a transfer is done.
        call_cycles: additional cycles per call of a layer's function.
        tile_cycles: additional host cycles per tile.
        most_operands: largest number of operands of an add.
        gemm, matmul, matmul_rows, conv2d, depthwise, add, map, transpose, ita_softmax,
        table_softmax, layer_norm, rms_norm, affine_norm, combine, attention, average: cycles per
            unit of work of a kernel; ``matmul_rows`` if the second operand is transposed.
        kernels: the set of kernels: ``"plain"`` C (``runtime_c/cluster/plain``), or for cores with
            ``"simd"`` instructions (``runtime_c/cluster/simd``). Each has its own units of work,
            and its own layout of constants.
        windows: number of windows of a convolution that a core may copy at a time; 0: as many as
            the kernel prefers. Fewer need less scratch memory.
        apart: whether tiles of a batch of products load their own second operands, instead of
            finding those of the whole batch in L1.
        columns: whether tiles of a single product are ranges of its columns, too, each with its
            own part of the second operand.
        preloads: whether layers load the next one's constants, for which a controller has time.
    """

    cores: int
    fork_cycles: int
    order_cycles: int
    plane_cycles: int
    latency_cycles: int
    wait_cycles: int
    call_cycles: int
    tile_cycles: int
    most_operands: int
    gemm: Cycles
    matmul_rows: Cycles
    matmul: Cycles
    conv2d: Cycles
    depthwise: Cycles
    add: Cycles
    map: Cycles
    transpose: Cycles
    table_softmax: Cycles
    ita_softmax: Cycles
    layer_norm: Cycles
    rms_norm: Cycles
    affine_norm: Cycles
    kernels: Literal["plain", "simd"] = "plain"
    windows: int = 0
    combine: Cycles = (("call", 60.0), ("element", 16.0), ("table", 3.0))
    apart: bool = False
    columns: bool = False
    attention: Cycles = ()
    average: Cycles = ()
    preloads: bool = False

    @property
    def simd(self) -> bool:
        """Whether the kernels are those for SIMD."""
        return self.kernels == "simd"

    @property
    def scheme(self) -> MulShiftScheme:
        """Multiplication, addition and shift, per tensor or per channel."""
        return MulShiftScheme(per_channel=True, unsigned=True, averages=self.simd)

    def can_clip_to(self, bounds: tuple[int, int]) -> bool:
        """See `Accelerator.can_clip_to`: a kernel takes any bounds."""
        return True
